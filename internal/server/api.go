package server

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/hfconfig"
	"memorymark/internal/workload"
)

func init() {
	// Lists of answers are never null; clients need not look for it.
	huma.DefaultArrayNullable = false
}

const schemaPrefix = "#/components/schemas/"

// apiConfig is the API without its operations. There is no page from a content
// delivery network, and nothing is added to answers.
func (s *Server) apiConfig() huma.Config {
	c := huma.DefaultConfig("MemoryMark", s.opts.Version)
	c.Info.Description = "Where GPU memory goes when a network trains, the largest batch that really trains, and what would change it."
	c.DocsPath, c.SchemasPath, c.OpenAPIPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true // the client meant something by it
	c.Transformers = append(c.Transformers, sayHowToSendJSON)
	c.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[hfconfig.Config](), reflect.TypeFor[map[string]any]())
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[workload.Workload](), reflect.TypeFor[draft]())
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[figure.Amount](), reflect.TypeFor[amount]())
	c.Components.Schemas.Map()["Workload"] = workloadSchema()
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "Needed beyond loopback: memorymark serve token create NAME"},
	}
	return c
}

// sayHowToSendJSON says what to do where a body is of no type that is read: what
// curl -d sends, for one.
func sayHowToSendJSON(_ huma.Context, _ string, body any) (any, error) {
	if p, ok := body.(*huma.ErrorModel); ok && p.Status == http.StatusUnsupportedMediaType {
		p.Detail, p.Errors = "the body must be JSON and say so, with Content-Type: application/json; curl --json does", nil
	}
	return body, nil
}

// amount is what an amount is in the document.
type amount struct{}

// Schema implements huma.SchemaProvider. As an extension huma does not check it: what is
// wrong with an amount is better said by who reads it.
func (amount) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Extensions: map[string]any{"anyOf": []*huma.Schema{
		{Type: huma.TypeNumber, Format: "double", Minimum: new(0.0)},
		{Type: huma.TypeString, Description: "as people write it: 1B, 500M, 1e9"},
	}}}
}

// partial is some keys of a workload in a request, not looked at yet.
type partial struct{ keys workload.Draft }

// UnmarshalJSON keeps the keys for others to look at.
func (p *partial) UnmarshalJSON(data []byte) (err error) {
	p.keys, err = workload.ParseDraft(data)
	return err
}

// MarshalJSON writes the keys that were given.
func (p partial) MarshalJSON() ([]byte, error) { return json.Marshal(p.keys) }

// Schema implements huma.SchemaProvider. The reference is for readers of the
// document: as an extension huma does not follow it, and leaves validating to
// those who look at the keys.
func (partial) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Extensions: map[string]any{"$ref": schemaPrefix + "Workload"}}
}

// draft is a workload in a request.
type draft struct {
	partial
	workload *workload.Workload // set by Resolve
}

// Resolve implements huma.ResolverWithPath: package workload says
// everything that is wrong, and better than a schema could. A model is an id
// here, never a path.
func (d *draft) Resolve(_ huma.Context, prefix *huma.PathBuffer) []error {
	if d.keys == nil {
		return nil // it was not there, or no object, which huma says
	}
	w, err := d.keys.Workload()
	if err == nil && w.GPU != "" {
		_, err = gpu.Find(w.GPU)
	}
	if err != nil {
		return detailsOf(err, prefix.String())
	}
	d.workload = w
	return nil
}

// runnable is a workload in a request that PyTorch may run, so that it need not
// be modelled.
type runnable struct {
	partial
	workload *workload.Workload // set by Resolve
	problems []error            // why it cannot be predicted, nil if it can
}

// Resolve implements huma.ResolverWithPath.
func (r *runnable) Resolve(c huma.Context, prefix *huma.PathBuffer) []error {
	d := draft{partial: r.partial}
	problems := d.Resolve(c, prefix)
	if r.workload = d.workload; problems == nil {
		return nil
	}
	w, err := r.keys.Runnable()
	if err == nil && w.GPU != "" {
		_, err = gpu.Find(w.GPU)
	}
	if err != nil {
		return problems
	}
	r.workload, r.problems = w, problems
	return nil
}

// given is a parameter that may be absent. What it may be is for the package that
// takes it to say.
type given[T any] struct {
	Value T // exported for huma, which fills it in
	set   bool
}

// Schema implements huma.SchemaProvider.
func (given[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// Receiver implements huma.ParamWrapper.
func (g *given[T]) Receiver() reflect.Value { return reflect.ValueOf(&g.Value).Elem() }

// OnParamSet implements huma.ParamReactor.
func (g *given[T]) OnParamSet(set bool, _ any) { g.set = set }

func (g *given[T]) pointer() *T {
	if !g.set {
		return nil
	}
	return &g.Value
}

// tags of operations, which order the API's page.
var (
	tagPredictions = []string{"Predictions"}
	tagComparisons = []string{"Comparisons"}
	tagCatalogs    = []string{"Catalogs"}
	tagAnalyses    = []string{"Analyses"}
	tagStudies     = []string{"Studies"}
	tagSnapshots   = []string{"Snapshots"}
	tagWorkers     = []string{"Workers"}
	tagAccess      = []string{"Access"}

	allTags = [][]string{tagPredictions, tagAnalyses, tagComparisons, tagStudies, tagSnapshots, tagCatalogs, tagWorkers, tagAccess}
)

func post(id, path, summary, description string, tags []string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, Description: description, Tags: tags,
		Errors: []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
		// The body is there (reading.go). A deadline for it would end the request while
		// it is being answered.
		BodyReadTimeout: -1,
	}
}

func get(id, path, summary, description string, tags []string, errors ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Description: description, Tags: tags, Errors: errors,
	}
}

// output is an answer with a body and nothing else.
type output[T any] struct{ Body T }

// operation makes an operation of the API of a function from the body of a request to
// that of the answer.
func operation[In, Out any](s *Server, do func(context.Context, In) (Out, error)) func(context.Context, *struct{ Body In }) (*output[Out], error) {
	return func(ctx context.Context, in *struct{ Body In }) (*output[Out], error) {
		out, err := do(ctx, in.Body)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return &output[Out]{out}, nil
	}
}
