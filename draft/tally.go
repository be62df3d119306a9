package draft

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coterie-fl/coterie/data"
)

// What a tally keeps at most of one column.
const (
	mostDistinct = 20_000 // different values
	mostSample   = 20_000 // numbers that quantiles are taken of
)

// tally is what is counted of one column, cell by cell.
type tally struct {
	name          string
	cells         int // of them
	missing       int
	distinct      map[string]int // how often; of the first ones only, if there are many
	counted       int            // cells that distinct was counted of
	numbers       int
	integers      int
	low, high     float64
	sample        []float64 // every stride-th number
	stride, since int
	dates         int
	coded         int // that look like a number in a register
	spaced        int // that hold a blank
	parse         func(cell string) (float64, bool)
}

func newTally(name string) *tally {
	return &tally{name: name, distinct: map[string]int{}, low: math.Inf(1), high: math.Inf(-1), stride: 1}
}

// present is how many cells hold something.
func (t *tally) present() int { return t.cells - t.missing }

// add counts a cell, whose number the file's own way of writing tells. It is kept as it is
// written: lists in a run file are compared with cells.
func (t *tally) add(cell string, parse func(cell string) (float64, bool)) {
	t.cells++
	t.parse = parse
	if data.IsMissing([]byte(cell)) {
		t.missing++
		return
	}
	if n := t.distinct[cell]; n > 0 || len(t.distinct) < mostDistinct {
		t.distinct[strings.Clone(cell)] = n + 1
		t.counted++
	}
	if v, ok := parse(cell); ok {
		t.number(v)
	}
	if isDate(cell) {
		t.dates++
	}
	if looksCoded(cell) {
		t.coded++
	}
	if strings.ContainsFunc(cell, unicode.IsSpace) {
		t.spaced++
	}
}

func (t *tally) number(v float64) {
	t.numbers++
	if v == math.Trunc(v) {
		t.integers++
	}
	t.low, t.high = min(t.low, v), max(t.high, v)
	if t.since++; t.since < t.stride {
		return
	}
	t.since = 0
	if t.sample = append(t.sample, v); len(t.sample) < mostSample {
		return
	}
	half := t.sample[:0]
	for i := 0; i < len(t.sample); i += 2 {
		half = append(half, t.sample[i])
	}
	t.sample, t.stride = half, 2*t.stride
}

// mostlyDistinct says that hardly a value comes twice.
func (t *tally) mostlyDistinct() bool {
	return t.counted >= 20 && float64(len(t.distinct)) >= 0.9*float64(t.counted)
}

// values are the different ones: numbers by size, texts by letter.
func (t *tally) values() []string {
	out := make([]string, 0, len(t.distinct))
	for v := range t.distinct {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b string) int {
		x, isX := t.parse(a)
		y, isY := t.parse(b)
		if isX && isY && x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return out
}

// bulk is where the numbers lie: lowest and highest, but for those that lie further out
// than the middle 98 in 100 are wide. One wrong number would otherwise press all others
// together.
func (t *tally) bulk() (low, high float64) {
	slices.Sort(t.sample)
	n := len(t.sample)
	first, last := t.sample[n/100], t.sample[n-1-n/100]
	wide := last - first
	low, high = t.low, t.high
	if n < 20 || wide <= 0 {
		return low, high
	}
	if low < first-wide {
		low = first - wide/4
	}
	if high > last+wide {
		high = last + wide/4
	}
	return low, high
}

// isDate says that a cell is a day or a time, as people and programs write them.
func isDate(cell string) bool {
	if len(cell) < 8 || len(cell) > 35 || cell[0] < '0' || cell[0] > '9' {
		return false
	}
	for _, form := range []string{
		"2006-01-02", "2006/01/02", "2006.01.02", "02.01.2006", "2.1.2006", "01/02/2006", "1/2/2006", "02/01/2006", "2/1/2006", "02-01-2006",
		"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05", time.RFC3339Nano, "02.01.2006 15:04",
		"02.01.2006 15:04:05", "01/02/2006 15:04", "01/02/2006 15:04:05",
	} {
		if _, err := time.Parse(form, cell); err == nil {
			return true
		}
	}
	day, err := time.Parse("20060102", cell)
	return err == nil && day.Year() >= 1900 && day.Year() <= 2100
}

// looksCoded says that a cell looks like a number in a register: P000123, a UUID, or
// eight digits and more.
func looksCoded(cell string) bool {
	digits, letters, others := 0, 0, 0
	for _, r := range cell {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		case r == '-' || r == '_' || r == '/':
		default:
			others++
		}
	}
	return others == 0 && (digits >= 4 && letters > 0 || digits >= 8)
}
