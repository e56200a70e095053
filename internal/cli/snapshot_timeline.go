package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/draw"
	"memorymark/internal/report"
	"memorymark/internal/timeline"
)

type timelineFlags struct {
	device         int
	output, format string
	detail         int
	byStack        bool
	from, to       int
	style          draw.Style
}

// timelineInfo is what --json says of a picture that was written.
type timelineInfo struct {
	File      string `json:"file"`
	Output    string `json:"output"`
	Format    string `json:"format"`
	Device    int    `json:"device"`
	From      int    `json:"from_event"`
	To        int    `json:"to_event"`
	PeakEvent int    `json:"peak_event"`
	PeakBytes int64  `json:"peak_requested_bytes"`
}

func newSnapshotTimeline(e *env) *cobra.Command {
	var f timelineFlags
	c := &cobra.Command{
		Use:   "timeline FILE",
		Short: "Draw active memory over time, as SVG, PNG or HTML",
		Long: "Draws what was live over the events of a snapshot, coloured by category, with the peak,\n" +
			"optimizer steps, out-of-memory errors and reserved memory.\n\n" +
			"The picture is written to the current folder and named after the snapshot; -o sets another\n" +
			"file, and -o - writes to standard output. The file name determines the format.",
		Example: "  memorymark snapshot timeline oom.pickle\n" +
			"  memorymark snapshot timeline oom.pickle -o oom.html\n" +
			"  memorymark snapshot timeline oom.pickle -o - --format png > oom.png",
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), e, args[0]) },
	}
	addDeviceFlag(c, &f.device)
	flags := c.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write, - for standard output")
	flags.StringVar(&f.format, "format", "", "`format`: svg, png or html (default: from the file name)")
	flags.IntVar(&f.detail, "detail", 0, "draw the `N` largest allocations individually and the rest as one band (default 2000)")
	flags.IntVar(&f.from, "from", 0, "start at event `N`")
	flags.IntVar(&f.to, "to", 0, "stop before event `N` (default: the end)")
	flags.BoolVar(&f.byStack, "by-stack", false, "colour by the code that allocated, not by category")
	flags.BoolVar(&f.style.Light, "light", false, "use a white background, for print; an html page follows the reader's system else")
	flags.IntVar(&f.style.Width, "width", 0, "width in `pixels` (default 1600)")
	flags.IntVar(&f.style.Height, "height", 0, "height in `pixels` (default 900)")
	return c
}

func (f *timelineFlags) run(ctx context.Context, e *env, path string) error {
	output, drawn, err := f.target(path)
	if err != nil {
		return err
	}
	r, err := e.openRecording(ctx, path, f.device)
	if err != nil {
		return err
	}
	tl, err := r.Timeline(f.timelineOptions())
	if err != nil {
		return badUsage("", "%s: %w", path, err)
	}
	f.style.Title = filepath.Base(path)
	if f.format == "html" {
		info, err := r.Info()
		if err != nil {
			return err
		}
		if n := len(info.Failures); n > 0 {
			f.style.Failure = report.Failure(&info.Failures[n-1])
		}
	}
	write := func(w io.Writer) error { return drawn(w, tl, f.style) }
	if output == "-" {
		return write(e.stdout)
	}
	if err := writeFile(output, write); err != nil {
		return err
	}
	info := timelineInfo{
		File: path, Output: output, Format: f.format, Device: r.Device, From: tl.From, To: tl.To,
		PeakEvent: tl.Peak.Event, PeakBytes: tl.Peak.Bytes,
	}
	return e.print(info, func(w io.Writer, _ int) error {
		_, err := fmt.Fprintln(w, output)
		return err
	})
}

// timelineOptions says how much detail to compute.
func (f *timelineFlags) timelineOptions() timeline.Options {
	var opts timeline.Options
	if f.format == "html" {
		opts = timeline.Zoomable
	}
	opts.From, opts.To, opts.ByStack = f.from, f.to, f.byStack
	if f.detail > 0 {
		opts.Detail = f.detail
	}
	return opts
}

// drawing writes a picture.
type drawing func(io.Writer, *timeline.Timeline, draw.Style) error

// target decides where the picture goes and how it is drawn, and sets format.
func (f *timelineFlags) target(path string) (output string, drawn drawing, err error) {
	formats := map[string]drawing{"svg": draw.TimelineSVG, "png": draw.TimelinePNG, "html": draw.TimelineHTML}
	output = f.output
	if f.format == "" {
		f.format = strings.TrimPrefix(strings.ToLower(filepath.Ext(output)), ".")
	}
	if f.format == "" && (output == "" || output == "-") {
		f.format = "svg"
	}
	drawn, ok := formats[f.format]
	if !ok {
		return "", nil, badUsage("it can be svg, png or html", "--format: %q is not a format for pictures", f.format)
	}
	if output == "" {
		output = pictureName(path) + "." + f.format
	}
	return output, drawn, nil
}

// pictureName returns the name of a snapshot without folder and extensions:
// pictures go where the user is, since snapshots may lie where they cannot
// write.
func pictureName(path string) string {
	if path == "-" {
		return "timeline"
	}
	name := filepath.Base(path)
	for _, ext := range []string{".xz", ".gz", ".zst", ".pickle", ".pkl"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// writeFile writes a file that is either whole or not there.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".memorymark-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
