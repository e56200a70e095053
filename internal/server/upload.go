package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/snapshotstore"
)

// uploadRoutes takes files. Not by huma: it would hold them in memory.
func (s *Server) uploadRoutes(api huma.API, mux *http.ServeMux) {
	mux.HandleFunc(uploadPattern, s.upload)
	registry := api.OpenAPI().Components.Schemas
	schema := huma.SchemaFromType(registry, typeOf[Snapshot]())
	registry.Map()["Snapshot"] = schema
	answer := map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: schemaPrefix + "Snapshot"}}}
	problem := map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: schemaPrefix + "ErrorModel"}}}
	op := &huma.Operation{
		OperationID: "upload-snapshot", Method: http.MethodPost, Path: "/v1/snapshots", Summary: "Upload a snapshot", Tags: tagSnapshots,
		Description: "The body is a file of torch.cuda.memory._dump_snapshot, plain or compressed with gzip, zstd or xz. Nothing in it is executed. " +
			"The same file is kept once; its id is its SHA-256.",
		Parameters: []*huma.Param{
			{Name: "name", In: "query", Description: "what people call it", Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "origin", In: "query", Description: "how it came to be", Schema: &huma.Schema{
				Type: huma.TypeString, Enum: []any{"uploaded", "measured"}, Default: "uploaded",
			}},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}},
		Responses: map[string]*huma.Response{"201": {Description: "Created", Content: answer}},
	}
	for _, status := range []string{"413", "422", "507"} {
		op.Responses[status] = &huma.Response{Description: "Error", Content: problem}
	}
	api.OpenAPI().AddOperation(op)
}

// upload stores a file as it comes, then looks whether it is a snapshot.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	origin := snapshotstore.Uploaded
	if r.URL.Query().Get("origin") == string(snapshotstore.Measured) {
		origin = snapshotstore.Measured
	}
	body := sized{&patientReader{http.NewResponseController(w), r.Body, s.stall, 0}, r.ContentLength}
	snap, err := s.receive(r.Context(), body, fileName(r.URL.Query().Get("name")), origin)
	if err != nil {
		status, text := statusOf(err), err.Error()
		if status == http.StatusInternalServerError {
			s.log.ErrorContext(r.Context(), "upload failed", "request", callOf(r.Context()).id, "error", err)
			text = internalText(callOf(r.Context()))
		}
		s.fail(w, r, status, text)
		return
	}
	w.Header().Set("Location", "/v1/snapshots/"+snap.ID)
	writeJSON(w, http.StatusCreated, "application/json", snap)
}

// Keep keeps a snapshot as if it had been uploaded, and returns its id.
func (s *Server) Keep(ctx context.Context, from io.Reader, name string) (string, error) {
	snap, err := s.receive(ctx, sized{from, -1}, fileName(name), snapshotstore.Uploaded)
	if err != nil {
		return "", err
	}
	return snap.ID, nil
}

// receive keeps a file if it is a snapshot. It is read on its way to the disk.
func (s *Server) receive(ctx context.Context, from sized, name string, origin snapshotstore.Origin) (*Snapshot, error) {
	u, err := s.opts.Snapshots.Create()
	if err != nil {
		return nil, err
	}
	a := s.library.arrive(from.size)
	_, err = io.CopyBuffer(io.MultiWriter(u, a), from, make([]byte, pieceBytes))
	a.end(err)
	if err != nil {
		u.Abort()
		return nil, clientsFault(err)
	}
	entry, err := u.Commit(name, origin)
	if err != nil {
		return nil, err
	}
	a.keep(ctx, entry.ID)
	snap, err := s.describeSnapshot(ctx, entry)
	if isA[*badSnapshot](err) {
		return nil, errors.Join(err, s.opts.Snapshots.Delete(entry.ID))
	}
	return snap, err
}

// pieceBytes is how much of a file is received at once: packing and reading it
// take turns less often than with less.
const pieceBytes = 256 << 10

// errUpload says that a client did not send what it began.
var errUpload = errors.New("the upload was interrupted; send it again")

// clientsFault tells a body that could not be read from a disk that could not
// be written.
func clientsFault(err error) error {
	if errors.Is(err, snapshotstore.ErrTooLarge) || errors.Is(err, snapshotstore.ErrFull) {
		return err
	}
	var timeout interface{ Timeout() bool }
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &timeout) && timeout.Timeout() {
		return errUpload
	}
	return err
}

// fileName is the last part of a name, for people; it never names a file here.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if name == "." || name == "/" {
		return ""
	}
	return name[:min(len(name), 200)]
}
