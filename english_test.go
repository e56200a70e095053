package memorymark_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"memorymark/internal/testmachine"
)

// refused are words that readers had to translate, and what to write instead.
// docs/architecture.md has the whole glossary; here is what is never right in a
// comment or a message. A phrase that matches allowed is fine.
var refused = []struct {
	word    string // a regular expression for whole words
	allowed string // phrases that contain it and are English
	say     string
}{
	{word: `rooms?`, say: "package, space, size"},
	{word: `guests?`, say: "submitted program, unloaded module"},
	{word: `homes?`, allowed: `\bHOME\b|[Hh]ome (directory|folder|page)|Home and End`, say: "placement, device"},
	{word: `houses?|doors?`, say: "package, entry point"},
	{word: `foster\w*`, say: "adopt, take over"},
	{word: `holes?`, say: "gap, vulnerability"},
	{word: `(some|no|any|every)body`, say: "someone, no one, or name who it is"},
	{word: `beside`, say: "next to, with, in addition to"},
	{word: `anew|thereof|therein|thereby`, say: "again, of it"},
	{word: `hope[sd]?|hoping`, say: "expect"},
	{word: `mend(s|ed|ing)?`, say: "fix, repair"},
	{word: `so many`, say: "that many, n"},
	{word: `(held|holds?|holding) (it |them )?to`, say: "verified against"},
	{word: `go(es)? on|went on|going on`, say: "continue"},
	{word: `besides`, say: "in addition, apart from"},
	{word: `in the midst`, say: "during, in the middle"},
	{word: `in vain`, say: "without success, or what happens instead"},
	{word: `of one's own`, say: "the user's own"},
	{word: `what for`, say: "why, for what"},
	{word: `lets? go( of)?`, say: "release, drop, free"},
	{word: `stand(s|ing)? in (a |the )?line|waits? in (a |the )?line`, say: "queue"},
}

// refusedNames are the same for the words of an identifier.
var refusedNames = map[string]string{
	"room": "size, space", "rooms": "sizes", "guest": "program", "guests": "programs", "home": "placement", "homes": "placements",
	"house": "package", "door": "entry", "foster": "adopt", "hole": "gap", "holes": "gaps",
	"somebody": "user", "nobody": "no user", "anybody": "user", "everybody": "all users", "beside": "with, next", "anew": "again", "hope": "expected",
}

func TestEnglishText(t *testing.T) {
	for i, r := range refused {
		pattern := regexp.MustCompile(`(?i)\b(` + r.word + `)\b`)
		allowed := regexp.MustCompile(`^\b$`)
		if r.allowed != "" {
			allowed = regexp.MustCompile(r.allowed)
		}
		for _, c := range comments(t) {
			for line, text := range c.lines {
				if found := pattern.FindString(allowed.ReplaceAllString(text, "")); found != "" {
					t.Errorf("%s:%d: %q: write %s", c.file, line, found, refused[i].say)
				}
			}
		}
	}
}

func TestEnglishNames(t *testing.T) {
	for _, file := range sources(t, ".go") {
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range declared(parsed) {
			words := camelWords(id.Name)
			for _, word := range words {
				if say := refusedNames[strings.ToLower(word)]; say != "" {
					t.Errorf("%s: %s: write %s", fset.Position(id.Pos()), id.Name, say)
				}
			}
			if strings.ToLower(words[0]) == "most" && len(words) > 1 && !slices.Contains([]string{"Recent", "Frequent", "Used", "Similar"}, words[1]) {
				t.Errorf("%s: %s: write max", fset.Position(id.Pos()), id.Name)
			}
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Type.Results == nil && participle.MatchString(f.Name.Name) {
				t.Errorf("%s: %s returns nothing: name what it does", fset.Position(f.Pos()), f.Name.Name)
			}
		}
	}
}

var participle = regexp.MustCompile(`^[a-z]*([^e]ed|gone|made|kept|held|left|sent|taken|given|known|found|understood)$|^goOn$`)

// declared returns the identifiers that a file declares.
func declared(file *ast.File) (out []*ast.Ident) {
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id, ok := e.(*ast.Ident); ok {
				out = append(out, id)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			out = append(out, n.Name)
		case *ast.TypeSpec:
			out = append(out, n.Name)
		case *ast.ValueSpec:
			out = append(out, n.Names...)
		case *ast.Field:
			out = append(out, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return out
}

// camelWords splits an identifier: readHTTPBody is read, HTTP, Body.
func camelWords(name string) (out []string) {
	start := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			out = append(out, string(runes[start:i]))
			start = i
		}
	}
	return out
}

// commented is what a file says by line: comments and, in Go, messages.
type commented struct {
	file  string
	lines map[int]string
}

func comments(t *testing.T) (out []commented) {
	t.Helper()
	for _, end := range []string{".go", ".py", ".c", ".h", ".ts", ".tsx", ".mjs", ".css"} {
		for _, file := range sources(t, end) {
			c := commented{file: file, lines: make(map[int]string)}
			source := testmachine.ReadFile(t, file)
			if end == ".go" {
				goComments(t, c, source)
			} else {
				scanComments(c, source)
			}
			out = append(out, c)
		}
	}
	return out
}

func goComments(t *testing.T, c commented, source []byte) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, c.file, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			c.add(fset.Position(comment.Pos()).Line, comment.Text)
		}
	}
	if strings.HasSuffix(c.file, "_test.go") {
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") { // errors and help
			c.add(fset.Position(text.Pos()).Line, text.Value)
		}
		return true
	})
}

func (c commented) add(line int, text string) {
	for text := range strings.Lines(text) {
		c.lines[line] += text
		line++
	}
}

// inPython and inC find comments, and strings, so that what is like a comment in
// a string is none. Docstrings are comments too.
var (
	inPython = regexp.MustCompile(`"""[\s\S]*?"""|#.*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
	inC      = regexp.MustCompile("/\\*[\\s\\S]*?\\*/|//.*|\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'")
)

func scanComments(c commented, source []byte) {
	pattern, starts := inC, []string{"/*", "//"}
	if strings.HasSuffix(c.file, ".py") {
		pattern, starts = inPython, []string{`"""`, "#"}
	}
	for _, at := range pattern.FindAllIndex(source, -1) {
		text := string(source[at[0]:at[1]])
		if slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(text, s) }) {
			c.add(1+strings.Count(string(source[:at[0]]), "\n"), text)
		}
	}
}

// sources are the files that people write.
func sources(t *testing.T, end string) []string {
	t.Helper()
	return slices.DeleteFunc(goFiles(t, end), func(file string) bool {
		return strings.HasPrefix(file, "web/dist/") || file == "english_test.go"
	})
}
