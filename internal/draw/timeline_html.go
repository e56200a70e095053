package draw

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"image/color"
	"io"

	"memorymark/internal/timeline"
)

//go:embed html
var pages embed.FS

var timelinePage = template.Must(template.ParseFS(pages, "html/timeline.html"))

// TimelineHTML writes a page that shows a timeline and needs nothing else: no
// network, no server. A timeline with the detail of timeline.Zoomable is worth
// zooming into.
//
// Strings of the timeline come from other people's programs. They reach the
// page as JSON, whose encoder escapes what could end a script element, and are
// shown as text.
func TimelineHTML(w io.Writer, tl *timeline.Timeline, style Style) error {
	data, err := json.Marshal(tl)
	if err != nil {
		return err
	}
	theme, err := json.Marshal(newPageTheme(tl, style.theme()))
	if err != nil {
		return err
	}
	var script []byte
	for _, name := range []string{"data.js", "draw.js", "events.js"} {
		script = append(script, page(name)...)
	}
	return timelinePage.Execute(w, struct {
		Title               string
		CSS, Colors         template.CSS
		Timeline, Theme, JS template.JS
	}{
		style.Title,
		template.CSS(page("timeline.css")), pageColors(style.theme()),
		template.JS(data), template.JS(theme), template.JS(script),
	})
}

func page(name string) []byte {
	data, err := pages.ReadFile("html/" + name)
	if err != nil {
		panic(fmt.Sprintf("embedded page: %v", err))
	}
	return data
}

// pageTheme is a theme as the page's script reads it.
type pageTheme struct {
	Grid      string      `json:"grid"`
	Text      string      `json:"text"`
	Muted     string      `json:"muted"`
	Peak      string      `json:"peak"`
	Allocated string      `json:"allocated"`
	Reserved  string      `json:"reserved"`
	Failure   string      `json:"failure"`
	Phases    []string    `json:"phases"`
	Groups    []string    `json:"groups"` // by group
	Shades    [][3]string `json:"shades"` // by group
}

func newPageTheme(tl *timeline.Timeline, t *theme) pageTheme {
	out := pageTheme{
		Grid: hex(t.grid), Text: hex(t.text), Muted: hex(t.muted), Peak: hex(t.peak),
		Allocated: hex(t.allocated), Reserved: hex(t.reserved), Failure: hex(t.failure),
	}
	for _, c := range t.phases {
		out.Phases = append(out.Phases, hex(c))
	}
	for _, g := range tl.Groups {
		c := t.of(g.Color)
		out.Groups = append(out.Groups, hex(c))
		out.Shades = append(out.Shades, [3]string{hex(shade(c, -1)), hex(c), hex(shade(c, 1))})
	}
	return out
}

// pageColors declares the colours that the style sheet uses.
func pageColors(t *theme) template.CSS {
	css := ":root{"
	for _, v := range []struct {
		name  string
		color color.NRGBA
	}{{"background", t.background}, {"grid", t.grid}, {"text", t.text}, {"muted", t.muted}, {"peak", t.peak}} {
		css += "--" + v.name + ":" + hex(v.color) + ";"
	}
	return template.CSS(css + "}\n")
}
