package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"memorymark/internal/bytesize"
)

const (
	progressDelay = 300 * time.Millisecond // what is faster needs no bar
	progressEvery = 100 * time.Millisecond
	progressWidth = 24
)

// progress passes a reader on, stops it when the context ends, and draws a bar
// on stderr if that is a terminal and reading takes long enough to wonder.
type progress struct {
	io.Reader
	ctx   context.Context //nolint:containedctx // an io.Reader has no other way to be stopped
	w     io.Writer       // nil: draw nothing
	label string
	read  int64
	total int64     // 0 if not known
	next  time.Time // when to draw
	drawn bool
	err   error // what reading failed with, as opposed to what was read
}

func (e *env) newProgress(ctx context.Context, r io.Reader, label string, total int64) *progress {
	p := &progress{Reader: r, ctx: ctx, label: label, total: total, next: time.Now().Add(progressDelay)}
	if f, ok := e.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = f
	}
	return p
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // readers return io.EOF itself
		p.err = err
	}
	if now := time.Now(); p.w != nil && now.After(p.next) {
		p.next = now.Add(progressEvery)
		p.drawn = true
		fmt.Fprint(p.w, "\r"+p.bar()+"\x1b[K")
	}
	return n, err
}

// Len returns how much is left to read, 0 if that is not known: a reader can
// allocate that much at once.
func (p *progress) Len() int { return int(max(p.total-p.read, 0)) }

func (p *progress) bar() string {
	if p.total == 0 {
		return fmt.Sprintf("%s  %v", p.label, bytesize.Bytes(p.read))
	}
	done := min(int(p.read*progressWidth/p.total), progressWidth)
	return fmt.Sprintf("%s  [%s%s] %3d %%  %v of %v", p.label,
		strings.Repeat("#", done), strings.Repeat(".", progressWidth-done),
		min(p.read*100/p.total, 100), bytesize.Bytes(p.read), bytesize.Bytes(p.total))
}

// clear removes the bar.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
