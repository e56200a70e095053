package server

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/gpu"
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
	c.RejectUnknownQueryParameters = true // somebody meant something by it
	c.Transformers = append(c.Transformers, sayHowToSendJSON)
	c.Components.Schemas = huma.NewMapRegistry(schemaPrefix, schemaName)
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[workload.Config](), reflect.TypeFor[map[string]any]())
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[workload.Workload](), reflect.TypeFor[draft]())
	c.Components.Schemas.Map()["Workload"] = workloadSchema()
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "Needed beyond loopback: memorymark token create NAME"},
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

// workloadKeys explains the keys of a workload, for the document.
var workloadKeys = map[string]struct {
	schema huma.Schema
	text   string
}{
	"id":                  {huma.Schema{Type: "string"}, "Echoed in the answer."},
	"model":               {huma.Schema{Type: "string", Examples: []any{"bert"}}, "An id of /v1/models, or its Hugging Face id."},
	"config":              {huma.Schema{Type: "object", AdditionalProperties: true}, "Instead of model: the object of a Hugging Face config.json. With model: keys to replace."},
	"batch":               {huma.Schema{Type: "integer", Format: "int64", Default: 16}, "Samples in a step."},
	"sequence":            {huma.Schema{Type: "integer", Format: "int64", Default: 128}, "Tokens in a sample."},
	"image":               {huma.Schema{Type: "integer", Format: "int64", Default: 224}, "Pixels of a side of an image."},
	"precision":           {huma.Schema{Type: "string"}, "What a step computes in."},
	"optimizer":           {huma.Schema{Type: "string"}, "What updates the parameters."},
	"optimizer_impl":      {huma.Schema{Type: "string"}, "How the optimizer computes."},
	"phase":               {huma.Schema{Type: "string"}, "How much of a step runs."},
	"loss":                {huma.Schema{Type: "string"}, "What backward starts from: the model's own loss, or the mean of its logits."},
	"attention":           {huma.Schema{Type: "string"}, "How attention is computed."},
	"attention_mask":      {huma.Schema{Type: "string"}, "The mask in the batch."},
	"checkpointing":       {huma.Schema{Type: "boolean", Default: false}, "Compute activations again in backward instead of keeping them."},
	"mode":                {huma.Schema{Type: "string"}, "The mode of the model."},
	"accumulate":          {huma.Schema{Type: "integer", Format: "int64", Default: 1}, "Forward and backward passes before each update."},
	"clip_grad_norm":      {huma.Schema{Type: "boolean", Default: false}, "Clip gradients by their norm."},
	"expandable_segments": {huma.Schema{Type: "boolean", Default: false}, "With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
	"gpu":                 {huma.Schema{Type: "string", Examples: []any{"a10"}}, "An id of /v1/gpus. Default: this machine's card, else a10."},
	"limit_gib":           {huma.Schema{Type: "number", Format: "double"}, "The most that the allocator may reserve, in GiB. Default: the card's memory less the context."},
}

// workloadSchema describes a workload by the keys and choices that it has.
func workloadSchema() *huma.Schema {
	s := &huma.Schema{
		Type: "object", Properties: make(map[string]*huma.Schema), AdditionalProperties: false,
		Description: "What is trained. Every key has a default but model, or config.",
	}
	for _, key := range workload.Keys() {
		known := workloadKeys[key]
		property := known.schema
		property.Description = known.text
		for i, choice := range workload.Choices(key) {
			property.Enum = append(property.Enum, choice)
			if i == 0 {
				property.Default = choice
			}
		}
		s.Properties[key] = &property
	}
	return s
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

// Resolve implements huma.ResolverWithPath: the workload's own room says
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

// given is a parameter that may be absent. What it may be is for the room that
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
	}
}

func get(id, path, summary, description string, tags []string, errors ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Description: description, Tags: tags, Errors: errors,
	}
}

// output is an answer with a body and nothing else.
type output[T any] struct{ Body T }
