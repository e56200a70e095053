package report

import (
	"fmt"
	"io"
	"strings"

	"memorymark/internal/request"
)

// Request is what a scheduler needs, for people or, with a format, for the scheduler.
type Request struct {
	*request.Need
	Format string
}

// Write writes it.
func (r Request) Write(w io.Writer, width int) error {
	if f, ok := request.Find(r.Format); ok {
		_, err := io.WriteString(w, f.Write(r.Need))
		return err
	}
	fmt.Fprintf(w, "%s\n\n", heading(fmt.Sprintf("%s needs %d MiB on %s", r.Name, r.MiB, onEach(r.GPUs))))
	paragraph(w, width, "PyTorch", fmt.Sprintf("reserves %v (%s, for %s)", r.Reserved, r.Engine, r.GPU))
	paragraph(w, width, "CUDA", fmt.Sprintf("and its libraries use %v outside PyTorch's allocator", r.Context))
	paragraph(w, width, "Driver", fmt.Sprintf("keeps up to %v that nvidia-smi counts, an estimate; requests for a share of a GPU leave it out", r.Driver))
	paragraph(w, width, "Cards", "with enough memory: "+strings.Join(r.Cards, ", "))
	for _, f := range request.Formats {
		fmt.Fprintf(w, "\n%s\n%s", heading(f.Title), indent(f.Write(r.Need)))
	}
	return nil
}

func onEach(gpus int64) string {
	if gpus == 1 {
		return "one GPU"
	}
	return fmt.Sprintf("each of %d GPUs", gpus)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// NoRequest is why a job cannot be placed on the card that was asked about.
type NoRequest string

// Write writes it.
func (r NoRequest) Write(w io.Writer, width int) error {
	paragraph(w, width, "Does not fit", string(r))
	return nil
}
