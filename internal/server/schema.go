package server

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/allocator"
	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/recording"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/steptime"
	"memorymark/internal/study"
	"memorymark/internal/timeline"
	"memorymark/internal/workload"
)

// schemaNames are the names of schemas that are not those of their types:
// where two packages have a type of the same name, or where the name says too
// little without its package. No name follows from a package, so that moving a
// type changes nothing for clients.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[gpu.Amount]():                "CardFigure",
	reflect.TypeFor[gpu.Rates]():                 "CardRates",
	reflect.TypeFor[gpu.Price]():                 "CardPrice",
	reflect.TypeFor[job.Card]():                  "WorkerCard",
	reflect.TypeFor[job.Progress]():              "WorkerProgress",
	reflect.TypeFor[job.Announcement]():          "WorkerAnnouncement",
	reflect.TypeFor[job.Membership]():            "WorkerMembership",
	reflect.TypeFor[job.Orders]():                "WorkerOrders",
	reflect.TypeFor[job.Stop]():                  "WorkerStop",
	reflect.TypeFor[Lease]():                     "WorkerLease",
	reflect.TypeFor[Heartbeat]():                 "WorkerHeartbeat",
	reflect.TypeFor[measure.Failure]():           "ProbeFailure",
	reflect.TypeFor[measure.Step]():              "MeasuredStep",
	reflect.TypeFor[measure.Peaks]():             "MeasuredPeaks",
	reflect.TypeFor[allocator.Usage]():           "PredictedStep",
	reflect.TypeFor[predict.MemoryLine]():        "MemoryLine",
	reflect.TypeFor[recording.Amount]():          "LiveAmount",
	reflect.TypeFor[recording.Difference]():      "ReplayDifference",
	reflect.TypeFor[recording.FailedRequest]():   "ReplayFailure",
	reflect.TypeFor[recording.EventRow]():        "Event",
	reflect.TypeFor[workload.CatalogModel]():     "Model",
	reflect.TypeFor[snapshotstore.Entry]():       "StoredSnapshot",
	reflect.TypeFor[steptime.Accuracy]():         "StepTimeAccuracy",
	reflect.TypeFor[steptime.Range]():            "StepTimeRange",
	reflect.TypeFor[study.Axis]():                "StudyAxis",
	reflect.TypeFor[study.OutOfMemory]():         "StudyOutOfMemory",
	reflect.TypeFor[study.Peak]():                "StudyPeak",
	reflect.TypeFor[study.Provenance]():          "StudyProvenance",
	reflect.TypeFor[study.Product]():             "StudyProduct",
	reflect.TypeFor[study.Symbol]():              "StudySymbol",
	reflect.TypeFor[timeline.FailedAllocation](): "TimelineFailure",
	reflect.TypeFor[timeline.Group]():            "TimelineGroup",
	reflect.TypeFor[timeline.Peak]():             "TimelinePeak",
	reflect.TypeFor[timeline.Span]():             "TimelineSpan",
	reflect.TypeFor[timeline.Wire]():             "Timeline",
	reflect.TypeFor[timeline.WireBand]():         "TimelineBand",
}

// schemaName names the schema of a type. Two types of one name make huma
// panic at the start, and one of them needs a row above.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name, ok := schemaNames[t]; ok {
		return name
	}
	return huma.DefaultSchemaNamer(t, hint)
}
