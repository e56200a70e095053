package plan

import (
	"slices"
	"strings"
	"testing"

	"memorymark/internal/workload"
)

// A plan in channels_last keeps to it on one GPU and on several, and its recipe
// says so.
func TestPlanInChannelsLast(t *testing.T) {
	q := question(t, `{"model": "resnet-18", "channels_last": true}`, "rtx-4090")
	q.MaxGPUs, q.GlobalBatch = 2, 64
	options := make1(t, q).Options
	for _, o := range options {
		if !o.Workload.ChannelsLast || !strings.Contains(o.Recipe.Program, "memory_format=torch.channels_last") {
			t.Errorf("%s is not in channels_last: %s", o.Command, o.Recipe.Program)
		}
	}
	replicated := func(o *Option) bool { return o.Workload.Parallel != nil && o.Workload.Parallel.Kind == workload.DDP }
	if !slices.ContainsFunc(options, replicated) {
		t.Errorf("none of %d options is DDP", len(options))
	}
}
