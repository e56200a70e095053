package analysis

import (
	"slices"
)

// Curve is memory and throughput against the batch, up to a little beyond
// where memory runs out.
type Curve struct {
	GPUTotal    int64 `json:"gpu_total_bytes"`
	Limit       int64 `json:"limit_bytes"` // the most that PyTorch may reserve
	Largest     int64 `json:"optimal_batch_size"`
	Recommended int64 `json:"recommended_batch_size"`
	Growth
	Points []Result `json:"points"` // by batch
}

// beyond is how far the curve goes past the largest batch, so that one sees
// it cross the limit.
const beyond = 1.15

// PredictCurve simulates about that many batches, the present, the recommended
// and the largest one among them.
func PredictCurve(r Request, points int) (*Curve, error) {
	c, err := predictCurve(r, points)
	if spent := r.Work.Err(); spent != nil {
		return nil, spent
	}
	return c, err
}

func predictCurve(r Request, points int) (*Curve, error) {
	p, err := newPlanner(r)
	if err != nil {
		return nil, err
	}
	c := &Curve{GPUTotal: int64(p.Card.Memory.Bytes), Limit: int64(p.limit()), Points: []Result{}}
	if c.Largest, err = p.largest(p.run); err != nil {
		return nil, err
	}
	if c.Largest == 0 {
		return nil, p.refuse()
	}
	if c.Recommended, _, err = p.recommend(c.Largest); err != nil {
		return nil, err
	}
	if c.Growth, err = p.growth(c.Largest); err != nil {
		return nil, err
	}
	for _, batch := range curveBatches(c.Largest, points, p.w.Batch, c.Recommended) {
		result, err := p.look(batch)
		if err != nil {
			return nil, err
		}
		c.Points = append(c.Points, result)
	}
	return c, nil
}

// curveBatches are batches at even distances from 1 to beyond the largest,
// with the given ones, the largest and the one after it among them.
func curveBatches(largest int64, points int, among ...int64) []int64 {
	end := max(int64(beyond*float64(largest)), largest+1)
	batches := []int64{1, largest, largest + 1}
	for i := range int64(points) {
		batches = append(batches, 1+(end-1)*i/max(int64(points)-1, 1))
	}
	for _, b := range among {
		if b <= end {
			batches = append(batches, b)
		}
	}
	slices.Sort(batches)
	return slices.Compact(batches)
}
