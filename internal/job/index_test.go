package job

import (
	"strconv"
	"testing"
	"time"
)

// The labels of jobs that were forgotten are forgotten too, and those of the
// others still find them.
func TestLabelsAreForgotten(t *testing.T) {
	const jobs = 1000
	x := newIndex(newBell())
	var ids []string
	begin := time.Unix(1, 0)
	for i := range jobs {
		at := begin.Add(time.Duration(i) * time.Second)
		ids = append(ids, newID(at).String())
		x.put(record{Job: Job{ID: ids[i], State: Succeeded, Queued: at, Labels: map[string]string{"id": strconv.Itoa(i)}}, revision: uint64(i + 1)})
	}
	for _, id := range ids[:jobs-10] {
		x.remove(id)
	}
	if n := len(x.labels.asMap); n > 20 {
		t.Errorf("10 jobs are left and %d sets of labels", n)
	}
	for i := jobs - 10; i < jobs; i++ {
		found, _ := x.scan(Filter{Labels: map[string]string{"id": strconv.Itoa(i)}, Limit: 2}, id{})
		if len(found) != 1 || found[0].String() != ids[i] {
			t.Errorf("job %d: found %v", i, found)
		}
	}
}
