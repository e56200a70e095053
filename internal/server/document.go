package server

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsText string

var docsPage = template.Must(template.New("docs").Parse(docsText))

// documentRoutes serves the OpenAPI document and a page made of it. Both are
// written at the first request: that takes longer than all of the start.
func (s *Server) documentRoutes(mux *http.ServeMux, doc *huma.OpenAPI) {
	mux.HandleFunc("GET /openapi.json", fixed("application/json", func() ([]byte, error) {
		data, err := json.MarshalIndent(doc, "", "  ")
		return append(data, '\n'), err
	}))
	mux.HandleFunc("GET /docs", fixed("text/html; charset=utf-8", func() ([]byte, error) {
		var page bytes.Buffer
		err := docsPage.Execute(&page, newDocs(doc))
		return page.Bytes(), err
	}))
}

// fixed serves what does not change while the server runs.
func fixed(contentType string, write func() ([]byte, error)) http.HandlerFunc {
	content := sync.OnceValue(func() []byte {
		data, err := write()
		if err != nil {
			panic(fmt.Sprintf("write the API's description: %v", err)) // it is made of our own types
		}
		return data
	})
	tag := sync.OnceValue(func() string {
		sum := sha256.Sum256(content())
		return `"` + hex.EncodeToString(sum[:8]) + `"`
	})
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag())
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content()))
	}
}

// docs is the document as its page shows it.
type docs struct {
	Title, Version, Description string
	Groups                      []docsGroup
	Schemas                     []docsSchema
}

type docsGroup struct {
	Name       string
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description string
	Parameters                             []docsField
	Body, Status, Answer                   string // Body and Answer are schemas
	Curl                                   string
}

type docsField struct {
	Name, Type, Description string
	Required                bool
}

type docsSchema struct {
	Name, Description string
	Fields            []docsField
}

func newDocs(doc *huma.OpenAPI) *docs {
	d := &docs{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op != nil {
				d.add(path, op)
			}
		}
	}
	sort.Slice(d.Groups, func(i, j int) bool { return groupRank(d.Groups[i].Name) < groupRank(d.Groups[j].Name) })
	for _, g := range d.Groups {
		sort.Slice(g.Operations, func(i, j int) bool {
			a, b := g.Operations[i], g.Operations[j]
			return a.Path < b.Path || a.Path == b.Path && a.Method > b.Method
		})
	}
	for name, schema := range doc.Components.Schemas.Map() {
		d.Schemas = append(d.Schemas, newDocsSchema(name, schema))
	}
	sort.Slice(d.Schemas, func(i, j int) bool { return d.Schemas[i].Name < d.Schemas[j].Name })
	return d
}

func groupRank(name string) int {
	return slices.IndexFunc(allTags, func(tags []string) bool { return tags[0] == name })
}

func (d *docs) add(path string, op *huma.Operation) {
	o := docsOperation{ID: op.OperationID, Method: op.Method, Path: path, Summary: op.Summary, Description: op.Description}
	for _, p := range op.Parameters {
		o.Parameters = append(o.Parameters, docsField{Name: p.Name + " (" + p.In + ")", Type: typeText(p.Schema), Description: fieldText(p.Schema, p.Description), Required: p.Required})
	}
	if op.RequestBody != nil {
		o.Body = contentText(op.RequestBody.Content)
	}
	for _, status := range []string{"200", "201", "202", "204"} {
		if r := op.Responses[status]; r != nil {
			o.Status, o.Answer = status, contentText(r.Content)
		}
	}
	o.Curl = curl(o)
	name := "Other"
	if len(op.Tags) > 0 {
		name = op.Tags[0]
	}
	i := slices.IndexFunc(d.Groups, func(g docsGroup) bool { return g.Name == name })
	if i < 0 {
		i = len(d.Groups)
		d.Groups = append(d.Groups, docsGroup{Name: name})
	}
	d.Groups[i].Operations = append(d.Groups[i].Operations, o)
}

// examples are bodies of operations that do not take what others of their kind
// do.
var examples = map[string]string{
	"sweep":              `{"workload": {"model": "bert"}, "axes": [{"key": "batch", "values": [8, 16, 32]}]}`,
	"report":             `{"models": ["lm-small"]}`,
	"derive-activations": `{"model": "lm-small", "batch": 4}`,
}

// curl is a line to try an operation with.
func curl(o docsOperation) string {
	line := "curl "
	if o.Method != http.MethodGet && o.Method != http.MethodPost {
		line += "-X " + o.Method + " "
	}
	line += "http://127.0.0.1:5001" + o.Path
	switch {
	case examples[o.ID] != "":
		line += " --json '" + examples[o.ID] + "'"
	case o.Body == "Workload":
		line += ` --json '{"model": "bert", "batch": 32}'`
	case o.Body == "file":
		line += " --data-binary @snapshot.pickle"
	case strings.HasSuffix(o.Body, "Question"):
		line += ` --json '{"workload": {"model": "bert"}}'`
	case o.Body != "":
		line += " --json '{…}'"
	}
	return line
}

func contentText(content map[string]*huma.MediaType) string {
	for kind, media := range content {
		switch {
		case kind == "text/event-stream":
			return "events"
		case kind == "application/octet-stream" || kind == "text/html" || kind == archiveType:
			return "file"
		case media.Schema != nil:
			return typeText(media.Schema)
		}
	}
	return ""
}

func newDocsSchema(name string, s *huma.Schema) docsSchema {
	out := docsSchema{Name: name, Description: s.Description}
	for key, property := range s.Properties {
		out.Fields = append(out.Fields, docsField{
			Name: key, Type: typeText(property), Description: fieldText(property, property.Description),
			Required: slices.Contains(s.Required, key),
		})
	}
	sort.Slice(out.Fields, func(i, j int) bool { return out.Fields[i].Name < out.Fields[j].Name })
	return out
}

// typeText names the type of a schema: "integer", "Workload", "Result[]".
func typeText(s *huma.Schema) string {
	ref := s.Ref
	if own, ok := s.Extensions["$ref"].(string); ok {
		ref = own
	}
	switch {
	case ref != "":
		return strings.TrimPrefix(ref, schemaPrefix)
	case s.Type == huma.TypeArray && s.Items != nil:
		return typeText(s.Items) + "[]"
	default:
		return s.Type
	}
}

// fieldText is what is said of a field, with what it can be.
func fieldText(s *huma.Schema, text string) string {
	if s.Items != nil && len(s.Enum) == 0 {
		text = fieldText(s.Items, text)
	}
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = fmt.Sprint(v)
		}
		text = sentence(text, "One of "+strings.Join(values, ", "))
	}
	if s.Default != nil {
		text = sentence(text, fmt.Sprintf("Default %v", s.Default))
	}
	return text
}

// sentence adds a sentence to a text that may not end in a full stop.
func sentence(text, more string) string {
	if text != "" {
		text = strings.TrimSuffix(text, ".") + ". "
	}
	return text + more + "."
}
