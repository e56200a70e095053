package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"memorymark/internal/job"
)

// jobMetrics tells Prometheus of the queue and the fleet, counted when it
// asks.
type jobMetrics struct{ queue *job.Queue }

var (
	jobsByState = prometheus.NewDesc("memorymark_jobs", "Analyses in the history, by state.", []string{"state"}, nil)
	queueAge    = prometheus.NewDesc("memorymark_queue_age_seconds", "How long the oldest queued analysis has waited; 0 if none waits.", nil, nil)
	workerCards = prometheus.NewDesc("memorymark_worker_cards", "Cards of workers, by what they do: idle, busy, draining, lost.", []string{"gpu", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (m jobMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- jobsByState
	out <- queueAge
	out <- workerCards
}

// statsTime is how long counting may take.
const statsTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (m jobMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statsTime)
	defer cancel()
	stats, err := m.queue.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(jobsByState, err)
		return
	}
	for _, state := range job.States {
		out <- prometheus.MustNewConstMetric(jobsByState, prometheus.GaugeValue, float64(stats.ByState[state]), string(state))
	}
	age := 0.0
	if !stats.OldestQueued.IsZero() {
		age = max(time.Since(stats.OldestQueued).Seconds(), 0)
	}
	out <- prometheus.MustNewConstMetric(queueAge, prometheus.GaugeValue, age)
	for key, n := range m.cards() {
		out <- prometheus.MustNewConstMetric(workerCards, prometheus.GaugeValue, float64(n), key.gpu, key.state)
	}
}

type cardState struct{ gpu, state string }

func (m jobMetrics) cards() map[cardState]int {
	out := make(map[cardState]int)
	for _, w := range m.queue.Workers() {
		for _, c := range w.Cards {
			state := "idle"
			switch {
			case time.Since(w.Seen) > m.queue.Lease():
				state = "lost"
			case w.Draining:
				state = "draining"
			case c.Job != "":
				state = "busy"
			}
			out[cardState{c.ID, state}]++
		}
	}
	return out
}
