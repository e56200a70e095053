package emulate

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
)

// MaxGPUs is how many cards a program can see (emulate.h).
const MaxGPUs = 64

// Settings are what a program is run with.
type Settings struct {
	Card  *gpu.Card
	GPUs  int            // how many of them there are; 0 is one
	Limit bytesize.Bytes // the most that each gives out; 0 is what the card has

	Values    Values // where what the program reads comes from; "" is assumed
	Steps     int    // optimizer steps after which a process ends; 0 is never
	Seconds   int    // after which the command is ended; 0 is never
	OOMAtStep int    // the step that runs out of memory; 0 is none
	Record    bool   // a snapshot of each process
	Folder    string // where processes leave their reports, and snapshots

	otherBranches bool // where made-up numbers decide
	plainNumbers  bool // for made-up ones, which are not followed then
	giveUpLoops   bool // that made-up values keep going
}

// Environment is what a program's environment needs to have the device, given
// what it has: pairs as in os.Environ, to go behind it.
func (d *Installation) Environment(s Settings, lookup func(string) (string, bool)) []string {
	getenv := func(key string) string {
		value, _ := lookup(key)
		return value
	}
	env := []string{
		"LD_PRELOAD=" + before(filepath.Join(d.library, libraryName), getenv("LD_PRELOAD")),
		"LD_LIBRARY_PATH=" + before(d.library, getenv("LD_LIBRARY_PATH")),
		"PYTHONPATH=" + before(d.python, getenv("PYTHONPATH")),
		"TRITON_LIBCUDA_PATH=" + d.library,
		"MEMORYMARK_EMULATE_CARD=" + describe(s.Card),
	}
	add := func(key string, n int64) {
		if n > 0 {
			env = append(env, "MEMORYMARK_EMULATE_"+key+"="+strconv.FormatInt(n, 10))
		}
	}
	add("GPUS", int64(s.GPUs))
	add("LIMIT", int64(s.Limit))
	add("STEPS", int64(s.Steps))
	add("OOM_AT_STEP", int64(s.OOMAtStep))
	if s.Values != "" {
		env = append(env, "MEMORYMARK_EMULATE_VALUES="+string(s.Values))
	}
	if s.Seconds > 0 { // the end is not an error then, which the interpreter would print
		add("UNTIL", time.Now().Add(time.Duration(s.Seconds)*time.Second).Unix())
	}
	if s.otherBranches {
		env = append(env, "MEMORYMARK_EMULATE_BRANCHES=other")
	}
	if s.plainNumbers {
		env = append(env, "MEMORYMARK_EMULATE_NUMBERS=plain")
	}
	if s.giveUpLoops {
		env = append(env, "MEMORYMARK_EMULATE_LOOPS=given up")
	}
	if s.Record {
		env = append(env, "MEMORYMARK_EMULATE_RECORD=1")
	}
	if s.Folder != "" {
		env = append(env, "MEMORYMARK_EMULATE_FOLDER="+s.Folder)
	}
	if _, hidden := lookup("CUDA_VISIBLE_DEVICES"); hidden {
		env = append(env, "CUDA_VISIBLE_DEVICES="+numbers(max(s.GPUs, 1))) // it spoke of real cards
	}
	return env
}

// numbers counts from 0, as "0,1,2".
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(",", min(i, 1)) + strconv.Itoa(i))
	}
	return b.String()
}

func before(first, rest string) string {
	return strings.TrimSuffix(first+":"+rest, ":")
}
