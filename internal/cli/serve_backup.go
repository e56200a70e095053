package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"memorymark/internal/backup"
	"memorymark/internal/bytesize"
	"memorymark/internal/job"
	"memorymark/internal/lockfile"
	"memorymark/internal/snapshotstore"
)

// dataCommands are the commands for what a server keeps.
func dataCommands(e *env) []*cobra.Command {
	return []*cobra.Command{newToken(e), newBackup(e), newRestore(e)}
}

func newBackup(e *env) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a server's data folder to a file",
		Long: "Writes the history, snapshots and tokens of a server to a file, a tar archive packed by\n" +
			"Zstandard with a checksum of every file. Stop the server first. A snapshot of the file\n" +
			"system or the disk can be taken while it runs, too: it is what a power failure would leave.",
		Example: "  memorymark serve backup monday.tar.zst",
		Args:    exactArgs("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return f.backUp(e, args[0]) },
	}
	addDataFlag(c, &f.data)
	return c
}

func newRestore(e *env) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a server's data folder from a backup",
		Long: "Makes a data folder from a file that memorymark serve backup wrote. The folder must be empty or\n" +
			"not exist; to replace one, move it away first. Everything is compared with its checksums.",
		Example: "  memorymark serve restore monday.tar.zst --data /var/lib/memorymark",
		Args:    exactArgs("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return f.restore(e, args[0]) },
	}
	addDataFlag(c, &f.data)
	return c
}

// lockIdle makes a data folder ours while no server has it.
func (f *serveFlags) lockIdle(why string) (*lockfile.Lock, error) {
	if err := checkData(f.data); err != nil {
		return nil, err
	}
	return f.lock("stop it first", why)
}

// backUp writes a file that is there whole or not at all.
func (f *serveFlags) backUp(e *env, path string) (err error) {
	if err := checkData(f.data); err != nil {
		return err
	}
	if _, err := os.Stat(f.data); err != nil {
		return badInput("name the server's folder with --data", "--data %s: %w", f.data, err)
	}
	lock, err := f.lockIdle("a backup")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	to, err := os.CreateTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return badInput("", "write %s: %w", path, err)
	}
	defer os.Remove(to.Name())
	s, err := backup.Write(to, f.data)
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(to.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return e.printMoved(s, "backed up to "+path)
}

func (f *serveFlags) restore(e *env, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return badInput("", "%w", err)
	}
	defer from.Close()
	lock, err := f.lockIdle("a restore")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	s, err := backup.Read(from, f.data)
	switch {
	case errors.Is(err, backup.ErrDamaged):
		return badInput("use another backup; nothing was restored", "%s: %w", path, err)
	case err != nil:
		return badInput("restore to an empty folder with --data, or move the old one away first", "%w", err)
	}
	return e.printMoved(s, "restored to "+f.data)
}

func (e *env) printMoved(s backup.Summary, what string) error {
	return e.print(s, func(w io.Writer, _ int) error {
		_, err := fmt.Fprintf(w, "%d files, %v, %s\n", s.Files, bytesize.Bytes(s.Bytes), what)
		return err
	})
}

// verified is what a look at a data folder found.
type verified struct {
	Records   int      `json:"records"`
	Snapshots int      `json:"snapshots"`
	Damages   []string `json:"damages"`
}

// verifyData reads everything in the data folder.
func (f *serveFlags) verifyData(e *env) error {
	lock, err := f.lockIdle("a check")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	history, err := job.Verify(filepath.Join(f.data, "jobs"))
	if err != nil {
		return err
	}
	snapshots, damaged, err := snapshotstore.Verify(filepath.Join(f.data, "snapshots"))
	if err != nil {
		return err
	}
	v := verified{Records: history.Records, Snapshots: snapshots, Damages: []string{}}
	for _, d := range history.Damages {
		v.Damages = append(v.Damages, d.String())
	}
	for _, d := range damaged {
		v.Damages = append(v.Damages, "snapshot "+d.String())
	}
	if _, err := openTokens(f.data); err != nil {
		v.Damages = append(v.Damages, err.Error())
	}
	if len(v.Damages) > 0 {
		return e.printNo(errNo, v, v.write)
	}
	return e.print(v, v.write)
}

func (v verified) write(w io.Writer, _ int) error {
	if len(v.Damages) == 0 {
		_, err := fmt.Fprintf(w, "%d records and %d snapshots are as they were written\n", v.Records, v.Snapshots)
		return err
	}
	for _, d := range v.Damages {
		if _, err := fmt.Fprintln(w, d); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "damaged: %d; memorymark serve restore restores a backup, and memorymark serve continues with what can be read\n", len(v.Damages))
	return err
}
