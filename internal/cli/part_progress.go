package cli

import (
	"fmt"
	"strings"
	"time"

	"memorymark/internal/study"
)

// partProgress tells on stderr how far a study, a plan or a file of workloads has
// come: as a bar where that is a terminal, else as a line now and then, so that logs
// of long runs show it and short ones stay quiet.
type partProgress struct {
	e        *env
	parts    string // what is counted: cells of a study, parts of a plan, workloads
	terminal bool
	next     time.Time // when to tell
	last     study.RunProgress
}

// logEvery is how often a log hears of progress.
const logEvery = 15 * time.Second

func (e *env) newPartProgress(parts string) *partProgress {
	p := &partProgress{e: e, parts: parts, terminal: isTerminal(e.stderr), next: time.Now().Add(progressDelay)}
	if !p.terminal {
		p.next = time.Now().Add(logEvery)
	}
	return p
}

// tell is called after each part. One that is nil tells nothing.
func (p *partProgress) tell(now study.RunProgress) {
	if p == nil {
		return
	}
	p.last = now
	if time.Now().Before(p.next) {
		return
	}
	if p.terminal {
		p.next = time.Now().Add(progressEvery)
		p.e.live().replace(progressLine(now, p.parts))
		return
	}
	p.next = time.Now().Add(logEvery)
	fmt.Fprintln(p.e.stderr, progressLine(now, p.parts))
}

func progressLine(p study.RunProgress, parts string) string {
	done := p.Done * progressWidth / max(p.Total, 1)
	s := fmt.Sprintf("[%s%s] %d of %d %s", strings.Repeat("#", done), strings.Repeat(".", progressWidth-done), p.Done, p.Total, parts)
	if p.Left > 0 {
		s += fmt.Sprintf(", about %v left", p.Left.Round(time.Second))
	}
	return s
}

// end removes the bar, and says what an interrupted run has done.
func (p *partProgress) end(err error, resume string) {
	if p == nil {
		return
	}
	p.e.live().clear()
	if err != nil && p.last.Done > 0 && p.last.Done < p.last.Total {
		p.e.say("%d of %d %s are done; %s", p.last.Done, p.last.Total, p.parts, resume)
	}
}
