package server

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"memorymark/internal/evidence"
	"memorymark/internal/job"
)

// accuracyMetrics tells Prometheus how far predictions were off what was
// measured, of the latest measured analysis of each model on each card.
type accuracyMetrics struct {
	server *Server
	mu     sync.Mutex
	seen   map[string]accuracySeen // by id, so that each result is read once
}

// accuracySeen is what one analysis showed; nothing if it compared nothing.
type accuracySeen struct {
	model, gpu    string
	batch, memory *float64 // predicted ÷ measured − 1
}

var (
	batchError = prometheus.NewDesc("memorymark_prediction_batch_error",
		"Predicted over measured largest batch, less 1, of the latest measured analysis.", []string{"model", "gpu"}, nil)
	memoryError = prometheus.NewDesc("memorymark_prediction_memory_error",
		"Predicted over measured peak at the largest batch, less 1, of the latest measured analysis.", []string{"model", "gpu"}, nil)
)

// Describe implements prometheus.Collector.
func (m *accuracyMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- batchError
	out <- memoryError
}

// lookedAt is how many of the latest measured analyses are looked at.
const lookedAt = 200

// Collect implements prometheus.Collector.
func (m *accuracyMetrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), statsTime)
	defer cancel()
	page, err := m.server.opts.Jobs.List(ctx, job.Filter{
		States: []job.State{job.Succeeded}, Labels: map[string]string{"engine": string(evidence.Measured)}, Limit: lookedAt,
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(batchError, err)
		return
	}
	latest := make(map[[2]string]bool)
	seen := make(map[string]accuracySeen)
	for i := range page.Jobs { // the newest first
		s := m.of(ctx, &page.Jobs[i])
		seen[page.Jobs[i].ID] = s
		key := [2]string{s.model, s.gpu}
		if latest[key] || s.batch == nil {
			continue
		}
		latest[key] = true
		out <- prometheus.MustNewConstMetric(batchError, prometheus.GaugeValue, *s.batch, s.model, s.gpu)
		if s.memory != nil {
			out <- prometheus.MustNewConstMetric(memoryError, prometheus.GaugeValue, *s.memory, s.model, s.gpu)
		}
	}
	m.seen = seen
}

func (m *accuracyMetrics) of(ctx context.Context, j *job.Job) accuracySeen {
	if s, ok := m.seen[j.ID]; ok {
		return s
	}
	s := accuracySeen{model: j.Labels["model"], gpu: j.Labels["gpu"]}
	a, err := m.server.result(ctx, j.ID)
	if err != nil || a.Predicted == nil || a.OptimalBatch == 0 {
		return s
	}
	batch := float64(a.Predicted.OptimalBatch)/float64(a.OptimalBatch) - 1
	s.batch = &batch
	if a.Predicted.OptimalMemory > 0 {
		memory := a.Predicted.ErrorPercent / 100
		s.memory = &memory
	}
	return s
}

// storeMetrics tells Prometheus how full the store of snapshots is.
func (s *Server) storeMetrics() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	return []prometheus.Collector{
		gauge("memorymark_snapshots", "Snapshots that are kept.", func() float64 { return float64(len(s.opts.Snapshots.List())) }),
		gauge("memorymark_snapshot_bytes", "What they take on the disk.", func() float64 {
			stored, _ := s.opts.Snapshots.Usage()
			return float64(stored)
		}),
		gauge("memorymark_snapshot_quota_bytes", "What they may take.", func() float64 {
			_, quota := s.opts.Snapshots.Usage()
			return float64(quota)
		}),
	}
}
