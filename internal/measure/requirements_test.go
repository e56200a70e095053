package measure

import (
	"regexp"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// TestRequirementsHaveHashes holds what `make venv` installs to what was asked
// for, with a hash of every file.
func TestRequirementsHaveHashes(t *testing.T) {
	pin := regexp.MustCompile(`(?m)^([A-Za-z0-9_.-]+)==(\S+)`)
	read := func(name string) string {
		data := testmachine.ReadFile(t, "testdata/"+name)
		return string(data)
	}
	normal := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }
	wanted := make(map[string]string)
	for _, m := range pin.FindAllStringSubmatch(read("requirements.in"), -1) {
		wanted[normal(m[1])] = m[2]
	}
	hashed := regexp.MustCompile(`^[^\n]*\\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+$`)
	text := read("requirements.txt")
	places := append(pin.FindAllStringIndex(text, -1), []int{len(text)})
	for i, place := range places[:len(places)-1] {
		entry := text[place[0]:places[i+1][0]]
		m := pin.FindStringSubmatch(entry)
		if !hashed.MatchString(entry) {
			t.Errorf("%s has no hashes; run make requirements", m[1])
		}
		if wanted[normal(m[1])] != m[2] {
			t.Errorf("%s %s was not asked for: %q is; run make requirements", m[1], m[2], wanted[normal(m[1])])
		}
		delete(wanted, normal(m[1]))
	}
	if len(wanted) > 0 {
		t.Errorf("not there: %v; run make requirements", wanted)
	}
}
