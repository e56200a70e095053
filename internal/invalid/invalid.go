// Package invalid says what is wrong with something that people wrote, key by
// key, so that a command line, a form and an API can show it where it belongs.
package invalid

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"memorymark/internal/nearest"
)

// Error is everything that is wrong with what was read.
type Error struct{ Problems []error }

func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.As look into the problems.
func (e *Error) Unwrap() []error { return e.Problems }

// Add adds what is wrong, if anything is.
func (e *Error) Add(err error) {
	if err != nil {
		e.Problems = append(e.Problems, err)
	}
}

// Enough reports whether there are more errors than anyone reads.
func (e *Error) Enough() bool { return len(e.Problems) >= 100 }

// OrNil is the error, nil if nothing is wrong.
func (e *Error) OrNil() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// Problem is one thing that is wrong and the key that it is about, so that a
// form can show it next to the field.
type Problem struct {
	Key string
	Err error
}

func (p *Problem) Error() string { return p.Err.Error() }

// Unwrap returns what is wrong.
func (p *Problem) Unwrap() error { return p.Err }

// At says which key an error is about.
func At(key string, err error) error {
	if err == nil {
		return nil
	}
	return &Problem{key, err}
}

// OneOf checks a choice between names. The error names the one that was probably meant.
func OneOf(key, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	meant := ""
	if near := nearest.Meant(value, allowed); near != "" {
		meant = fmt.Sprintf("; did you mean %s?", near)
	}
	return At(key, fmt.Errorf("%s is %q; it must be one of %s%s", key, value, strings.Join(allowed, ", "), meant))
}

// Within checks a whole number.
func Within(key string, value, least, most int64) error {
	switch {
	case value < least:
		return At(key, fmt.Errorf("%s is %d; it must be at least %d", key, value, least))
	case value > most:
		return At(key, fmt.Errorf("%s is %d; it must be at most %d", key, value, most))
	default:
		return nil
	}
}

// Positive checks a whole number that must be at least 1.
func Positive(key string, value int64) error { return Within(key, value, 1, math.MaxInt64) }

// Kind explains a value that the field of a key cannot hold.
func Kind(key string, raw json.RawMessage, field any, err error) error {
	switch reflect.TypeOf(field).Elem().Kind() {
	case reflect.Int, reflect.Int64:
		return fmt.Errorf("%s is %s; it must be a whole number", key, Shorten(raw))
	case reflect.Float64:
		return fmt.Errorf("%s is %s; it must be a number", key, Shorten(raw))
	case reflect.Bool:
		return fmt.Errorf("%s is %s; it must be true or false", key, Shorten(raw))
	case reflect.String:
		return fmt.Errorf("%s is %s; it must be text", key, Shorten(raw))
	default:
		return fmt.Errorf("%s is %s; %w", key, Shorten(raw), err)
	}
}

// Shorten is JSON on one line, cut where it is long.
func Shorten(raw json.RawMessage) string {
	const most = 40
	s := strings.Join(strings.Fields(string(raw)), " ")
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
