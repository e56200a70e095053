package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

// The diagram and the table in docs/jobs.md are the code's own.
func TestStatesAreDocumented(t *testing.T) {
	text := testmachine.ReadFile(t, "../../docs/jobs.md")
	if got, want := between(t, string(text), "```mermaid\n", "```"), diagram(); got != want {
		t.Errorf("docs/jobs.md draws\n%s\nand the code has\n%s", got, want)
	}
}

// diagram draws the state machine.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> queued: Submit\n")
	for _, t := range Transitions {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", t.From, t.To, t.When)
	}
	for _, s := range States {
		if s.Ended() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	if !ok {
		t.Fatalf("docs/jobs.md has no %q", from)
	}
	inner, _, _ := strings.Cut(rest, to)
	return inner
}

// Every name on the engine is written down for those who run a cluster.
func TestNamesAreDocumented(t *testing.T) {
	text := testmachine.ReadFile(t, "../../docs/jobs.md")
	for _, name := range []string{queueStream, eventStream, recordBucket, resultBucket, workerBucket, proofStream, queueSubject, eventSubject, drainSubject, headerAttempt} {
		if !strings.Contains(string(text), name) {
			t.Errorf("docs/jobs.md does not mention %s", name)
		}
	}
}

func TestTransitions(t *testing.T) {
	for _, from := range States {
		for _, to := range States {
			want := slices.ContainsFunc(Transitions, func(tr Transition) bool { return tr.From == from && tr.To == to })
			j, err := Job{State: from}.to(to, "why")
			if (err == nil) != want {
				t.Errorf("%s to %s: %v", from, to, err)
			}
			if err == nil && (j.State != to || j.Reason != "why") {
				t.Errorf("%s to %s: %+v", from, to, j)
			}
		}
		if from.Ended() != (from == Succeeded || from == Failed || from == Cancelled) {
			t.Errorf("%s ended: %v", from, from.Ended())
		}
	}
}

func TestIDs(t *testing.T) {
	now := time.Now()
	var last string
	for i := range 100 {
		s := newID(now.Add(time.Duration(i) * time.Millisecond)).String()
		if s <= last {
			t.Fatalf("%s comes after %s", s, last)
		}
		if _, ok := parseID(s); !ok || len(s) != 26 {
			t.Errorf("%s is not an id", s)
		}
		last = s
	}
	for _, bad := range []string{"", "x", strings.ToUpper(last), last[:25], last + "0", last[:25] + ".", last[:25] + "1"} {
		if _, ok := parseID(bad); ok && bad != last {
			t.Errorf("%q is an id", bad)
		}
	}
}
