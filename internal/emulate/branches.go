package emulate

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A program may compare a made-up number that `item` returned: to stop early, to
// keep the best model, to skip a step. Most such branches change no peak, and to
// compute every operator would take long. So the program runs once more, silently,
// and takes the other branches. Only if its peaks then differ do numbers matter.

const (
	// longestOther is how long a command may have taken that is run once more for this.
	longestOther = 600
	// otherGrace is what the run with other branches may take in addition to twice as long as the first.
	otherGrace = 10
)

// branchesMatter says why numbers have to be computed, "" if they need not be.
func (d *Installation) branchesMatter(ctx context.Context, s Settings, c Command, assumed *Summary, rewind func() string) string {
	where := assumed.branch()
	if where == "" {
		return ""
	}
	obstacle := assumed.whyNotCompute()
	if obstacle == "" && assumed.Seconds > longestOther {
		obstacle = "the command took too long to run it once more"
	}
	if obstacle == "" {
		obstacle = rewind()
	}
	if obstacle != "" {
		assumed.note(fmt.Sprintf("numbers that were made up may have decided a branch or a size (%s); whether that matters was not tried: %s", where, obstacle))
		return ""
	}
	fmt.Fprintf(c.Stderr, "\nmemorymark: numbers that were made up may have decided a branch or a size (%s); the command runs once more, silently, and takes the other branches\n", where)
	other, err := d.takeOtherBranches(ctx, s, c, assumed)
	if err == nil && other.ExitCode == 0 && samePeaks(assumed, other) {
		assumed.note(fmt.Sprintf("numbers that were made up may have decided a branch or a size (%s); with others and the other branches the peaks are the same", where))
		return ""
	}
	return fmt.Sprintf("an assumed value decided a branch or a size (%s): with another the command takes other memory or fails", where)
}

func (d *Installation) takeOtherBranches(ctx context.Context, s Settings, c Command, assumed *Summary) (*Summary, error) {
	s.otherBranches, s.Record, s.Folder = true, false, filepath.Join(s.Folder, "other")
	s.Seconds = 2*int(assumed.Seconds) + otherGrace
	if err := os.Mkdir(s.Folder, 0o700); err != nil {
		return nil, err
	}
	return d.run(ctx, s, Command{Args: c.Args, Stdin: c.Stdin, Stdout: io.Discard, Stderr: io.Discard})
}

// branch is the first line that compared a made-up number, if the command went well.
func (s *Summary) branch() string {
	for i := range s.Processes {
		if b := s.Processes[i].Branches; s.ExitCode == 0 && len(b) > 0 {
			return b[0]
		}
	}
	return ""
}

func samePeaks(a, b *Summary) bool {
	if len(a.Processes) != 1 || len(b.Processes) != 1 {
		return false
	}
	x, y := a.Processes[0].Peak(), b.Processes[0].Peak()
	return x.Allocated == y.Allocated && x.Reserved == y.Reserved
}

// cannotBeNumbers are errors that no number is the reason of.
var cannotBeNumbers = []string{
	"ImportError", "ModuleNotFoundError", "FileNotFoundError", "FileExistsError", "PermissionError", "NotADirectoryError", "IsADirectoryError",
	"ConnectionError", "NameError", "SyntaxError", "IndentationError", "NotImplementedError", "KeyboardInterrupt",
}

// byArithmetic are errors of functions that take a number without comparing it in the program, as math.log does.
var byArithmetic = []string{"ValueError", "ZeroDivisionError", "OverflowError", "FloatingPointError"}

// numbersMayBeWhy reports whether a process that failed may have done so because
// of made-up numbers. Where those that `item` returned went is known.
func (p *Process) numbersMayBeWhy(f *Failure) (Assumption, bool) {
	kind := ""
	if f != nil {
		kind, _, _ = strings.Cut(f.Exception, ":")
	}
	if slices.Contains(cannotBeNumbers, kind) {
		return Assumption{}, false
	}
	for _, a := range p.Assumed {
		if !a.Followed || len(p.Branches) > 0 || kind == "" || slices.Contains(byArithmetic, kind) {
			return a, true
		}
	}
	return Assumption{}, false
}

// typesMayBeWhy reports whether a command may have failed because of the type of
// made-up numbers: that is float's subclass, and `type(x) is float` says no.
func (s *Summary) typesMayBeWhy() bool {
	if len(s.Processes) != 1 || s.Failure == nil {
		return false
	}
	kind, _, _ := strings.Cut(s.Failure.Exception, ":")
	followed := func(a Assumption) bool { return a.Followed }
	return slices.Contains([]string{"AssertionError", "TypeError"}, kind) && slices.ContainsFunc(s.Processes[0].Assumed, followed)
}

// runPlain runs a command again with numbers whose type is float. Where they go is not known then.
func (d *Installation) runPlain(ctx context.Context, s Settings, c Command, failed *Summary) (*Summary, error) {
	fmt.Fprintf(c.Stderr, "\nmemorymark: the command failed after it read a number that was made up; it runs again from the start, with plain numbers\n")
	s.plainNumbers, s.Folder = true, filepath.Join(s.Folder, "plain")
	if s.Seconds > 0 {
		s.Seconds = max(s.Seconds-int(failed.Seconds), 1)
	}
	if err := os.Mkdir(s.Folder, 0o700); err != nil {
		return nil, err
	}
	plain, err := d.run(ctx, s, c)
	if plain != nil {
		plain.Seconds += failed.Seconds
		plain.note("the program asks for the type of numbers, so that it got plain numbers; whether those that were made up decided a branch is not known")
	}
	return plain, err
}
