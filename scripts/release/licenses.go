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

	"memorymark/internal/pymodule"
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
	integrity             string // of a package, as the lock file has it
	python                bool   // it is of the Python Package Index
}

// builders are packages that leave code of their own in what they build: the
// style sheet's base, and what loads the page's pieces.
var builders = []string{"tailwindcss", "vite", "rolldown"}

// ofOthers are Go, the modules that are linked, and the packages that the page is
// bundled from.
func ofOthers(ctx context.Context) ([]part, error) {
	modules, err := linkedModules(ctx)
	if err != nil {
		return nil, err
	}
	packages, err := bundledPackages("web")
	if err != nil {
		return nil, err
	}
	source, err := embeddedSource("internal/pymodule/trees")
	return slices.Concat(modules, packages, source), err
}

// embeddedSource is the transformers whose models are embedded, nothing if make models
// has not run.
func embeddedSource(folder string) ([]part, error) {
	trees, err := pymodule.EmbeddedTrees()
	if trees == nil || err != nil {
		return nil, err
	}
	return []part{{name: "transformers", version: trees.Version, folder: folder, python: true}}, nil
}

// licenses is one text with the licences of all parts.
func licenses(parts []part) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintln(&b, "MemoryMark contains the works below, under the licences that follow each.")
	var missing []error
	for _, p := range parts {
		texts, err := p.texts()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 80), p.name, p.version)
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&b, "\n%s:\n\n%s\n", name, bytes.TrimSpace(texts[name]))
		}
		if len(texts) == 0 {
			text, err := p.statedLicense()
			if err != nil {
				missing = append(missing, err)
			}
			fmt.Fprintf(&b, "\n%s\n", text)
		}
	}
	return b.Bytes(), errors.Join(missing...)
}

// statedLicense is the licence of a package that only names it. MIT asks for its
// text with every copy; its terms are those of LICENSE. The Unlicense asks for
// nothing.
func (p part) statedLicense() (string, error) {
	switch p.license {
	case "MIT":
		author, err := p.author()
		if err != nil {
			return "", err
		}
		ours, err := os.ReadFile("LICENSE")
		if err != nil {
			return "", err
		}
		_, terms, found := strings.Cut(string(ours), "\nPermission is hereby granted")
		if !found {
			return "", errors.New("LICENSE is not the MIT licence any more: give the terms for " + p.name)
		}
		return "MIT License\n\nCopyright (c) " + author + "\n\nPermission is hereby granted" + strings.TrimRight(terms, "\n"), nil
	case "Unlicense":
		return "Its authors dedicated it to the public domain: https://unlicense.org", nil
	}
	return "", fmt.Errorf("%s %s has no text of its licence, %q: add what that licence asks for", p.name, p.version, p.license)
}

// author is who a package says wrote it.
func (p part) author() (string, error) {
	data, err := os.ReadFile(filepath.Join(p.folder, "package.json"))
	if err != nil {
		return "", err
	}
	var stated struct{ Author string }
	if err := json.Unmarshal(data, &stated); err != nil || stated.Author == "" {
		return "", fmt.Errorf("%s/package.json does not say who wrote it", p.folder)
	}
	return stated.Author, nil
}

// expression names the licences of a module by their terms, as SPDX does: no file
// of a module names them.
func (p part) expression() (string, error) {
	if p.license != "" {
		return p.license, nil
	}
	texts, err := p.texts()
	if err != nil {
		return "", err
	}
	found := make(map[string]bool)
	for _, text := range texts {
		words := strings.Join(strings.Fields(string(text)), " ")
		found["Apache-2.0"] = found["Apache-2.0"] || strings.Contains(words, "Apache License")
		found["MIT"] = found["MIT"] || strings.Contains(words, "Permission is hereby granted, free of charge")
		if strings.Contains(words, "Redistribution and use in source and binary forms") {
			if strings.Contains(words, "endorse or promote products") {
				found["BSD-3-Clause"] = true
			} else {
				found["BSD-2-Clause"] = true
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	if len(found) == 0 {
		return "", fmt.Errorf("%s %s has a licence that is not known here", p.name, p.version)
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " AND "), nil
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
	found := map[string]part{"": {name: "Go", version: runtime.Version(), folder: license}}
	for _, p := range platforms {
		c := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "memorymark/cmd/memorymark")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("list what is linked: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 {
				found[fields[0]] = part{name: fields[0], version: fields[1], folder: fields[2]}
			}
		}
	}
	return sorted(found), nil
}

// bundledPackages are the packages that the page is bundled from and built by, as
// the lock file has them; they are installed next to it.
func bundledPackages(web string) ([]part, error) {
	data, err := os.ReadFile(filepath.Join(web, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License, Integrity string
			Dev, DevOptional            bool
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("read the page's lock file: %w", err)
	}
	found := make(map[string]part)
	for path, p := range lock.Packages {
		folders := strings.Split(path, "node_modules/")
		name := folders[len(folders)-1]
		if path != "" && (!p.Dev && !p.DevOptional || slices.Contains(builders, name)) {
			found[path] = part{name: name, version: p.Version, folder: filepath.Join(web, path), license: p.License, integrity: p.Integrity}
		}
	}
	return sorted(found), nil
}

func sorted(parts map[string]part) []part {
	return slices.SortedFunc(maps.Values(parts), func(a, b part) int { return strings.Compare(a.name, b.name) })
}
