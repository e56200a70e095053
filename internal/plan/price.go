package plan

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"memorymark/internal/gpu"
)

// Price is what an hour of a card costs.
type Price = gpu.Price

// Prices are by the id of a card. A card without one has no price.
type Prices map[string]*Price

// priceOf is the price of a card. What the user has costs nothing here.
func (q *Question) priceOf(h Holding) *Price {
	switch {
	case q.Prices != nil:
		return q.Prices[h.Card.ID]
	case h.Count > 0:
		return nil
	default:
		return h.Card.Price
	}
}

// Cards are the cards of the catalog that can be compared by their prices: those
// that all customers get for a machine, of about the same time.
func Cards() []Holding {
	var out []Holding
	newest := newestPrice()
	for _, c := range gpu.All() {
		if c.Price != nil && c.Price.Market == listPrice && !older(c.Price, newest) {
			out = append(out, Holding{Card: c})
		}
	}
	return out
}

// listPrice is the market of prices that all customers get.
const listPrice = "list"

// samePeriod is how long prices are taken to be of the same time.
const samePeriod = 180 * 24 * time.Hour

func newestPrice() time.Time {
	var newest time.Time
	for _, c := range gpu.All() {
		if c.Price == nil {
			continue
		}
		if day, err := time.Parse(time.DateOnly, c.Price.AsOf); err == nil && day.After(newest) {
			newest = day
		}
	}
	return newest
}

// older reports whether a price is of another time than the newest.
func older(p *Price, newest time.Time) bool {
	day, err := time.Parse(time.DateOnly, p.AsOf)
	return err != nil || newest.Sub(day) > samePeriod
}

// maxRows is more cards than a price list has.
const maxRows = 10_000

// ReadPrices reads a table with the columns gpu and usd_per_hour, and maybe
// provider, market and as_of.
func ReadPrices(r io.Reader) (Prices, error) {
	table := csv.NewReader(r)
	table.TrimLeadingSpace = true
	head, err := table.Read()
	if err != nil {
		return nil, fmt.Errorf("read the first row: %w", err)
	}
	column := make(map[string]int)
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(priceColumns, name) {
			return nil, fmt.Errorf("column %q is not known; the columns are %s", name, strings.Join(priceColumns, ", "))
		}
		column[name] = i
	}
	for _, name := range priceColumns[:2] {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("column %s is missing; the first row names the columns, as in gpu,usd_per_hour,provider,market,as_of", name)
		}
	}
	out := make(Prices)
	for len(out) < maxRows {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		card, err := gpu.Find(strings.TrimSpace(row[column["gpu"]]))
		if err == nil {
			err = out.add(card, column, row)
		}
		if err != nil {
			line, _ := table.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	return nil, fmt.Errorf("there are more than %d rows", maxRows)
}

// ReadPriceList reads YAML, or JSON: a list of objects with the keys of such a table,
// whose gpu is the id of a card or describes one as gpu.Read has it. It returns those
// that are described, too.
func ReadPriceList(data []byte) (Prices, []*gpu.Card, error) {
	var rows []map[string]any
	if err := yaml.Unmarshal(data, &rows); err != nil {
		return nil, nil, fmt.Errorf("it must be a list of objects with the keys %s: %w", strings.Join(priceColumns, ", "), err)
	}
	if len(rows) == 0 || len(rows) > maxRows {
		return nil, nil, fmt.Errorf("it has %d prices; it must have from 1 to %d", len(rows), maxRows)
	}
	out, described := make(Prices), []*gpu.Card(nil)
	for i, row := range rows {
		card, own, err := cardOf(row["gpu"])
		if err == nil {
			err = out.addRow(card, row)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("price %d: %w", i+1, err)
		}
		if own {
			described = append(described, card)
		}
	}
	return out, described, nil
}

// cardOf is a card by its id, or by what describes one of the user's own.
func cardOf(given any) (card *gpu.Card, own bool, err error) {
	fields, ok := given.(map[string]any)
	if !ok {
		card, err = gpu.Find(fmt.Sprint(given))
		return card, false, err
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, false, err
	}
	if card, err = gpu.Read(data); err != nil {
		return nil, false, err
	}
	if card.Name == "" {
		return nil, false, errors.New("gpu: a card of your own needs a name")
	}
	card.ID = card.Name
	return card, true, nil
}

// addRow reads an object of a list.
func (p Prices) addRow(card *gpu.Card, row map[string]any) error {
	column, cells := make(map[string]int), []string(nil)
	for name, value := range row {
		if !slices.Contains(priceColumns, name) {
			return fmt.Errorf("key %q is not known; the keys are %s", name, strings.Join(priceColumns, ", "))
		}
		column[name] = len(cells)
		if day, ok := value.(time.Time); ok {
			value = day.Format(time.DateOnly)
		}
		cells = append(cells, fmt.Sprint(value))
	}
	return p.add(card, column, cells)
}

var priceColumns = []string{"gpu", "usd_per_hour", "provider", "market", "as_of"}

// add reads the price of a card from a row.
func (p Prices) add(card *gpu.Card, column map[string]int, row []string) error {
	text := func(name string) string {
		if i, ok := column[name]; ok {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	dollars, err := strconv.ParseFloat(text("usd_per_hour"), 64)
	if err != nil || !(dollars > 0) || dollars > 1e6 {
		return fmt.Errorf("usd_per_hour is %q; it must be a number above 0", text("usd_per_hour"))
	}
	if day := text("as_of"); day != "" {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return fmt.Errorf("as_of is %q; it must be a date such as 2026-11-15", day)
		}
	}
	if p[card.ID] != nil {
		return fmt.Errorf("%s has two prices; keep one", card.ID)
	}
	p[card.ID] = &Price{USDPerHour: dollars, Provider: text("provider"), Market: text("market"), AsOf: text("as_of"), Source: "your table of prices"}
	return nil
}
