package figure

import (
	"encoding/json"
	"testing"
)

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]Amount{"1B": 1e9, "500m": 5e8, "20k": 2e4, "1e9": 1e9, "1_000": 1000, "2T": 2e12, "1.5 t": 1.5e12, "1,000,000": 1e6, "3g": 3e9} {
		if got, err := ParseAmount(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "B", "0", "-1", "NaN", "1e30", "x"} {
		if _, err := ParseAmount(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestAmountInJSON(t *testing.T) {
	for text, want := range map[string]Amount{`1e9`: 1e9, `"1B"`: 1e9, `0`: 0} {
		var got Amount
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{`"x"`, `""`, `"0"`, `true`, `{}`, `-1`, `1e19`} {
		if err := json.Unmarshal([]byte(bad), new(Amount)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	if data, err := json.Marshal(Amount(1e9)); err != nil || string(data) != "1000000000" {
		t.Errorf("a billion is written as %s, %v", data, err)
	}
}
