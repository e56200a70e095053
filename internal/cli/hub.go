package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/hub"
	"memorymark/internal/workload"
)

// addDownload adds the flag that allows what is not on this machine to be fetched.
func (e *env) addDownload(c *cobra.Command) {
	c.Flags().BoolVar(&e.download, "download", false, "fetch the config.json, and nothing else, of a model that is only on the Hugging Face Hub")
}

// readHub reads the configuration of a model of the Hugging Face Hub, if a draft's
// model is one's id: from the local cache or, if the user allows it, from the Hub.
// A name without an owner is more often a typing error than such an id.
func (e *env) readHub(ctx context.Context, d workload.Draft, name string) error {
	if _, _, ok := hub.ParseID(name); !ok || userFunction.MatchString(name) {
		return nil
	}
	h := hub.FromEnvironment(os.Getenv)
	m, err := h.Cached(name)
	switch {
	case m == nil && e.download, m == nil && err == nil && hub.HasOwner(name) && e.mayDownload(h, name):
		m, err = h.Download(ctx, name)
	case m == nil && err == nil && hub.HasOwner(name):
		return badInput(fmt.Sprintf("--download fetches its config.json, and nothing else, from %s", h.Endpoint),
			"model %q is neither in the catalog nor in the local cache of the Hugging Face Hub", name)
	}
	var fixable interface{ Fix() string }
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &fixable):
		return badInput(fixable.Fix(), "model %w", err)
	case err != nil:
		return badInput("", "%w", err)
	case m == nil:
		return nil
	}
	from := "the local Hub cache"
	if !m.Cached {
		from = h.Endpoint
	}
	e.say("%s at revision %.12s, from %s", m.ID, cmp.Or(m.Revision, "unknown"), from)
	if err := d.UseConfig(m.Config); err != nil {
		return badInput("", "%s: %w", name, err)
	}
	return nil
}

// mayDownload asks a person. A script has the flag.
func (e *env) mayDownload(h *hub.Hub, name string) bool {
	stdin, ok := e.stdin.(*os.File)
	if h.Offline || !ok || !isTerminal(stdin) {
		return false
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0) // wherever stderr goes
	if err != nil {
		return false
	}
	defer terminal.Close()
	fmt.Fprintf(terminal, "%s is not on this machine. Download its config.json, and nothing else, from %s? [y/N] ", name, h.Endpoint)
	answer, _ := bufio.NewReader(terminal).ReadString('\n') // without an answer it is no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		e.download = true // asked once
		return true
	}
	return false
}
