//go:build !js

package pymodule

import "embed"

// built is what make models wrote. The file that keeps the folder in the repository is
// no archive.
//
//go:embed all:trees
var built embed.FS

// builtTrees is an archive that the program was built with, nil without one. "" is the
// reference version.
func builtTrees(version string) ([]byte, error) {
	name := "trees/transformers.zip"
	if version != "" {
		name = "trees/transformers-" + version + ".zip"
	}
	data, _ := built.ReadFile(name) // it fails only if make models was not run
	return data, nil
}
