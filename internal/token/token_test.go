package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "tokens.json")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := l.Create("ci", User, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Create("gpu-1", Worker, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create("ci", User, time.Now()); err == nil {
		t.Error("a name was given twice")
	}
	if _, err := l.Create("x", "root", time.Now()); err == nil {
		t.Error("a role was made up")
	}
	if l, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if found, ok := l.Find(secret); !ok || found.Name != "ci" || found.Role != User {
		t.Errorf("%+v, %v", found, ok)
	}
	if found, ok := l.Find(other); !ok || found.Role != Worker {
		t.Errorf("%+v, %v", found, ok)
	}
	for _, wrong := range []string{"", secret + "0", strings.ToUpper(secret), l.Tokens[0].Hash} {
		if found, ok := l.Find(wrong); ok {
			t.Errorf("%q was taken for %+v", wrong, found)
		}
	}
	if err := l.Delete("ci"); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Find(secret); ok {
		t.Error("a deleted token still opens")
	}
}

// What lies on the disk does not let anybody in.
func TestAtRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := l.Create("ci", User, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), secret) || strings.Contains(string(data), strings.TrimPrefix(secret, prefix)) {
		t.Error("the file holds the secret")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}
