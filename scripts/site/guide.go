package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// writeGuide writes the guide and the accuracy board as pages.
func (s *site) writeGuide() error {
	files, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		return err
	}
	for _, file := range append(files, others...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		at := guideAddress(file)
		title, body := markdown(string(data), func(to string) string { return guideLink(file, upFrom(at), to) })
		var b bytes.Buffer
		err = templates.ExecuteTemplate(&b, "text.html", map[string]any{
			"Title": title, "Description": title + ", from MemoryMark's documentation", "Body": template.HTML(body), //nolint:gosec // our own text, escaped
			"Up": template.HTML(upFrom(at)), "Head": template.HTML(s.previewTags(at, "preview.png")), //nolint:gosec // of ids
		})
		if err != nil {
			return err
		}
		if err := s.listed(at+"index.html", b.Bytes()); err != nil {
			return err
		}
	}
	pictures, err := filepath.Glob("docs/images/*")
	if err != nil {
		return err
	}
	for _, file := range pictures {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := s.write("images/"+filepath.Base(file), data); err != nil {
			return err
		}
	}
	table, err := os.ReadFile("docs/accuracy.csv")
	if err != nil {
		return err
	}
	css, err := static.ReadFile("static/pages.css")
	if err != nil {
		return err
	}
	preview, err := os.ReadFile("docs/images/page.png")
	if err != nil {
		return err
	}
	return errors.Join(s.write("docs/accuracy/accuracy.csv", table), s.write("pages.css", css), s.write("preview.png", preview))
}

// guideAddress is the page of a document.
func guideAddress(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".md")
	if name == "README" {
		return "docs/"
	}
	return "docs/" + name + "/"
}

// guideLink is where a link of a document leads on the site, empty if it leads to a file of
// the repository that the site does not have.
func guideLink(file, up, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") {
		return to
	}
	to, anchor, found := strings.Cut(to, "#")
	if found {
		anchor = "#" + anchor
	}
	target := path.Join(path.Dir(filepath.ToSlash(file)), to)
	if strings.HasPrefix(target, "docs/images/") {
		return up + strings.TrimPrefix(target, "docs/")
	}
	if page := guideAddress(target); path.Ext(target) == ".md" && isWritten(target) {
		return up + page + anchor
	}
	return ""
}

// others are the documents that the site has in addition to the guide.
var others = []string{"docs/accuracy.md", "docs/training-loops.md", "docs/cards.md", "docs/how-prediction-works.md", "docs/how-emulation-works.md"}

func isWritten(file string) bool {
	return path.Dir(file) == "docs/guide" || slices.Contains(others, file)
}

var (
	markCode  = regexp.MustCompile("`([^`]+)`")
	markImage = regexp.MustCompile(`!\[([^\]]*)\]\(([^)]+)\)`)
	markLink  = regexp.MustCompile(`\[([^\]]*)\]\(([^)]+)\)`)
	markBold  = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	markSlant = regexp.MustCompile(`\*([^*\s][^*]*)\*`)
	markItem  = regexp.MustCompile(`^(\s*)(?:[*-]|\d+\.) `)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// markdown writes the Markdown of our documents as HTML: what they use of it.
func markdown(text string, link func(string) string) (title, body string) {
	m := &converter{link: link}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		i += m.block(lines[i:])
	}
	return m.title, m.out.String()
}

type converter struct {
	title string
	out   strings.Builder
	link  func(string) string
}

// block converts the block that begins with the first line, and returns how many it has.
func (m *converter) block(lines []string) int {
	switch line := lines[0]; {
	case strings.TrimSpace(line) == "":
		return 1
	case strings.HasPrefix(line, "```"):
		n := 1
		for n < len(lines) && !strings.HasPrefix(lines[n], "```") {
			n++
		}
		fmt.Fprintf(&m.out, "<pre>%s</pre>\n", html.EscapeString(strings.Join(lines[1:n], "\n")))
		return n + 1
	case strings.HasPrefix(line, "#"):
		level := len(line) - len(strings.TrimLeft(line, "#"))
		text := strings.TrimSpace(line[level:])
		if m.title == "" {
			m.title = text
		}
		anchor := strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		fmt.Fprintf(&m.out, "<h%d id=\"%s\">%s</h%d>\n", level, anchor, m.inline(text), level)
		return 1
	case strings.HasPrefix(line, "|") && len(lines) > 1 && strings.HasPrefix(lines[1], "|"):
		return m.table(lines)
	case markItem.MatchString(line):
		return m.list(lines)
	}
	n := m.until(lines)
	fmt.Fprintf(&m.out, "<p>%s</p>\n", m.inline(strings.Join(lines[:n], "\n")))
	return n
}

// until counts the lines of a paragraph.
func (m *converter) until(lines []string) int {
	n := 1
	for n < len(lines) && strings.TrimSpace(lines[n]) != "" && !strings.HasPrefix(lines[n], "```") && !strings.HasPrefix(lines[n], "|") && !markItem.MatchString(lines[n]) {
		n++
	}
	return n
}

func (m *converter) table(lines []string) int {
	m.out.WriteString("<table>\n")
	n := 0
	for ; n < len(lines) && strings.HasPrefix(lines[n], "|"); n++ {
		if n == 1 {
			continue
		}
		cell := "td"
		if n == 0 {
			cell = "th"
		}
		m.out.WriteString("<tr>")
		row := strings.ReplaceAll(strings.Trim(strings.TrimSpace(lines[n]), "|"), `\|`, "\x00")
		for _, text := range strings.Split(row, "|") {
			fmt.Fprintf(&m.out, "<%s>%s</%s>", cell, m.inline(strings.ReplaceAll(strings.TrimSpace(text), "\x00", "|")), cell)
		}
		m.out.WriteString("</tr>\n")
	}
	m.out.WriteString("</table>\n")
	return n
}

func (m *converter) list(lines []string) int {
	kind := "ul"
	if line := strings.TrimSpace(lines[0]); line[0] >= '0' && line[0] <= '9' {
		kind = "ol"
	}
	fmt.Fprintf(&m.out, "<%s>\n", kind)
	n := 0
	for n < len(lines) && (markItem.MatchString(lines[n]) || n > 0 && strings.HasPrefix(lines[n], "  ") && strings.TrimSpace(lines[n]) != "") {
		item := markItem.ReplaceAllString(lines[n], "")
		for n++; n < len(lines) && strings.HasPrefix(lines[n], "  ") && !markItem.MatchString(lines[n]) && strings.TrimSpace(lines[n]) != ""; n++ {
			item += "\n" + strings.TrimSpace(lines[n])
		}
		fmt.Fprintf(&m.out, "<li>%s</li>\n", m.inline(item))
	}
	fmt.Fprintf(&m.out, "</%s>\n", kind)
	return max(n, 1)
}

// inline converts code, pictures, links and emphasis. Code is set aside: nothing in it is
// Markdown.
func (m *converter) inline(text string) string {
	var code []string
	text = markCode.ReplaceAllStringFunc(text, func(s string) string {
		code = append(code, "<code>"+html.EscapeString(s[1:len(s)-1])+"</code>")
		return fmt.Sprintf("\x01%d\x01", len(code)-1)
	})
	text = html.EscapeString(text)
	text = markImage.ReplaceAllStringFunc(text, func(s string) string {
		p := markImage.FindStringSubmatch(s)
		return fmt.Sprintf(`<img src="%s" alt="%s">`, m.link(p[2]), p[1])
	})
	text = markLink.ReplaceAllStringFunc(text, func(s string) string {
		p := markLink.FindStringSubmatch(s)
		if to := m.link(p[2]); to != "" {
			return fmt.Sprintf(`<a href="%s">%s</a>`, to, p[1])
		}
		return p[1]
	})
	text = markBold.ReplaceAllString(text, "<strong>$1</strong>")
	text = markSlant.ReplaceAllString(text, "<em>$1</em>")
	for i, c := range code {
		text = strings.Replace(text, fmt.Sprintf("\x01%d\x01", i), c, 1)
	}
	return text
}
