package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that are filled in. Licences of modules are not:
// nothing in a binary says them, and the archive has their texts.
type (
	bill struct {
		Format      string      `json:"bomFormat"`
		SpecVersion string      `json:"specVersion"`
		Version     int         `json:"version"`
		Metadata    metadata    `json:"metadata"`
		Components  []component `json:"components"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		URL        string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
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
)

// bill lists the modules that are linked into a binary, as the binary itself
// says, with the sums that go.sum holds for them, and the packages of its page.
func (r *release) bill(file string, data []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what is linked into it: %w", err)
	}
	b := bill{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{
			Timestamp: r.date.Format(time.RFC3339),
			Component: component{
				Type: "application", Name: "memorymark", Version: r.version,
				Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(data))}},
			},
		},
		Components: []component{{Type: "library", Name: "std", Version: info.GoVersion, URL: "pkg:golang/std@" + info.GoVersion[len("go"):]}},
	}
	for _, m := range info.Deps {
		b.Components = append(b.Components, component{
			Type: "library", Name: m.Path, Version: m.Version, URL: "pkg:golang/" + m.Path + "@" + m.Version,
			Properties: []property{{"go.sum", m.Sum}},
		})
	}
	packages, err := bundledPackages("web")
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		b.Components = append(b.Components, component{
			Type: "library", Name: p.name, Version: p.version, URL: "pkg:npm/" + strings.Replace(p.name, "@", "%40", 1) + "@" + p.version,
			Licenses: []license{{p.license}},
		})
	}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}
