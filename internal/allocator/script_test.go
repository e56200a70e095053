package allocator

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// TestScripts runs testdata/*.alloc; testdata/README.md describes the language.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.alloc")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".alloc"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s *script
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "begin" {
			s, err = newScript(words[1:])
		} else if s == nil {
			err = errors.New("a script starts with begin")
		} else if err = s.run(words); err == nil {
			err = s.a.check()
		}
		if err != nil {
			t.Fatalf("%s:%d: %s: %v", file, n, strings.TrimSpace(line), err)
		}
	}
}

// script is the state of a running script.
type script struct {
	a     *cachingAllocator
	names map[string]blockIndex
	calls *callLog
}

// callLog is a driver that remembers what it was asked.
type callLog struct {
	modelDriver
	calls []string
}

func (c *callLog) log(what string, size int64) {
	c.calls = append(c.calls, fmt.Sprintf("%s %s", what, bytesize.Bytes(size)))
}

func (c *callLog) malloc(size int64) (uint64, bool) {
	c.log("alloc", size)
	return c.modelDriver.malloc(size)
}

func (c *callLog) free(addr uint64, size int64) { c.log("free", size); c.modelDriver.free(addr, size) }

func (c *callLog) mapPages(addr uint64, size int64) bool {
	c.log("map", size)
	return c.modelDriver.mapPages(addr, size)
}

func (c *callLog) unmapPages(addr uint64, size int64) { c.log("unmap", size) }

func newScript(settings []string) (*script, error) {
	opts := Options{Streams: []uint64{0, 1, 2}}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		var err error
		var size bytesize.Bytes
		switch key {
		case "expandable_segments":
			opts.Settings.ExpandableSegments = true
		case "max_split_size":
			size, err = bytesize.Parse(value)
			opts.Settings.MaxSplitSize = int64(size)
		case "limit":
			size, err = bytesize.Parse(value)
			opts.Limit = int64(size)
		case "gc_threshold":
			opts.Settings.GCThreshold, err = strconv.ParseFloat(value, 64)
		case "roundup":
			var d int64
			d, err = strconv.ParseInt(value, 10, 64)
			for i := range opts.Settings.RoundupDivisions {
				opts.Settings.RoundupDivisions[i] = d
			}
		default:
			err = errors.New("unknown setting")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
	}
	calls := &callLog{modelDriver: *newModelDriver(1 << 40)}
	return &script{a: newAllocator(calls, opts), names: make(map[string]blockIndex), calls: calls}, nil
}

func (s *script) run(words []string) error {
	switch words[0] {
	case "alloc":
		return s.alloc(words[1], words[2], words[3:])
	case "free":
		for _, name := range words[1:] {
			s.a.free(s.names[name])
		}
	case "free_requested":
		s.a.freeRequested(s.names[words[1]])
	case "free_completed":
		s.a.freeCompleted(s.names[words[1]])
	case "empty_cache":
		s.a.releaseCachedBlocks()
	case "reset_peaks":
		s.a.stats.resetPeaks()
	case "expect":
		return s.expect(words[1:])
	default:
		return errors.New("unknown command")
	}
	return nil
}

func (s *script) alloc(name, size string, rest []string) error {
	n, err := bytesize.Parse(size)
	if err != nil {
		return err
	}
	r := request{Size: int64(n), ID: trace.None}
	wantOOM := false
	for _, word := range rest {
		switch word {
		case "oom":
			wantOOM = true
		case "stream=1":
			r.Stream = 1
		case "pool=1":
			r.Pool = trace.PoolID{1, 0}
		default:
			return fmt.Errorf("unknown word %s", word)
		}
	}
	h, err := s.a.malloc(r)
	switch {
	case wantOOM && err == nil:
		return errors.New("it fits")
	case !wantOOM && err != nil:
		return err
	}
	s.names[name] = h
	return nil
}

// expect checks "NAME at OFFSET of SEGMENT", "calls …" or "STATISTIC VALUE".
func (s *script) expect(words []string) error {
	switch {
	case words[0] == "calls":
		got := strings.ReplaceAll(strings.ReplaceAll(strings.Join(s.calls.calls, " "), ".00", ""), " MiB", "MiB")
		s.calls.calls = nil
		if want := strings.Join(words[1:], " "); got != want {
			return fmt.Errorf("the driver saw %q", got)
		}
		return nil
	case len(words) == 5 && words[1] == "at":
		return s.expectAt(words[0], words[2], words[4])
	}
	want, err := bytesize.Parse(words[1])
	if err != nil {
		return err
	}
	got, err := s.a.stats.byName(words[0])
	if err == nil && got != int64(want) {
		err = fmt.Errorf("it is %d", got)
	}
	return err
}

func (s *script) expectAt(name, offset, segment string) error {
	addr := s.a.addr(s.names[name])
	for _, seg := range s.a.snapshot() {
		if addr < seg.Addr || addr >= seg.Addr+uint64(seg.Size) {
			continue
		}
		wantOffset, err := bytesize.Parse(offset)
		wantSize, err2 := bytesize.Parse(segment)
		if at := int64(addr - seg.Addr); err != nil || err2 != nil || at != int64(wantOffset) || seg.Size != int64(wantSize) {
			return fmt.Errorf("it is at %v of %v", bytesize.Bytes(at), bytesize.Bytes(seg.Size))
		}
		return nil
	}
	return errors.New("it is in no segment")
}

// byName finds a statistic by its key in torch.cuda.memory_stats.
func (s *Stats) byName(key string) (int64, error) {
	counts := map[string]int64{
		"num_alloc_retries": s.Retries, "num_ooms": s.OutOfMemory, "num_sync_all_streams": s.Syncs,
		"num_device_alloc": s.DeviceAllocs, "num_device_free": s.DeviceFrees,
	}
	if n, ok := counts[key]; ok {
		return n, nil
	}
	arrays := map[string]*StatArray{
		"allocation": &s.Allocations, "segment": &s.Segments, "active": &s.Active, "inactive_split": &s.InactiveSplit,
		"allocated_bytes": &s.AllocatedBytes, "reserved_bytes": &s.ReservedBytes, "active_bytes": &s.ActiveBytes,
		"inactive_split_bytes": &s.InactiveSplitBytes, "requested_bytes": &s.RequestedBytes,
		"oversize_allocations": {s.OversizeAllocations}, "oversize_segments": {s.OversizeSegments},
	}
	parts := strings.Split(key, ".")
	if len(parts) == 2 { // oversize_* have no pools
		parts = []string{parts[0], "all", parts[1]}
	}
	pools := map[string]int{"all": All, "small_pool": smallPool, "large_pool": largePool}
	if array, ok := arrays[parts[0]]; ok && len(parts) == 3 {
		stat := array[pools[parts[1]]]
		values := map[string]int64{"current": stat.Current, "peak": stat.Peak, "allocated": stat.Allocated, "freed": stat.Freed}
		if n, ok := values[parts[2]]; ok {
			return n, nil
		}
	}
	return 0, fmt.Errorf("no statistic %q", key)
}
