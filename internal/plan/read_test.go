package plan

import (
	"math"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

func TestParseHoldings(t *testing.T) {
	got, err := ParseHoldings("rtx-4090 x2, NVIDIA H100 SXM5", gpu.Find)
	if err != nil || len(got) != 2 || got[0].Card.ID != "rtx-4090" || got[0].Count != 2 || got[1].Card.ID != "h100" || got[1].Count != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "rtx-4090,", "voodoo 2"} {
		if _, err := ParseHoldings(bad, gpu.Find); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]Budget{
		"$500, 3 days": {500, 3}, "12 hours": {Days: 0.5}, "500 USD": {Dollars: 500}, "2 weeks,$1e3": {1000, 14},
	} {
		if got, err := ParseBudget(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "500", "$0", "-3 days", "$NaN", "$inf", "inf days"} {
		if _, err := ParseBudget(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestReadPrices(t *testing.T) {
	got, err := ReadPrices(strings.NewReader("gpu, usd_per_hour, provider, market, as_of\nh100, 2.5, ours, list, 2026-11-01\nNVIDIA A10, 1, , ,\n"))
	if err != nil || got["h100"].USDPerHour != 2.5 || got["h100"].Provider != "ours" || got["a10"].USDPerHour != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                 "first row",
		"gpu\nh100\n":                      "usd_per_hour is missing",
		"gpu,usd_per_hour,colour\n":        "colour",
		"gpu,usd_per_hour\nh100,free\n":    `usd_per_hour is "free"`,
		"gpu,usd_per_hour\nvoodoo,1\n":     "line 2",
		"gpu,usd_per_hour\nh100,1\nh100,2": "two prices",
		"gpu,usd_per_hour,as_of\nh100,1,yesterday\n": "2026-11-15",
	} {
		if _, err := ReadPrices(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestReadPriceList(t *testing.T) {
	got, own, err := ReadPriceList([]byte(`
- {gpu: h100, usd_per_hour: 2.10, provider: our contract, market: spot, as_of: 2026-11-01}
- {gpu: {name: our-card, compute_capability: "8.9", memory: 48 GiB, multiprocessors: 142}, usd_per_hour: 0.4}
`))
	if err != nil {
		t.Fatal(err)
	}
	if p := got["h100"]; p == nil || p.USDPerHour != 2.1 || p.Market != "spot" || p.AsOf != "2026-11-01" {
		t.Errorf("h100: %+v", p)
	}
	if len(own) != 1 || own[0].ID != "our-card" || own[0].SMs != 142 || got["our-card"] == nil {
		t.Errorf("own cards %+v, prices %v", own, got)
	}
	for text, want := range map[string]string{
		"gpu: h100":                       "must be a list",
		"[]":                              "from 1 to",
		"[{gpu: h1000, usd_per_hour: 1}]": "price 1: ",
		"[{gpu: h100, usd_per_hour: no}]": "a number above 0",
		"[{gpu: h100, dollars: 1}]":       "not known",
		"[{gpu: {name: x}, dollars: 1}]":  "compute_capability",
		"[{gpu: h100, usd_per_hour: 1}, {gpu: h100, usd_per_hour: 1}]": "two prices",
	} {
		if _, _, err := ReadPriceList([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A loader that is slower than every card makes all of them as fast.
func TestLoader(t *testing.T) {
	q := Question{Draft: workload.Draft{"model": []byte(`"gpt2"`), "sequence": []byte("128")}, MaxGPUs: 1, GlobalBatch: 8, Samples: 1e6, Full: true, LoaderSeconds: 5}
	for _, id := range []string{"t4", "h100"} {
		card := workloadtest.Card(t, id)
		q.Cards = append(q.Cards, Holding{Card: card})
	}
	p, err := Make(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.Options {
		if math.Abs(o.Speed.StepSeconds-40) > 1e-6 {
			t.Errorf("%s: %g s an update, want 40 s for 8 samples", o.GPU, o.Speed.StepSeconds)
		}
	}
	if len(p.Options) == 0 {
		t.Error("nothing was found")
	}
}
