package data

import (
	"fmt"
	"slices"
	"strings"
)

// LoadReport says what a loader read, what it kept, and what it left out and
// why. Nothing is left out without a line here.
type LoadReport struct {
	Source  string    `json:"source"`
	Rows    int       `json:"rows"` // read, without the header
	Kept    int       `json:"kept"` // of them: to train on, or held out
	LeftOut []LeftOut `json:"left_out"`
	Notes   []string  `json:"notes,omitempty"`
	// Columns and Missing are a table's: what was moved, by column, and how many cells
	// are missing, by client.
	Columns []MovedCells   `json:"-"`
	Missing map[string]int `json:"-"`
}

// MovedCells counts cells of a column that are not what the run file says of it.
type MovedCells struct {
	Name    string `json:"name"`
	Clipped int    `json:"clipped"`
	Other   int    `json:"other"`
	Missing int    `json:"missing"`
}

// LeftOut counts what was left out for one reason, and lists the first places.
type LeftOut struct {
	Reason string   `json:"reason"`
	Count  int      `json:"count"`
	Places []string `json:"places,omitempty"`
}

// maxPlaces bounds how many places a report lists for one reason.
const maxPlaces = 10

// clone is a report to go on counting in; what was read is kept for other runs.
func (r LoadReport) clone() LoadReport {
	r.LeftOut, r.Notes = slices.Clone(r.LeftOut), slices.Clone(r.Notes)
	for i := range r.LeftOut {
		r.LeftOut[i].Places = slices.Clone(r.LeftOut[i].Places)
	}
	return r
}

// leaveOut counts one row or client, with its place if it has one.
func (r *LoadReport) leaveOut(reason, place string) {
	o := r.leaveOutMany(reason, 1)
	if place != "" && len(o.Places) < maxPlaces {
		o.Places = append(o.Places, place)
	}
}

// TinySilo is a silo that has nothing to train on, and how many rows it has.
type TinySilo struct {
	Name string
	Rows int
}

// leaveOutTiny counts a silo that is left out; its rows are not kept.
func (r *LoadReport) leaveOutTiny(s TinySilo) {
	r.leaveOut(leftTinySilo, fmt.Sprintf("%s: %d rows", s.Name, s.Rows))
	r.Kept -= s.Rows
}

// leaveOutMany counts examples that have no place of their own.
func (r *LoadReport) leaveOutMany(reason string, count int) *LeftOut {
	i := slices.IndexFunc(r.LeftOut, func(o LeftOut) bool { return o.Reason == reason })
	if i < 0 {
		i = len(r.LeftOut)
		r.LeftOut = append(r.LeftOut, LeftOut{Reason: reason})
	}
	r.LeftOut[i].Count += count
	return &r.LeftOut[i]
}

// String is the report for people: one line, and one more for every reason,
// place and note.
func (r *LoadReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d rows read, %d kept\n", r.Source, r.Rows, r.Kept)
	for _, o := range r.LeftOut {
		fmt.Fprintf(&b, "  left out: %d (%s)\n", o.Count, o.Reason)
		for _, p := range o.Places {
			fmt.Fprintf(&b, "    %s\n", p)
		}
		if more := o.Count - len(o.Places); more > 0 && len(o.Places) > 0 {
			fmt.Fprintf(&b, "    and %d more\n", more)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
