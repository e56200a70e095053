// Package token keeps the secrets by which people and workers are let in. A
// secret is 32 random bytes and is shown once; the file holds only its SHA-256,
// which is enough for secrets that cannot be guessed.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Role is what the holder of a token may do.
type Role string

// The roles.
const (
	User   Role = "user"   // everything that the API offers
	Worker Role = "worker" // take jobs, report on them, upload their snapshots
)

// Roles are all of them.
var Roles = []Role{User, Worker}

// Token is one entry of the file.
type Token struct {
	Name    string    `json:"name"` // for people
	Role    Role      `json:"role"`
	Hash    string    `json:"sha256"` // of the secret, in hexadecimal digits
	Created time.Time `json:"created"`
}

// prefix makes secrets easy to recognise where they should not be, as in logs
// and repositories.
const prefix = "mm_"

// List is the tokens of a file.
type List struct {
	path   string
	Tokens []Token `json:"tokens"`
}

// Open reads the tokens of a file; one that does not exist has none.
func Open(path string) (*List, error) {
	l := &List{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("read tokens %s: %w", path, err)
	}
	return l, nil
}

// Create adds a token and returns its secret, which nothing can tell later.
func (l *List) Create(name string, role Role, now time.Time) (secret string, err error) {
	if name == "" || slices.ContainsFunc(l.Tokens, func(t Token) bool { return t.Name == name }) {
		return "", fmt.Errorf("%q is not a valid token name", name)
	}
	if !slices.Contains(Roles, role) {
		return "", fmt.Errorf("role %q: it must be user or worker", role)
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails since Go 1.24
	secret = prefix + hex.EncodeToString(random)
	l.Tokens = append(l.Tokens, Token{Name: name, Role: role, Hash: hash(secret), Created: now.UTC().Truncate(time.Second)})
	return secret, l.save()
}

// Delete removes a token.
func (l *List) Delete(name string) error {
	before := len(l.Tokens)
	l.Tokens = slices.DeleteFunc(l.Tokens, func(t Token) bool { return t.Name == name })
	if len(l.Tokens) == before {
		return fmt.Errorf("there is no token %q", name)
	}
	return l.save()
}

// Find returns the token of a secret. It looks at every token for as long, so
// that how long it takes tells nothing.
func (l *List) Find(secret string) (found Token, ok bool) {
	wanted := []byte(hash(secret))
	for _, t := range l.Tokens {
		if subtle.ConstantTimeCompare(wanted, []byte(strings.ToLower(t.Hash))) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// save writes a file that only its owner can read, whole or not at all.
func (l *List) save() (err error) {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(l.path), ".tokens-*") // made for its owner alone
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("write tokens: %w", err)
		}
	}()
	if _, err := f.Write(append(data, '\n')); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), l.path)
}
