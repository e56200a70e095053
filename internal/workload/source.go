package workload

import (
	"memorymark/internal/models"
	"memorymark/internal/pymodule"
)

// Families that are not written by hand come from the source that the program was built
// with.
func init() { models.UseSource(pymodule.Embedded) }
