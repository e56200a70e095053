package measure

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// TestProtocolDoc holds docs/prober-protocol.md against the code: it has every
// message and every field, and its examples are messages.
func TestProtocolDoc(t *testing.T) {
	text := testmachine.ReadFile(t, "../../docs/prober-protocol.md")
	doc := string(text)
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^### `([a-z]+)`$").FindAllStringSubmatch(doc, -1) {
		documented[m[1]] = true
	}
	inside := map[string]bool{"look": true, "warm": true, "built": true} // between the nursery and its children
	spoken := messageTypes(t)
	for kind := range inside {
		if !spoken[kind] || !strings.Contains(doc, "`"+kind+"`") {
			t.Errorf("the message %q is not spoken, or not in the document", kind)
		}
		delete(spoken, kind)
	}
	if !maps.Equal(documented, spoken) {
		t.Errorf("the document has %v, the code %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(spoken)))
	}
	for _, of := range []any{request{}, imports{}, Record{}, UserModel{}, ProbeResult{}, Outcome{}, Step{}, Peaks{}, StepProgress{}, Device{}, Versions{}, Failure{}} {
		for _, field := range fieldNames(of) {
			if !strings.Contains(doc, "`"+field+"`") {
				t.Errorf("the field %q of %T is not in the document", field, of)
			}
		}
	}
	shown := make(map[string]bool)
	examples := regexp.MustCompile(`(?m)^[<>] (.*)$`).FindAllStringSubmatch(doc, -1)
	for _, example := range examples {
		var h header
		if err := json.Unmarshal([]byte(example[1]), &h); err != nil || !documented[h.Type] {
			t.Errorf("no message: %s", example[1])
		}
		shown[h.Type] = true
	}
	if !maps.Equal(shown, documented) {
		t.Errorf("there are examples only of %v", slices.Sorted(maps.Keys(shown)))
	}
}

// messageTypes are those that the sources of both sides write.
func messageTypes(t *testing.T) map[string]bool {
	t.Helper()
	types := make(map[string]bool)
	for pattern, written := range map[string]*regexp.Regexp{
		"session*.go":                      regexp.MustCompile(`\bType: "([a-z]+)"`),
		"prober/" + proberModule + "/*.py": regexp.MustCompile(`"type": "([a-z]+)"`),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text := testmachine.ReadFile(t, file)
			for _, m := range written.FindAllSubmatch(text, -1) {
				types[string(m[1])] = true
			}
		}
	}
	return types
}

// fieldNames are what a struct's fields are called in JSON.
func fieldNames(of any) []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" && name != "type" {
			names = append(names, name)
		}
	}
	return names
}
