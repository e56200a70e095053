package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/admission"
	"memorymark/internal/analysis"
	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/job"
	"memorymark/internal/predict"
	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
)

// statusClientGone is what the log says of a request whose client left; no one
// gets to read it.
const statusClientGone = 499

// statuses is the table from errors to statuses. An error that is not in it is
// the server's own fault, and its text is for the log alone.
var statuses = []struct {
	is     func(error) bool
	status int
}{
	{isA[*invalid.Error], http.StatusUnprocessableEntity},
	{isA[*gpu.UnknownError], http.StatusUnprocessableEntity},
	{isA[*analysis.TooSmallError], http.StatusUnprocessableEntity},
	{is(errNothingTrains), http.StatusUnprocessableEntity},
	{isA[*analysis.NothingLeftError], http.StatusUnprocessableEntity},
	{isA[*badRequest], http.StatusUnprocessableEntity},
	{isA[*endedError], http.StatusUnprocessableEntity},
	{isA[*CannotEmulateError], http.StatusNotImplemented},
	{isA[*NoCodeError], http.StatusNotImplemented},
	{isA[*job.InvalidError], http.StatusUnprocessableEntity},
	{is(job.ErrNotFound), http.StatusNotFound},
	{is(job.ErrActive), http.StatusConflict},
	{is(job.ErrEnded), http.StatusConflict},
	{is(job.ErrFull), http.StatusServiceUnavailable},
	{is(job.ErrNoSpace), http.StatusInsufficientStorage},
	{is(job.ErrNoWorker), http.StatusNotFound},
	{is(job.ErrLost), http.StatusConflict},
	{is(job.ErrCancelled), http.StatusConflict},
	{is(job.ErrTooMany), http.StatusTooManyRequests},
	{is(job.ErrClosed), http.StatusServiceUnavailable},
	{is(job.ErrUnheard), http.StatusGatewayTimeout},
	{is(snapshot.ErrTooLarge), http.StatusRequestEntityTooLarge},
	{isA[*recording.NotReplayableError], http.StatusUnprocessableEntity},
	{isA[*badSnapshot], http.StatusUnprocessableEntity},
	{isA[*recording.MomentError], http.StatusUnprocessableEntity},
	{isA[*recording.NoDeviceError], http.StatusUnprocessableEntity},
	{is(recording.ErrEmpty), http.StatusUnprocessableEntity},
	{is(recording.ErrNotReplayed), http.StatusUnprocessableEntity},
	{is(snapshotstore.ErrNotFound), http.StatusNotFound},
	{is(snapshotstore.ErrTooLarge), http.StatusRequestEntityTooLarge},
	{is(snapshotstore.ErrFull), http.StatusInsufficientStorage},
	{is(snapshotstore.ErrNoSpace), http.StatusInsufficientStorage},
	{is(errUpload), http.StatusBadRequest},
	{is(errStopping), http.StatusServiceUnavailable},
	{isA[*admission.BusyError], http.StatusServiceUnavailable},
	{is(context.Canceled), statusClientGone},
	{is(context.DeadlineExceeded), http.StatusGatewayTimeout},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isA[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func statusOf(err error) int {
	for _, s := range statuses {
		if s.is(err) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// What an error's answer holds at most. A question of a megabyte can be wrong in
// a hundred thousand places, and huma repeats for each of them what is there.
const (
	maxDetails = 100
	maxText    = 4 << 10 // bytes; the names of all models have half
)

func init() {
	whole := huma.NewError
	huma.NewError = func(status int, text string, details ...error) huma.StatusError {
		more := len(details) - maxDetails
		details = details[:min(len(details), maxDetails)]
		short := make([]error, 0, len(details)+1)
		for _, d := range details {
			short = append(short, shortDetail(d))
		}
		if more > 0 {
			short = append(short, fmt.Errorf("and %d more", more))
		}
		return whole(status, shortText(text), short...)
	}
}

// shortDetail is what is wrong with one field, without what is long in it. What a
// list or an object holds, the client knows.
func shortDetail(err error) error {
	d := huma.ErrorDetail{Message: err.Error()}
	if given, ok := err.(huma.ErrorDetailer); ok { //nolint:errorlint // as huma looks at them
		d = *given.ErrorDetail()
	}
	switch v := d.Value.(type) {
	case string:
		d.Value = shortText(v)
	case bool, float64:
	default:
		d.Value = nil
	}
	d.Message, d.Location = shortText(d.Message), shortText(d.Location)
	return &d
}

func shortText(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// badRequest is a request that cannot be answered, by its own fault.
type badRequest struct{ details []error }

func (e *badRequest) Error() string { return errors.Join(e.details...).Error() }

// bad is a request with one thing wrong, at a place such as "query.at".
func bad(place, format string, args ...any) error {
	return &badRequest{[]error{&huma.ErrorDetail{Location: place, Message: fmt.Sprintf(format, args...)}}}
}

// problem makes the answer of an error: RFC 9457, naming every bad field.
func (s *Server) problem(ctx context.Context, err error) error {
	var already huma.StatusError
	if errors.As(err, &already) {
		return err
	}
	status := statusOf(err)
	if status == http.StatusInternalServerError {
		c := callOf(ctx)
		s.log.ErrorContext(ctx, "request failed", "request", c.id, "error", err)
		return huma.NewError(status, internalText(c))
	}
	var request *badRequest
	if errors.As(err, &request) {
		return huma.NewError(status, "validation failed", request.details...)
	}
	failure := huma.NewError(status, err.Error())
	if status == http.StatusServiceUnavailable {
		headers := make(http.Header)
		setRetryAfter(headers, err)
		return huma.ErrorWithHeaders(failure, headers)
	}
	return failure
}

func internalText(c *call) string {
	return fmt.Sprintf("internal error; see request %s in the server's log", c.id)
}

// detailsOf lists what is wrong with a workload at a place, nested as its keys
// are.
func detailsOf(err error, place string) []error {
	//nolint:errorlint // only what is on the outside says where it is
	switch e := err.(type) {
	case *invalid.Problem:
		return detailsOf(e.Err, place+"."+e.Key)
	case *gpu.UnknownError:
		place += ".gpu"
	case interface{ Unwrap() []error }:
		var out []error
		for _, one := range e.Unwrap() {
			out = append(out, detailsOf(one, place)...)
		}
		return out
	}
	return []error{&huma.ErrorDetail{Location: place, Message: err.Error()}}
}

// predicted gives the error of a prediction its status: about the workload,
// unless MemoryMark is at fault.
func predicted(err error) error {
	if err == nil || statusOf(err) != http.StatusInternalServerError || errors.Is(err, predict.ErrFault) {
		return err
	}
	return bad("body", "%v", err)
}

// fail answers with an error outside huma, as the path's clients expect it:
// RFC 9457 under /v1, else as the endpoints that were there before.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	text = shortText(text)
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		writeJSON(w, status, "application/problem+json", &huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: text})
		return
	}
	writeJSON(w, status, "application/json", legacyError{"error", text})
}

func writeJSON(w http.ResponseWriter, status int, contentType string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("marshal an answer: %v", err)) // our own types
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a client that left is no news
}
