package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets these in a release build (see the Makefile).
var version, commit string

// versionInfo is the answer of the version command.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, commit, Go version and platform",
		Example: "  memorymark version --json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			v := currentVersion()
			return e.print(v, func(w io.Writer, _ int) error {
				_, err := fmt.Fprintln(w, v)
				return err
			})
		},
	}
}

func (v versionInfo) String() string {
	s := "memorymark " + v.Version
	if v.Commit != "" {
		s += " (" + v.Commit + ")"
	}
	return s + " " + v.Go + " " + v.Platform
}

// currentVersion prefers what the linker set and falls back on what the go
// command recorded, so that go install gives a version too.
func currentVersion() versionInfo {
	v := versionInfo{
		Version:  version,
		Commit:   commit,
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if v.Version == "" && ok {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	if v.Commit == "" && ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return v
}
