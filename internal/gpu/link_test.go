package gpu

import "testing"

// A link without a source is a rumour, and a card that the catalog does not
// have, or that two links have, is a mistake.
func TestLinksAreWhole(t *testing.T) {
	seen := make(map[string]string)
	for _, l := range loadLinks() {
		if l.Name == "" || l.Source == "" || l.AsOf == "" || l.GBPerS <= 0 || l.Reached <= 0 || l.Reached > 1 {
			t.Errorf("%+v is not whole", *l)
		}
		if n := l.Network; n != nil && (n.Name == "" || n.Source == "" || n.GBPerS <= 0 || n.Reached <= 0 || n.Reached > 1) {
			t.Errorf("the network of %s is not whole: %+v", l.Name, *n)
		}
		for _, id := range l.Cards {
			if other, ok := seen[id]; ok {
				t.Errorf("%s has both %s and %s", id, other, l.Name)
			}
			seen[id] = l.Name
			if _, err := Find(id); err != nil {
				t.Errorf("%s: %v", l.Name, err)
			}
		}
	}
}

func TestBusBandwidth(t *testing.T) {
	card, err := Find("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	link := card.Link()
	within, over := link.BusBytesPerSecond(8), link.BusBytesPerSecond(16)
	if within < 205e9 || within > 222e9 {
		t.Errorf("eight reach %g bytes a second, timed were 205 to 222 GB/s", within)
	}
	if want := 8 * 25e9 * 0.9; over != want {
		t.Errorf("sixteen reach %g bytes a second, want %g of eight network cards", over, want)
	}
}

func TestMostGPUs(t *testing.T) {
	for id, want := range map[string]int64{"gh200": 1, "rtx-4090": 8, "h100": 1 << 20} {
		card, err := Find(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := card.MaxGPUs(); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}
