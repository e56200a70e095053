package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A lease lasts as long as heartbeats name it, and so do workers count.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(30 * time.Second)
		r := record{Job: Job{ID: newID(time.Now()).String(), Worker: "w", Attempt: 2, State: Running}, heard: time.Now()}
		named := func(worker string, attempt int) Worker {
			return Worker{ID: worker, Announcement: Announcement{Cards: []Card{{ID: "t4", Job: r.ID, Attempt: attempt}}}}
		}
		for range 20 { // it is there, and works on the job
			time.Sleep(10 * time.Second)
			if err := f.hear(named("w", 2)); err != nil || f.silent(r) {
				t.Fatalf("silent: %v, %v", f.silent(r), err)
			}
		}
		for range 3 { // it is there, and works on another attempt, while another worker claims this one
			time.Sleep(10 * time.Second)
			if err := errors.Join(f.hear(named("w", 1)), f.hear(named("other", 2))); err != nil || f.silent(r) {
				t.Fatalf("silent too early, %v", err)
			}
		}
		time.Sleep(time.Second)
		if !f.silent(r) || !f.alive("w") {
			t.Errorf("silent %v, alive %v", f.silent(r), f.alive("w"))
		}
		time.Sleep(30 * time.Second)
		if f.alive("w") {
			t.Error("a silent worker is alive")
		}
	})
}

// A heartbeat that arrives after its worker has left does not list it again.
func TestLateHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(30 * time.Second)
		if err := f.hear(Worker{ID: "w"}); err != nil {
			t.Fatal(err)
		}
		f.leave("w")
		if err := f.hear(Worker{ID: "w"}); !errors.Is(err, ErrNoWorker) {
			t.Errorf("after it left: %v", err)
		}
		if _, there := f.find("w"); there {
			t.Error("it is listed again")
		}
		time.Sleep(31 * time.Second)
		if err := f.hear(Worker{ID: "other"}); err != nil || len(f.left) != 0 {
			t.Errorf("%v, and %d that left are remembered", err, len(f.left))
		}
	})
}

// TestFleetIsBounded has the holder of one token join again and again.
func TestFleetIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(30 * time.Second)
		join := func(owner string, n int) error { return f.hear(Worker{ID: fmt.Sprint(owner, n), owner: owner}) }
		for n := range maxWorkersEach {
			if err := join("one", n); err != nil {
				t.Fatal(err)
			}
		}
		if err := join("one", maxWorkersEach); !errors.Is(err, ErrTooMany) {
			t.Errorf("one too many: %v", err)
		}
		if err := errors.Join(join("one", 7), join("other", 1)); err != nil {
			t.Errorf("one that is there, and another's: %v", err)
		}
		time.Sleep(31 * time.Second)
		if err := join("one", maxWorkersEach); err != nil {
			t.Errorf("after the others fell silent: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if err := join("one", 0); err != nil || len(f.workers) != 1 || len(f.named) != 0 {
			t.Errorf("%d workers are remembered, %v", len(f.workers), err)
		}
	})
}

func TestBadAnnouncements(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	for name, a := range map[string]Announcement{
		"many cards":       {Cards: make([]Card, MaxCards+1)},
		"a long host":      {Host: long},
		"a long version":   {Version: long},
		"no id":            {Cards: []Card{{}}},
		"a subject":        {Cards: []Card{{ID: "t4.>"}}},
		"any":              {Cards: []Card{{ID: Any}}},
		"a long name":      {Cards: []Card{{ID: "t4", Name: long}}},
		"a job of no kind": {Cards: []Card{{ID: "t4", Job: "*"}}},
	} {
		var invalid *InvalidError
		if err := a.validate(); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOwns(t *testing.T) {
	id := newWorkerID(time.Now(), "token").String()
	if !Owns("token", id) || Owns("other", id) || Owns("", id) || Owns("token", id+"x") || Owns("token", "") {
		t.Error("an id is not of its token alone")
	}
}
