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

	"memorymark/internal/lockfile"
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
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

// expired reports whether a token opens nothing any more.
func (t *Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

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
	return l, l.read()
}

func (l *List) read() error {
	l.Tokens = nil
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	if err := json.Unmarshal(data, l); err != nil {
		return fmt.Errorf("read tokens %s: %w", l.path, err)
	}
	return nil
}

// Create adds a token and returns its secret, which nothing can tell later. It
// opens nothing after it has expired, if there is such a time.
func (l *List) Create(name string, role Role, now, expires time.Time) (secret string, err error) {
	if name == "" {
		return "", errors.New("a token needs a name")
	}
	if !slices.Contains(Roles, role) {
		return "", fmt.Errorf("role %q: it must be user or worker", role)
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails since Go 1.24
	secret = prefix + hex.EncodeToString(random)
	made := Token{Name: name, Role: role, Hash: hash(secret), Created: now.UTC().Truncate(time.Second), Expires: expires.UTC().Truncate(time.Second)}
	return secret, l.change(func() error {
		if slices.ContainsFunc(l.Tokens, func(t Token) bool { return t.Name == name }) {
			return fmt.Errorf("there is already a token %q", name)
		}
		l.Tokens = append(l.Tokens, made)
		return nil
	})
}

// Delete removes a token.
func (l *List) Delete(name string) error {
	return l.change(func() error {
		before := len(l.Tokens)
		l.Tokens = slices.DeleteFunc(l.Tokens, func(t Token) bool { return t.Name == name })
		if len(l.Tokens) == before {
			return fmt.Errorf("there is no token %q", name)
		}
		return nil
	})
}

// change changes the file as it is now, while no other process can: of two who
// create a token at once, neither loses it.
func (l *List) change(edit func() error) error {
	lock, err := lockfile.Wait(l.path + ".lock")
	if err != nil {
		return fmt.Errorf("change tokens: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := l.read(); err != nil {
		return err
	}
	if err := edit(); err != nil {
		return err
	}
	return l.save()
}

// Find returns the token of a secret, unless it has expired. It looks at every
// token for as long, so that how long it takes tells nothing.
func (l *List) Find(secret string, now time.Time) (found Token, ok bool) {
	wanted := []byte(hash(secret))
	for _, t := range l.Tokens {
		if subtle.ConstantTimeCompare(wanted, []byte(strings.ToLower(t.Hash))) == 1 && !t.expired(now) {
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
	if err := os.Rename(f.Name(), l.path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(l.path)) // a secret that was shown stays good when the power fails
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
