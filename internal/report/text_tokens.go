package report

import (
	"fmt"
	"io"
	"time"

	"memorymark/internal/token"
)

// Tokens are the users and workers of a server, without their secrets.
type Tokens struct {
	Tokens []TokenInfo `json:"tokens"`
}

// TokenInfo is one of them.
type TokenInfo struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// NewTokens lists tokens.
func NewTokens(tokens []token.Token) *Tokens {
	out := &Tokens{Tokens: []TokenInfo{}}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, TokenInfo{t.Name, string(t.Role), t.Created, t.Expires})
	}
	return out
}

// Write lists the tokens for people.
func (l *Tokens) Write(w io.Writer, width int) error {
	if len(l.Tokens) == 0 {
		_, err := fmt.Fprintln(w, "There are no tokens. Create one with memorymark serve token create NAME.")
		return err
	}
	t := table{columns: []column{{title: "NAME"}, {title: "ROLE"}, {title: "CREATED"}, {title: "EXPIRES"}}}
	for _, x := range l.Tokens {
		expires := "never"
		if !x.Expires.IsZero() {
			expires = x.Expires.Format(time.DateTime)
		}
		t.rows = append(t.rows, row{cells: []string{x.Name, x.Role, x.Created.Format(time.DateOnly), expires}})
	}
	t.write(w, width)
	return nil
}
