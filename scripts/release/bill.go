package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that are filled in.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Tools     tools     `json:"tools"`
		Component component `json:"component"`
	}
	tools struct {
		Components []tool `json:"components"`
	}
	tool struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses"`
		URL        string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	license struct {
		Expression string `json:"expression"` // of SPDX
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// bill lists the modules that are linked into a binary, as the binary itself
// says, with the sums that go.sum holds for them, and the packages of its page.
func (r *release) bill(file string, data []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what is linked into it: %w", err)
	}
	sum := sha256.Sum256(data)
	own := library("pkg:generic/memorymark@"+r.version, "memorymark", r.version, "MIT")
	own.Type, own.Hashes = "application", []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	b := bill{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: serialNumber(sum),
		Metadata:     metadata{Timestamp: r.date.Format(time.RFC3339), Tools: tools{[]tool{{"application", "memorymark/scripts/release"}}}, Component: own},
	}
	for _, p := range r.parts {
		c, linked, err := p.component(info)
		if err != nil {
			return nil, err
		}
		if linked {
			b.Components = append(b.Components, c)
		}
	}
	used := make([]string, len(b.Components))
	for i, c := range b.Components {
		used[i] = c.Ref
	}
	b.Dependencies = []dependency{{own.Ref, used}}
	if missing := len(info.Deps) - modules(b.Components); missing != 0 {
		return nil, fmt.Errorf("%d modules are linked and not known", missing)
	}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}

func library(url, name, version, expression string) component {
	return component{Type: "library", Ref: url, Name: name, Version: version, URL: url, Licenses: []license{{expression}}}
}

// component describes a part, and says whether it is in a binary: modules may be
// those of other platforms. Scanners look for the standard library as stdlib and
// for modules in the case of their paths, although a purl would have it lower.
func (p part) component(binary *buildinfo.BuildInfo) (c component, in bool, err error) {
	expression, err := p.expression()
	if err != nil {
		return c, false, err
	}
	if p.integrity != "" {
		c = library("pkg:npm/"+strings.Replace(p.name, "@", "%40", 1)+"@"+p.version, p.name, p.version, expression)
		c.Hashes, err = integrityHashes(p.integrity)
		return c, true, err
	}
	if p.python {
		return library("pkg:pypi/"+p.name+"@"+p.version, p.name, p.version, expression), true, nil
	}
	if p.name == "Go" {
		version := strings.TrimPrefix(binary.GoVersion, "go")
		return library("pkg:golang/stdlib@"+version, "stdlib", version, expression), true, nil
	}
	i := slices.IndexFunc(binary.Deps, func(m *debug.Module) bool { return m.Path == p.name && m.Version == p.version })
	if i < 0 {
		return c, false, nil
	}
	c = library("pkg:golang/"+p.name+"@"+p.version, p.name, p.version, expression)
	c.Properties = []property{{"go.sum", binary.Deps[i].Sum}}
	return c, true, nil
}

// modules counts the components that are modules.
func modules(all []component) (n int) {
	for _, c := range all {
		if len(c.Properties) > 0 {
			n++
		}
	}
	return n
}

// integrityHashes are the hash of a package's archive that a lock file has.
func integrityHashes(integrity string) ([]hash, error) {
	text, found := strings.CutPrefix(integrity, "sha512-")
	data, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil {
		return nil, fmt.Errorf("a package has the hash %q, which is no SHA-512", integrity)
	}
	return []hash{{"SHA-512", fmt.Sprintf("%x", data)}}, nil
}

// serialNumber is one for each binary and the same for the same: a UUID of
// version 8 (RFC 9562), whose bits are the maker's own.
func serialNumber(sum [sha256.Size]byte) string {
	sum[6], sum[8] = 0x80|sum[6]&0xf, 0x80|sum[8]&0x3f
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
