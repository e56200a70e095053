package gpu

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/invalid"
	"memorymark/internal/nearest"
)

// This file reads a user's description of a card: an object with the keys of
// the catalog. Three keys are required. The others follow from them, or are
// those of the most similar card of the catalog.

var needed = []string{"compute_capability", "memory", "multiprocessors"}

// Read reads the description of a card. It is one JSON object with the keys of
// the catalog, or the output of memorymark gpus --json for one card. The error,
// an *invalid.Error, names every problem.
func Read(data []byte) (*Card, error) {
	given, err := parse(data)
	if err != nil {
		return nil, err
	}
	r := &reading{card: &Card{}, given: given}
	r.fill()
	if r.wrong.OrNil() == nil {
		r.complete()
		r.check()
	}
	if err := r.wrong.OrNil(); err != nil {
		return nil, err
	}
	return r.card, nil
}

// parse splits the object by key.
func parse(data []byte) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("not JSON, at byte %d: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf("%s is not a JSON object", invalid.Shorten(data))
	}
	list, ok := given["gpus"]
	if !ok || len(given) > 1 {
		return given, nil
	}
	var cards []map[string]json.RawMessage
	if json.Unmarshal(list, &cards) != nil || len(cards) != 1 {
		return nil, errors.New("gpus must be a list of one card; keep the one that you mean")
	}
	return cards[0], nil
}

// reading is a card that is being read.
type reading struct {
	card  *Card
	given map[string]json.RawMessage
	wrong invalid.Error
}

func (r *reading) add(key, format string, args ...any) {
	r.wrong.Add(invalid.At(key, fmt.Errorf(format, args...)))
}

func (r *reading) has(key string) bool {
	raw, ok := r.given[key]
	return ok && string(raw) != "null"
}

// fill reads the keys that were given.
func (r *reading) fill() {
	fields := fieldsOf(r.card)
	for _, key := range slices.Sorted(maps.Keys(r.given)) {
		field, ok := fields[key]
		switch {
		case !ok:
			r.wrong.Add(invalid.At(key, unknownKey(key, slices.Sorted(maps.Keys(fields)))))
		case !r.has(key):
		default:
			if err := decode(r.given[key], field.into); err != nil {
				r.add(key, "%s is %s; it must be %s", key, invalid.Shorten(r.given[key]), field.kind)
				continue
			}
			r.checkRange(key)
		}
	}
	for _, key := range needed {
		if !r.has(key) {
			r.add(key, "%s is missing; it must be %s", key, fields[key].kind)
		}
	}
}

// unknownKey names the keys that were probably meant, or all.
func unknownKey(key string, keys []string) error {
	if near := nearest.To(key, keys); len(near) > 0 {
		return fmt.Errorf("%q is not a key of a card; did you mean %s?", key, strings.Join(near, " or "))
	}
	return fmt.Errorf("%q is not a key of a card; the keys are %s", key, strings.Join(keys, ", "))
}

// field is the destination of a key's value, and its constraint.
type field struct {
	into any
	kind string
}

// fieldsOf returns the fields of a card by their keys.
func fieldsOf(c *Card) map[string]field {
	fields := make(map[string]field)
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := field{into: v.Field(i).Addr().Interface()}
		switch into := f.into.(type) {
		case *Amount:
			f.into, f.kind = (*size)(into), `a size as "23.6 GiB", or an object with bytes and source`
		case *Capability:
			f.into, f.kind = (*known)(into), `one of "`+strings.Join(capabilities(), `", "`)+`"`
		case *Rates:
			f.kind = "an object with fp32, and tf32, bf16 and fp16 where the card has them"
		case **Price:
			f.kind = "an object with usd_per_hour, provider, source and as_of"
		case *[]string:
			f.kind = "a list of texts"
		case *string:
			f.kind = "text"
		case *bool:
			f.kind = "true or false"
		case *float64:
			f.kind = "a number"
		default:
			f.kind = "a whole number"
		}
		fields[key] = f
	}
	return fields
}

// size is an amount that people may write as "24 GiB" or in bytes.
type size Amount

// UnmarshalJSON implements json.Unmarshaler.
func (s *size) UnmarshalJSON(data []byte) (err error) {
	var text string
	switch {
	case data[0] == '{':
		type object size
		return decode(data, (*object)(s))
	case json.Unmarshal(data, &text) == nil:
		s.Bytes, err = bytesize.Parse(text)
	default:
		err = json.Unmarshal(data, &s.Bytes)
	}
	return err
}

// known is a compute capability whose limits are known.
type known Capability

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *known) UnmarshalText(text []byte) error {
	err := (*Capability)(k).UnmarshalText(text)
	if _, ok := limits[Capability(*k)]; err == nil && !ok {
		err = errors.New("its limits are not known")
	}
	return err
}

func decode(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// complete fills in the missing keys.
func (r *reading) complete() {
	c, like := r.card, mostSimilar(r.card)
	limits := c.Limits()
	if !r.has("threads_per_multiprocessor") {
		c.ThreadsPerSM = limits.Threads
	}
	if !r.has("context") {
		c.Context = estimatedContext(c)
	}
	for _, f := range []struct {
		key  string
		copy func()
	}{
		{"l2_bytes", func() { c.L2 = like.L2 }},
		{"clock_mhz", func() { c.ClockMHz = like.ClockMHz }},
		{"memory_clock_mhz", func() { c.MemoryClockMHz = like.MemoryClockMHz }},
		{"bus_bits", func() { c.BusBits = like.BusBits }},
		{"ecc", func() { c.ECC = like.ECC }},
	} {
		if !r.has(f.key) {
			f.copy()
			c.Estimated = append(c.Estimated, f.key)
		}
	}
	if !r.has("bandwidth_gb_per_s") {
		c.BandwidthGBPerS = c.busGBPerS()
	}
	if !r.has("dense_tflops") {
		share := float64(c.SMs*c.ClockMHz) / float64(like.SMs*like.ClockMHz)
		of := like.DenseTFLOPS
		c.DenseTFLOPS = Rates{FP32: share * of.FP32, TF32: share * of.TF32, BF16: share * of.BF16, FP16: share * of.FP16}
	}
	const source = "the description of the card"
	for _, s := range []*string{&c.Memory.Source, &c.Context.Source, &c.DeviceSource, &c.Source} {
		*s = cmp.Or(*s, source+"; what it leaves out is that of an "+like.Name)
	}
}

// mostSimilar returns the card of the catalog whose capability is nearest, and
// of those the one with the nearest number of multiprocessors.
func mostSimilar(c *Card) *Card {
	distance := func(x *Card) int {
		a, b := x.ComputeCapability, c.ComputeCapability
		return 10_000*abs(10*(a.Major-b.Major)+a.Minor-b.Minor) + abs(x.SMs-c.SMs)
	}
	return slices.MinFunc(load(), func(a, b *Card) int { return cmp.Compare(distance(a), distance(b)) })
}

func abs(n int) int { return max(n, -n) }

// busGBPerS computes the bandwidth from the memory's clock and bus: it moves
// data twice a clock.
func (c *Card) busGBPerS() float64 {
	return 2 * float64(c.MemoryClockMHz) * float64(c.BusBits) / 8 / 1e3
}

// estimatedContext is the catalog's rule for cards whose context was not
// measured.
func estimatedContext(c *Card) Amount {
	const perThread, libraries = 2 * bytesize.KiB, 244 * bytesize.MiB
	return Amount{
		Bytes: bytesize.Bytes(c.SMs*c.ThreadsPerSM)*perThread + libraries, Estimated: true,
		Source: "2 KiB for each thread that can be resident, and 244 MiB for libraries and kernels",
	}
}

// ranges are the allowed values of a card, by key.
var ranges = map[string]struct {
	of          func(*Card) float64
	least, most float64
	words       string
}{
	"memory":             {func(c *Card) float64 { return float64(c.Memory.Bytes) }, 1 << 30, 1 << 44, "1 GiB to 16 TiB"},
	"context":            {func(c *Card) float64 { return float64(c.Context.Bytes) }, 0, 1 << 40, "0 to 1 TiB"},
	"multiprocessors":    {func(c *Card) float64 { return float64(c.SMs) }, 1, 1024, "1 to 1024"},
	"l2_bytes":           {func(c *Card) float64 { return float64(c.L2) }, 1, 1 << 32, "1 to 4294967296"},
	"clock_mhz":          {func(c *Card) float64 { return float64(c.ClockMHz) }, 1, 1e4, "1 to 10000"},
	"memory_clock_mhz":   {func(c *Card) float64 { return float64(c.MemoryClockMHz) }, 1, 1e5, "1 to 100000"},
	"bus_bits":           {func(c *Card) float64 { return float64(c.BusBits) }, 8, 1 << 16, "8 to 65536"},
	"bandwidth_gb_per_s": {func(c *Card) float64 { return c.BandwidthGBPerS }, 1, 1e6, "1 to 1000000"},
}

// checkRange reports a key whose value is out of range.
func (r *reading) checkRange(key string) {
	if x, ok := ranges[key]; ok && (x.of(r.card) < x.least || x.of(r.card) > x.most) {
		r.add(key, "%s is %s; it must be %s", key, invalid.Shorten(r.given[key]), x.words)
	}
}

// check reports values that contradict each other.
func (r *reading) check() {
	c := r.card
	if want := c.Limits().Threads; c.ThreadsPerSM != want {
		r.add("threads_per_multiprocessor", "threads_per_multiprocessor is %d; compute capability %v has %d", c.ThreadsPerSM, c.ComputeCapability, want)
	}
	if c.Usable() <= 0 {
		r.add("memory", "memory is %v; it must be more than the context, %v", c.Memory.Bytes, c.Context.Bytes)
	}
	if t := c.DenseTFLOPS; t.FP32 <= 0 || min(t.TF32, t.BF16, t.FP16) < 0 {
		r.add("dense_tflops", "dense_tflops is %s; fp32 must be more than 0, and no rate less", invalid.Shorten(r.given["dense_tflops"]))
	}
	if c.Price != nil && c.Price.USDPerHour <= 0 {
		r.add("price", "price is %s; usd_per_hour must be more than 0", invalid.Shorten(r.given["price"]))
	}
	r.checkBus()
}

// checkBus compares three figures; each follows from the two others.
func (r *reading) checkBus() {
	c := r.card
	if !r.has("bandwidth_gb_per_s") || !r.has("memory_clock_mhz") || !r.has("bus_bits") {
		return
	}
	if bus := c.busGBPerS(); math.Abs(bus/c.BandwidthGBPerS-1) > 0.1 {
		r.add("bandwidth_gb_per_s", "bandwidth_gb_per_s is %g, but memory_clock_mhz %d on bus_bits %d is %g; the clock is half of the data rate",
			c.BandwidthGBPerS, c.MemoryClockMHz, c.BusBits, bus)
	}
}
