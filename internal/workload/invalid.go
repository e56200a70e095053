package workload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// InvalidError is everything that is wrong with a workload.
type InvalidError struct{ Problems []error }

func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.As look into the problems.
func (e *InvalidError) Unwrap() []error { return e.Problems }

// Problem is one thing that is wrong and the key that it is about, so that a
// form can show it beside the field.
type Problem struct {
	Key string
	Err error
}

func (p *Problem) Error() string { return p.Err.Error() }

// Unwrap returns what is wrong.
func (p *Problem) Unwrap() error { return p.Err }

// at says which key an error is about.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	return &Problem{key, err}
}

func (e *InvalidError) add(err error) {
	if err != nil {
		e.Problems = append(e.Problems, err)
	}
}

// unknownKey names a key that a workload does not have, and the one that was
// probably meant.
func unknownKey(key string) error {
	keys := Keys()
	plain := func(s string) string { return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s)) }
	for _, k := range keys {
		if a, b := plain(key), plain(k); a == b || len(a) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) || swapped(a, b) {
			return fmt.Errorf("%q is not a key; did you mean %s?", key, k)
		}
	}
	return fmt.Errorf("%q is not a key; the keys are %s", key, strings.Join(keys, ", "))
}

// swapped reports whether two words have the same letters.
func swapped(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return string(x) == string(y)
}

// wrongKind explains a value that a key cannot hold.
func wrongKind(key string, raw json.RawMessage, field any, err error) error {
	switch reflect.TypeOf(field).Elem().Kind() {
	case reflect.Int, reflect.Int64:
		return fmt.Errorf("%s is %s; it must be a whole number", key, shorten(raw))
	case reflect.Float64:
		return fmt.Errorf("%s is %s; it must be a number", key, shorten(raw))
	case reflect.Bool:
		return fmt.Errorf("%s is %s; it must be true or false", key, shorten(raw))
	case reflect.String:
		return fmt.Errorf("%s is %s; it must be text", key, shorten(raw))
	default:
		return fmt.Errorf("%s is %s; %w", key, shorten(raw), err)
	}
}
