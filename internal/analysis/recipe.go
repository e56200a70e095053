package analysis

import (
	"cmp"

	"memorymark/internal/recipe"
	"memorymark/internal/workload"
)

// setRecipe adds the program that trains as it was asked about, with the batch that is
// recommended, or with those that a global batch is made of.
func (a *Answer) setRecipe(w *workload.Workload) {
	with := *w
	with.Batch = cmp.Or(a.Recommended, a.OptimalBatch)
	if s := a.Accumulation; s != nil && s.MicroBatch*s.Steps == s.GlobalBatch {
		with.Batch, with.Accumulate = s.MicroBatch, int(s.Steps)
	}
	a.Recipe = recipe.New(&with)
}
