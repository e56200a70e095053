package hfconfig

import (
	"reflect"
	"strings"
)

// fieldNames returns pointers to the fields of a struct by their JSON names,
// those of embedded structs too.
func fieldNames(into any) map[string]any {
	out := make(map[string]any)
	addFields(reflect.ValueOf(into).Elem(), out)
	return out
}

func addFields(v reflect.Value, out map[string]any) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			addFields(v.Field(i), out)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" {
			out[name] = v.Field(i).Addr().Interface()
		}
	}
}
