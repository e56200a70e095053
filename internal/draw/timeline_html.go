package draw

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"

	"memorymark/internal/timeline"
)

//go:embed html/timeline.html
var timelineText string

//go:embed html/timeline.css
var timelineCSS string

// timelineScript is built from the sources of the page (web/src/standalone), so
// that browsers share one decoder and one renderer of timelines. It is
// committed: a build of the program needs no Node.js.
//
//go:embed html/timeline.js
var timelineScript string

var timelinePage = template.Must(template.New("timeline").Parse(timelineText))

// TimelineHTML writes a page that shows a timeline and needs nothing else: no
// network, no server. A timeline with the detail of timeline.Zoomable can be
// zoomed into.
//
// Strings of the timeline come from other people's programs. They reach the
// page as JSON, whose encoder escapes what could end a script element, and are
// shown as text.
func TimelineHTML(w io.Writer, tl *timeline.Timeline, style Style) error {
	data, err := json.Marshal(tl)
	if err != nil {
		return err
	}
	theme := ""
	if style.Light {
		theme = "light"
	}
	return timelinePage.Execute(w, struct {
		Title, Theme string
		Failure      *Failure
		CSS          template.CSS
		Timeline, JS template.JS
	}{style.Title, theme, style.Failure, template.CSS(timelineCSS), template.JS(data), template.JS(timelineScript)})
}
