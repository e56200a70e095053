package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"memorymark/internal/engine"
	"memorymark/internal/workbudget"
)

// say prints a line of progress.
func (e *env) say(format string, args ...any) {
	e.live().print(fmt.Sprintf(format, args...))
}

// live is the line of stderr that all progress of a command shares.
func (e *env) live() *liveLine {
	e.liveOnce.Do(func() { e.liveLine = &liveLine{w: e.stderr, terminal: isTerminal(e.stderr)} })
	return e.liveLine
}

// workEvery is how often a line says that work continues.
const workEvery = time.Second

// showWork shows on a terminal that work continues, while some of it is spent:
// other lines say what else happens.
func (e *env) showWork(work *workbudget.Budget, what string) (stop func()) {
	l := e.live()
	if !l.terminal {
		return func() {}
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		began, spent := time.Now(), work.Spent()
		tick := time.NewTicker(workEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				l.clear()
				return
			case now := <-tick.C:
				if s := work.Spent(); s != spent {
					spent = s
					l.replace(fmt.Sprintf("%s, %v", what, now.Sub(began).Round(time.Second)))
				}
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
	}
}

// liveEvents prints what an analysis does as it happens: on a terminal steps
// overwrite each other, elsewhere only whole probes are lines.
func (e *env) liveEvents() func(engine.MeasuringEvent) {
	l := e.live()
	return func(ev engine.MeasuringEvent) {
		switch ev.Kind {
		case engine.Trying, engine.StepDone:
			l.replace("  " + ev.String())
		default:
			l.print("  " + ev.String())
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
		fmt.Fprint(l.w, eraseLine, text)
		l.shown = true
	}
}

// print leaves a line behind.
func (l *liveLine) print(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	fmt.Fprintln(l.w, text)
}

// clear leaves nothing behind.
func (l *liveLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *liveLine) erase() {
	if l.shown {
		fmt.Fprint(l.w, eraseLine)
		l.shown = false
	}
}
