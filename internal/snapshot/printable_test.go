package snapshot

import "testing"

// A name keeps its direction, and commands no terminal.
func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"train.py": "train.py", "modèle.py": "modèle.py", "模型": "模型", "שלום": "שלום",
		"a\x1b[31mb":      "a�[31mb",
		"a\u009b31mb":     "a�31mb",
		"a\r\n  9 GiB\tb": "a�\n  9 GiB\tb",
		"a\u202eb\u2066c": "a�b�c",
		"a\u2028b\x7f":    "a�b�",
		"a\xff\xfeb":      "a�b",
	} {
		if got := printable(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
