package lockfile

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Note("process 7"); err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v", err)
	}
	if got := Note(path); got != "process 7" {
		t.Errorf("the note says %q", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Try(path)
	if err != nil {
		t.Fatalf("a lock that was given back: %v", err)
	}
	_ = again.Close()
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Wait(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		second, err := Wait(path)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("two had the lock at once: %v", err)
	default:
	}
	_ = first.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestCannotLock(t *testing.T) {
	if _, err := Try(filepath.Join("/dev/null", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a lock below a file: %v", err)
	}
}
