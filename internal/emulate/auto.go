package emulate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// exitHostMemory is what a process exits with that needs more host memory than
// there is (library/emulate.h, EXIT_HOST_MEMORY).
const exitHostMemory = 77

// exitEndless is what a process exits with in a loop that made-up values keep
// going (python/memorymark_emulate/endless.py).
const exitEndless = 78

// runAuto runs a command with assumed values, and again from the start with
// computed ones if an assumed value decided something. Restarting says so.
func (d *Installation) runAuto(ctx context.Context, s Settings, c Command) (*Summary, error) {
	s.Values, s.giveUpLoops = Assumed, true
	rewind := rewinding(c.Stdin)
	assumed, err := d.run(ctx, s, c)
	if err != nil {
		return assumed, err
	}
	if assumed.typesMayBeWhy() && assumed.whyNotCompute() == "" && rewind() == "" {
		if plain, err := d.runPlain(ctx, s, c, assumed); err == nil && plain.ExitCode == 0 {
			assumed = plain
		}
	}
	why := assumed.missesValues()
	if why == "" {
		why = d.branchesMatter(ctx, s, c, assumed, rewind)
	}
	if why == "" {
		return assumed, nil
	}
	assumed.WhyComputed = why
	if obstacle := cmp.Or(assumed.whyNotCompute(), rewind()); obstacle != "" {
		assumed.note("values were not computed although " + why + ": " + obstacle)
		return assumed, nil
	}
	fmt.Fprintf(c.Stderr, "\nmemorymark: %s; the command runs again from the start, and every operator is computed on the CPU\n", why)
	if s.Seconds > 0 {
		s.Seconds = max(s.Seconds-int(assumed.Seconds), 1)
	}
	s.Values, s.Folder = Computed, filepath.Join(s.Folder, string(Computed))
	if err := os.Mkdir(s.Folder, 0o700); err != nil {
		return assumed, err
	}
	computed, err := d.run(ctx, s, c)
	switch {
	case computed != nil && computed.ExitCode == exitHostMemory:
		assumed.note("values were not computed although " + why + ": that needs as much host memory as the program takes on the GPU")
		return assumed, err
	case computed == nil || len(computed.Processes) == 0:
		assumed.note("values were not computed although " + why + ": the second run ended before it used the GPU")
		return assumed, err
	}
	computed.WhyComputed = why
	computed.Seconds += assumed.Seconds
	return computed, err
}

// missesValues says what an assumed value decided, "" if nothing: a size, an
// index or a branch, or how the command ended.
func (s *Summary) missesValues() string {
	if s.ExitCode == exitEndless && s.Failure != nil {
		return fmt.Sprintf("assumed values kept a loop going (%s)", s.Failure.Where)
	}
	for i := range s.Processes {
		for _, a := range s.Processes[i].Assumed {
			if a.Decided != "" {
				return fmt.Sprintf("an assumed value decided %s (%s at %s)", a.Decided, a.Function, a.Where)
			}
		}
	}
	if s.ExitCode == 0 || s.Failure.fromOutside() || (s.Fits != nil && !*s.Fits) {
		return ""
	}
	for i := range s.Processes {
		if a, may := s.Processes[i].numbersMayBeWhy(s.Failure); may {
			return fmt.Sprintf("the command failed after it read an assumed value (%s at %s)", a.Function, a.Where)
		}
	}
	return ""
}

// whyNotCompute says what speaks against computing values.
func (s *Summary) whyNotCompute() string {
	if s.Stopped {
		return "the time of --seconds was over"
	}
	if len(s.Processes) > 1 || s.GPUs > 1 {
		return "that is done for one process on one GPU; --values computed does it for others"
	}
	return ""
}

func (s *Summary) note(text string) {
	for i := range s.Processes {
		s.Processes[i].Notes = append(s.Processes[i].Notes, text)
	}
}
