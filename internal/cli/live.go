package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"memorymark/internal/analysis"
)

// say prints a line of progress.
func (e *env) say(format string, args ...any) {
	fmt.Fprintf(e.stderr, format+"\n", args...)
}

// liveEvents prints what an analysis does as it happens: on a terminal steps
// overwrite each other, elsewhere only whole probes are lines.
func (e *env) liveEvents() func(analysis.Event) {
	l := &liveLine{w: e.stderr, terminal: isTerminal(e.stderr)}
	return func(ev analysis.Event) {
		switch ev.Kind {
		case analysis.Trying, analysis.StepDone:
			l.replace(ev.String())
		default:
			l.print(ev.String())
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// liveLine is the last line of a terminal, which changes.
type liveLine struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	shown    bool
}

const eraseLine = "\r\x1b[K"

// replace shows a line for as long as there is no other.
func (l *liveLine) replace(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		fmt.Fprint(l.w, eraseLine, "  ", text)
		l.shown = true
	}
}

// print leaves a line behind.
func (l *liveLine) print(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.w, eraseLine)
		l.shown = false
	}
	fmt.Fprintf(l.w, "  %s\n", text)
}
