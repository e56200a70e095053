package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names on the engine. Everything begins with memorymark, because an outside
// cluster has other users.
const (
	queueStream   = "memorymark_jobs"
	eventStream   = "memorymark_events"
	recordBucket  = "memorymark_records"
	resultBucket  = "memorymark_results"
	workerBucket  = "memorymark_members"
	queueSubject  = "memorymark.jobs."          // and card, and key
	eventSubject  = "memorymark.events."        // and job
	drainSubject  = "memorymark.drain."         // and worker; from server to server
	recordSubject = "$KV." + recordBucket + "." // and job
	proofStream   = "memorymark_proof"
	proofSubject  = "memorymark.proof"
)

const (
	maxQueued    = 100_000             // jobs in the queue, so that strangers cannot fill the disk
	maxEvents    = 2_000               // of a job; the oldest go first
	maxEventAge  = 30 * 24 * time.Hour // progress is of no use later; records and results stay
	deletedTrace = time.Hour           // how long a deleted record is remembered, for servers that were away
)

func subjectOf(card, key string) string { return queueSubject + card + "." + key }

// resultKey names the attempt, so that one that was given up cannot overwrite
// the result of the one that counts.
func resultKey(id string, attempt int) string { return fmt.Sprintf("%s.%d", id, attempt) }

// layout is what the engine holds for a queue.
type layout struct {
	queue   jetstream.Stream
	events  jetstream.Stream
	records jetstream.KeyValue
	results jetstream.KeyValue
	workers jetstream.KeyValue
}

// createLayout creates what is missing and brings the rest up to date.
func createLayout(ctx context.Context, js jetstream.JetStream, replicas int, lease time.Duration) (l layout, err error) {
	if l.queue, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: queueStream, Description: "MemoryMark: jobs that have not ended",
		Subjects:  []string{queueSubject + "*.*"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: replicas,
		// One message for each card and key; a second is refused.
		MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, Discard: jetstream.DiscardNew,
		MaxMsgs: maxQueued,
	}); err != nil {
		return l, err
	}
	if err = forgetConsumers(ctx, l.queue); err != nil {
		return l, err
	}
	if l.events, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: eventStream, Description: "MemoryMark: progress of jobs",
		Subjects: []string{eventSubject + "*"},
		Storage:  jetstream.FileStorage, Replicas: replicas,
		MaxMsgsPerSubject: maxEvents, MaxAge: maxEventAge, MaxBytes: maxEventBytes, MaxMsgSize: MaxEvent + 1024,
	}); err != nil {
		return l, err
	}
	if _, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: proofStream, Description: "MemoryMark: when a write was last tried", Subjects: []string{proofSubject},
		Storage: jetstream.FileStorage, Replicas: replicas, MaxMsgs: 1,
	}); err != nil {
		return l, err
	}
	buckets := []struct {
		to *jetstream.KeyValue
		jetstream.KeyValueConfig
	}{
		{&l.records, jetstream.KeyValueConfig{Bucket: recordBucket, Description: "MemoryMark: records of jobs", LimitMarkerTTL: deletedTrace}},
		{&l.results, jetstream.KeyValueConfig{Bucket: resultBucket, Description: "MemoryMark: results of jobs", LimitMarkerTTL: deletedTrace}},
		{&l.workers, jetstream.KeyValueConfig{
			Bucket: workerBucket, Description: "MemoryMark: who is there",
			TTL: lease, // on disk: an engine that starts again must not forget who works on what
		}},
	}
	for _, b := range buckets {
		b.Replicas = replicas
		if *b.to, err = js.CreateOrUpdateKeyValue(ctx, b.KeyValueConfig); err != nil {
			return l, err
		}
	}
	return l, nil
}

// forgetConsumers removes what earlier versions had for each card: a consumer of
// the queue. Servers hand out jobs by their records now.
func forgetConsumers(ctx context.Context, queue jetstream.Stream) error {
	names := queue.ConsumerNames(ctx)
	for name := range names.Name() {
		if err := queue.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("remove consumer %s: %w", name, err)
		}
	}
	return names.Err()
}
