package emulate

import (
	"os"
	"strings"
	"testing"

	"memorymark/internal/steptime"
)

// The library's numbers of kinds of launches are those of steptime.
func TestKinds(t *testing.T) {
	source, err := os.ReadFile("library/work.h")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "enum work_kind {")
	list, _, _ = strings.Cut(list, "}")
	kinds := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r <= ' ' })
	if len(kinds) != int(steptime.Wait)+1 {
		t.Errorf("the library has %d kinds, steptime %d", len(kinds), steptime.Wait+1)
	}
	names, err := os.ReadFile("python/memorymark_emulate/library.py")
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(string(names), "_KINDS = (")
	for i, kind := range kinds {
		name := steptime.Kind(i).String()
		if strings.ToLower(strings.TrimPrefix(kind, "WORK_")) != name {
			t.Errorf("kind %d is %s in the library, %s in steptime", i, kind, name)
		}
		var found bool
		if _, named, found = strings.Cut(named, `"`+name+`"`); !found {
			t.Errorf("%s is missing in library.py, or comes too early", name)
		}
	}
}
