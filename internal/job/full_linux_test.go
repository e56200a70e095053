package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

// TestDiskFull fills the disk of a queue and frees it again, three times.
func TestDiskFull(t *testing.T) {
	disk, ok := testmachine.OwnDisk(t, "80m")
	if !ok {
		return
	}
	if err := fillAndEmpty(disk.Folder); err != nil {
		t.Error(err)
	}
}

func fillAndEmpty(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q, err := Open(ctx, Config{Dir: filepath.Join(dir, "jobs"), Log: slog.New(slog.NewTextHandler(os.Stdout, nil))})
	if err != nil {
		return err
	}
	defer q.Close()
	var accepted []string
	submit := func(n int) error {
		begin := time.Now()
		j, _, err := q.Submit(ctx, Request{Card: "t4", Payload: json.RawMessage(fmt.Sprint(n))})
		if err == nil {
			accepted = append(accepted, j.ID)
		}
		if took := time.Since(begin); took > answerTime { // as of an engine that is only away for a moment
			return fmt.Errorf("submitting took %v", took)
		}
		return err
	}
	l, err := joinHand(ctx, q, "t4")
	if err := errors.Join(err, submit(0), submit(1)); err != nil {
		return err
	}
	lease, err := l.take(ctx)
	if err != nil || lease == nil {
		return fmt.Errorf("took %v, %w", lease, err)
	}
	fat := filepath.Join(dir, "fat")
	for n := 2; n < 8; n += 2 {
		if err := fillDisk(fat, 60<<20); err != nil {
			return err
		}
		// Little is left, and nothing new is accepted.
		if err := submit(n); !errors.Is(err, ErrNoSpace) || q.Ready(ctx) == nil {
			return fmt.Errorf("a submission to a nearly full disk: %w", err)
		}
		if err := fillDisk(fat, 80<<20); err != nil {
			return err
		}
		// Nothing is left, and what the engine tries to write fails.
		_ = lease.say(ctx, `"`+strings.Repeat("x", 200<<10)+`"`)
		time.Sleep(500 * time.Millisecond)
		if err := submit(n); !errors.Is(err, ErrNoSpace) {
			return fmt.Errorf("a submission to a full disk: %w", err)
		}
		if err := os.Remove(fat); err != nil {
			return err
		}
		for q.Ready(ctx) != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("it does not recover: %w", q.Ready(context.Background()))
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err := errors.Join(submit(n), submit(n+1)); err != nil {
			return fmt.Errorf("a submission after there was room again: %w", err)
		}
	}
	if err := lease.succeed(ctx, "1"); err != nil {
		return fmt.Errorf("the job that ran all the time: %w", err)
	}
	for _, id := range accepted {
		if _, err := q.Get(ctx, id); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	return nil
}

// fillDisk makes a file as large as asked for, or as there is space.
func fillDisk(path string, bytes int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	piece := make([]byte, 4096)
	for range bytes / len(piece) {
		if _, err = f.Write(piece); err != nil {
			break
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
