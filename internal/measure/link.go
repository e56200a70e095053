package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"memorymark/internal/sandbox"
)

// Link carries lines to and from a prober: a process, or the recording of one.
type Link interface {
	Send(line []byte) error
	// Receive returns the next line, io.EOF when the prober is gone.
	Receive() ([]byte, error)
	// Output returns the last that the prober printed.
	Output() string
	// Close ends the prober and all it started.
	Close() error
}

// process is a prober that runs.
type process struct {
	cmd      *exec.Cmd
	requests *os.File
	answers  *os.File
	lines    *bufio.Reader
	stdout   tail
	stderr   tail
	ended    chan struct{}
	stopped  chan error // why its sandbox was ended, nil if it was not; nil without one
	hurry    <-chan struct{}
}

// How often the memory of a prober is counted. Code writes a GiB a second; a session
// without any is watched for as long as it is open, also while it waits.
const (
	countCode  = 100 * time.Millisecond
	countModel = time.Second
)

// MaxLine is the longest line that a prober may send.
const MaxLine = 16 << 20

// startProber takes the current folder off the path, where a file called
// inspect.py would hide Python's own.
const startProber = "import sys; sys.path[0] = sys.argv[1]; from " + proberModule + ".__main__ import main; main(sys.argv[2:])"

// command is the prober, whose files are in a folder, to be run as we are.
func command(p Python, folder string, env []string) *exec.Cmd {
	// Not CommandContext: the session ends the prober itself, group and all.
	c := exec.Command(p.Path, proberArguments(folder)...) //nolint:noctx // see above
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = ownGroup() // Ctrl-C is for us
	return c
}

func proberArguments(folder string) []string {
	return []string{"-u", "-c", startProber, folder, "3", "4"}
}

// startProcess runs the prober with pipes of its own, so that whatever user
// code prints cannot be taken for an answer. It may hold memory bytes of this
// machine's memory, which are counted at intervals; 0 for any number. Once hurry is
// closed it is not waited for.
func startProcess(c *exec.Cmd, memory int64, every time.Duration, hurry <-chan struct{}) (*process, error) {
	theirRequests, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirRequests.Close(), requests.Close())
	}
	w := &process{cmd: c, requests: requests, answers: answers, lines: bufio.NewReaderSize(answers, 1<<16), ended: make(chan struct{}), hurry: hurry}
	w.cmd.ExtraFiles = []*os.File{theirRequests, theirAnswers}
	w.cmd.Stdout, w.cmd.Stderr = &w.stdout, &w.stderr
	w.cmd.WaitDelay = 2 * time.Second // for output that something else holds open
	err = w.cmd.Start()
	err = errors.Join(err, theirRequests.Close(), theirAnswers.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), requests.Close(), answers.Close())
	}
	watching, stop := context.WithCancel(context.Background())
	if memory > 0 {
		w.stopped = make(chan error, 1)
		go func() { w.stopped <- sandbox.Watch(watching, c.Process.Pid, memory, every) }()
	}
	go func() {
		defer stop()
		_ = w.cmd.Wait() // its lines say more than its status
		close(w.ended)
	}()
	return w, nil
}

// end is why no more lines come. All that the prober printed has arrived then.
func (w *process) end() error {
	if w.stopped == nil {
		w.endsWithin(killGrace)
		return io.EOF
	}
	if w.endsWithin(emptyGrace) {
		if err := <-w.stopped; err != nil {
			return err
		}
	}
	return io.EOF
}

// Send implements Link.
func (w *process) Send(line []byte) error {
	_, err := w.requests.Write(append(line, '\n'))
	return err
}

// Receive implements Link.
func (w *process) Receive() ([]byte, error) {
	var line []byte
	for {
		part, err := w.lines.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, io.EOF) {
			err = w.end()
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case len(line) > MaxLine:
			return nil, fmt.Errorf("the prober sent a line of more than %d MiB", MaxLine>>20)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, fmt.Errorf("the prober ended in the middle of a line: %.80q", line)
		default:
			return nil, err
		}
	}
}

// Output implements Link.
func (w *process) Output() string {
	if text := w.stderr.lines(20); text != "" {
		return text
	}
	return w.stdout.lines(20)
}

// Grace periods: a prober that is told to end kills its children first.
const (
	endGrace  = 3 * time.Second
	killGrace = 2 * time.Second
	// emptyGrace is for a sandbox, whose memory the kernel gives back first.
	emptyGrace = 30 * time.Second
	// hurryGrace is instead of each of them where this process is told to end.
	hurryGrace = 150 * time.Millisecond
)

// Close implements Link.
func (w *process) Close() error {
	err := w.requests.Close() // the prober's sign to end
	if !w.endsWithin(endGrace) {
		endGroup(w.cmd.Process.Pid, false)
		if !w.endsWithin(killGrace) {
			endGroup(w.cmd.Process.Pid, true)
			w.endsWithin(killGrace)
		}
	}
	return errors.Join(err, w.answers.Close())
}

func (w *process) endsWithin(d time.Duration) bool {
	select {
	case <-w.ended:
		return true
	case <-time.After(d):
		return false
	case <-w.hurry:
	}
	select {
	case <-w.ended:
		return true
	case <-time.After(min(d, hurryGrace)):
		return false
	}
}
