package plan

import (
	"strings"
	"testing"

	"memorymark/internal/gpu"
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

func TestParseCount(t *testing.T) {
	for text, want := range map[string]float64{"1B": 1e9, "500m": 5e8, "20k": 2e4, "1e9": 1e9, "1_000": 1000, "2T": 2e12} {
		if got, err := ParseCount(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "B", "0", "-1", "NaN", "1e30", "x"} {
		if _, err := ParseCount(bad); err == nil {
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
