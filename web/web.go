// Package web holds the page that make web builds from the sources in this folder.
// Without it the program builds too, and says so where the page would be.
package web

import (
	"embed"
	"io/fs"
)

// dist is what was built. The file that keeps the folder in the repository is
// no page.
//
//go:embed all:dist
var dist embed.FS

// Page returns the built page, nil if there is none in this program.
func Page() fs.FS {
	if _, err := fs.Stat(dist, "dist/index.html"); err != nil {
		return nil
	}
	page, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is right
	}
	return page
}
