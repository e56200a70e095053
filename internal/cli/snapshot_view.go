package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/server"
	"memorymark/web"
)

func newSnapshotView(e *env) *cobra.Command {
	var listen string
	var quiet bool
	c := &cobra.Command{
		Use:   "view FILE [OTHER]",
		Short: "Open a snapshot in the browser",
		Long: "Serves the timeline of a snapshot to this machine's browser until you press Ctrl-C: zoom,\n" +
			"search, stacks, segments. With OTHER it overlays both. Nothing leaves the machine, and\n" +
			"nothing is kept.",
		Example: "  memorymark snapshot view oom.pickle\n" +
			"  memorymark snapshot view predicted.pickle measured.pickle",
		Args: someArgs(1, "FILE", "OTHER"),
		RunE: func(c *cobra.Command, args []string) error {
			return viewSnapshots(c.Context(), e, args, listen, quiet)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`address` to listen on")
	c.Flags().BoolVar(&quiet, "no-browser", false, "print the address and do not open a browser")
	return c
}

// viewSnapshots serves files from a folder that is removed in the end.
func viewSnapshots(ctx context.Context, e *env, paths []string, listen string, quiet bool) error {
	folder, err := os.MkdirTemp("", "memorymark-view-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // the system removes it sooner or later
	f := &serveFlags{noMeasuring: true, listen: listen, data: folder, maxUpload: "1TiB", quota: "1TiB", history: "1TiB", keep: 10 * 365 * 24 * time.Hour, logFlags: logFlags{level: "warn"}}
	return f.serve(ctx, e, func(s *server.Server, base string) error {
		query := make(url.Values)
		for i, path := range paths {
			id, err := keepFile(ctx, e, s, path)
			if err != nil {
				return err
			}
			query.Set([]string{"snapshot", "with"}[i], id)
		}
		address := base + "/timeline?" + query.Encode()
		if web.Page() == nil {
			fmt.Fprintln(e.stderr, "This program was built without its page (make web build). memorymark snapshot timeline FILE -o timeline.html draws one that needs no server.")
		}
		if !quiet && isTerminal(e.stdout) {
			openBrowser(ctx, address)
		}
		return e.print(serving{address}, func(w io.Writer, _ int) error {
			_, err := fmt.Fprintf(w, "%s\nCtrl-C ends it.\n", address)
			return err
		})
	})
}

// keepFile gives a file to the server.
func keepFile(ctx context.Context, e *env, s *server.Server, path string) (string, error) {
	r, size, err := e.open(path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	bar := e.newProgress(ctx, r, "reading "+path, size)
	defer bar.clear()
	id, err := s.Keep(ctx, bar, path)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", badInput("memorymark snapshot --help shows how to record one", "%s: %w", path, err)
	}
	return id, nil
}

// openBrowser shows an address, if that is possible; it is printed anyway.
func openBrowser(ctx context.Context, address string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	_ = exec.CommandContext(ctx, program, address).Start()
}
