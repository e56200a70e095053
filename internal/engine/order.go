package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Order is a request on its way to a worker, where it is JSON. Equal requests
// are equal orders, to the byte.
type Order struct {
	Engine   evidence.Engine `json:"engine"` // Predicted, Emulated or Measured
	Workload json.RawMessage `json:"workload"`
	GPU      string          `json:"gpu"`             // an id of the catalog
	Given    []string        `json:"given,omitempty"` // keys that changes leave alone
	Code     *Code           `json:"code,omitempty"`
	analysis.Question
}

// EmulationQueue is where orders wait for a worker that emulates cards. It is used
// like a card's id; no card has this id.
const EmulationQueue = "emulated"

// NewOrder makes an order of a request. A name does not make a workload another.
func NewOrder(r analysis.Request, engine evidence.Engine) (*Order, error) {
	at := *r.Workload
	at.ID = ""
	w, err := json.Marshal(&at)
	if err != nil {
		return nil, fmt.Errorf("write the workload: %w", err)
	}
	return &Order{Engine: engine, Workload: w, GPU: r.Card.ID, Given: r.Given, Question: r.Question}, nil
}

// ParseOrder reads an order. A key that it does not know is an error: a newer
// server may mean something by it that this worker would leave out.
func ParseOrder(data []byte) (*Order, error) {
	var o Order
	if err := decodeStrictly(data, &o); err != nil {
		return nil, fmt.Errorf("read an order: %w", err)
	}
	if o.Engine == evidence.Auto || !slices.Contains(evidence.Choices, o.Engine) {
		return nil, fmt.Errorf("read the job: this worker does not know engine %q", o.Engine)
	}
	if o.Code != nil && o.Engine != evidence.Emulated {
		return nil, errors.New("read the job: code is emulated, and nothing else")
	}
	return &o, nil
}

// ParseWorkload reads the workload, which need not be modelled where PyTorch
// runs it, and has no model where there is code.
func (o *Order) ParseWorkload() (*workload.Workload, error) {
	if o.Code != nil {
		d, err := workload.ParseDraft(o.Workload)
		if err != nil {
			return nil, err
		}
		return d.WithoutModel()
	}
	if o.Engine.RunsSteps() {
		return workload.ParseRunnable(o.Workload)
	}
	return workload.Parse(o.Workload)
}

// Request returns the request of an order.
func (o *Order) Request() (analysis.Request, error) {
	w, err := o.ParseWorkload()
	if err != nil {
		return analysis.Request{}, err
	}
	card, err := gpu.Find(o.GPU)
	return analysis.Request{Workload: w, Card: card, Question: o.Question, Given: o.Given}, err
}

func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
