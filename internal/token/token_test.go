package token

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "tokens.json")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := l.Create("ci", User, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Create("gpu-1", Worker, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{secret, other} {
		if random, err := hex.DecodeString(strings.TrimPrefix(s, prefix)); err != nil || len(random) != 32 || secret == other {
			t.Errorf("%d random bytes, %v", len(random), err)
		}
	}
	if _, err := l.Create("ci", User, time.Now(), time.Time{}); err == nil {
		t.Error("a name was given twice")
	}
	if _, err := l.Create("x", "root", time.Now(), time.Time{}); err == nil {
		t.Error("a role was made up")
	}
	if l, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if found, ok := l.Find(secret, time.Now()); !ok || found.Name != "ci" || found.Role != User {
		t.Errorf("%+v, %v", found, ok)
	}
	if found, ok := l.Find(other, time.Now()); !ok || found.Role != Worker {
		t.Errorf("%+v, %v", found, ok)
	}
	for _, wrong := range []string{"", secret + "0", strings.ToUpper(secret), l.Tokens[0].Hash} {
		if found, ok := l.Find(wrong, time.Now()); ok {
			t.Errorf("%q was taken for %+v", wrong, found)
		}
	}
	if err := l.Delete("ci"); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Find(secret, time.Now()); ok {
		t.Error("a deleted token still opens")
	}
}

// What lies on the disk gives no one access.
func TestAtRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := l.Create("ci", User, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	data := testmachine.ReadFile(t, path)
	if strings.Contains(string(data), secret) || strings.Contains(string(data), strings.TrimPrefix(secret, prefix)) {
		t.Error("the file holds the secret")
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(secret))); !strings.EqualFold(l.Tokens[0].Hash, want) {
		t.Errorf("the file holds %s, want %s", l.Tokens[0].Hash, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

func TestExpiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	secret, err := l.Create("for a day", User, now, now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Find(secret, now.Add(23*time.Hour)); !ok {
		t.Error("it does not open before it has expired")
	}
	if _, ok := l.Find(secret, now.Add(24*time.Hour)); ok {
		t.Error("it opens after it has expired")
	}
}

// TestCreateAtOnce has many create tokens at once, each with a list that it
// read before the others wrote: all are there afterwards.
func TestCreateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	const many = 20
	lists := make([]*List, many)
	for i := range lists {
		var err error
		if lists[i], err = Open(path); err != nil {
			t.Fatal(err)
		}
	}
	secrets := make([]string, many)
	var all sync.WaitGroup
	for i, l := range lists {
		all.Go(func() {
			var err error
			if secrets[i], err = l.Create(fmt.Sprint("worker-", i), Worker, time.Now(), time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l, err := Open(path)
	if err != nil || len(l.Tokens) != many {
		t.Fatalf("%d of %d tokens were stored, %v", len(l.Tokens), many, err)
	}
	for i, secret := range secrets {
		if found, ok := l.Find(secret, time.Now()); !ok || found.Name != fmt.Sprint("worker-", i) {
			t.Errorf("token %d is %+v, %v", i, found, ok)
		}
	}
}
