package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// licensesName is the file with the licences of all that the binary holds of
// others.
const licensesName = "THIRD-PARTY-LICENSES"

// licenseFile matches what projects call their licences.
var licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|notice)s?([.-].*)?$`)

// part is a module or a package of others that goes into the binary.
type part struct {
	name, version, folder string
	license               string // its name, where it is stated; "" else
}

// licenses is one text with the licences of Go, of the modules that are linked,
// and of the packages that the page is bundled from.
func licenses(ctx context.Context) ([]byte, error) {
	modules, err := linkedModules(ctx)
	if err != nil {
		return nil, err
	}
	packages, err := bundledPackages("web")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "MemoryMark contains the works below, under the licences that follow each.")
	var missing []error
	for _, p := range slices.Concat(modules, packages) {
		texts, err := p.texts()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 80), p.name, p.version)
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&b, "\n%s:\n\n%s\n", name, bytes.TrimSpace(texts[name]))
		}
		switch {
		case len(texts) == 0 && p.license == "":
			missing = append(missing, fmt.Errorf("%s %s says nothing of its licence", p.name, p.version))
		case len(texts) == 0:
			fmt.Fprintf(&b, "\nIts package states the licence %s and has no text of it.\n", p.license)
		}
	}
	return b.Bytes(), errors.Join(missing...)
}

// texts are the licences of a part, by their paths in it: some parts hold parts
// of others.
func (p part) texts() (map[string][]byte, error) {
	out := make(map[string][]byte)
	err := filepath.WalkDir(p.folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !licenseFile.MatchString(d.Name()) || strings.HasSuffix(path, ".go"):
			return nil
		}
		name, err := filepath.Rel(p.folder, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	return out, err
}

// linkedModules are Go and the modules that are linked into the binary, on any
// platform.
func linkedModules(ctx context.Context) ([]part, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	// Only what is at the top of Go's own tree: below are tools that are not linked.
	license := filepath.Join(strings.TrimSpace(string(root)), "LICENSE")
	found := map[string]part{"": {"Go", runtime.Version(), license, ""}}
	for _, p := range platforms {
		c := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "memorymark/cmd/memorymark")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("list what is linked: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 {
				found[fields[0]] = part{fields[0], fields[1], fields[2], ""}
			}
		}
	}
	return sorted(found), nil
}

// bundledPackages are the packages that the page is bundled from, as the lock
// file has them; they are installed beside it.
func bundledPackages(web string) ([]part, error) {
	data, err := os.ReadFile(filepath.Join(web, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev, DevOptional bool
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("read the page's lock file: %w", err)
	}
	found := make(map[string]part)
	for path, p := range lock.Packages {
		if path != "" && !p.Dev && !p.DevOptional {
			_, name, _ := strings.Cut(path, "node_modules/")
			found[path] = part{name, p.Version, filepath.Join(web, path), p.License}
		}
	}
	return sorted(found), nil
}

func sorted(parts map[string]part) []part {
	return slices.SortedFunc(maps.Values(parts), func(a, b part) int { return strings.Compare(a.name, b.name) })
}
