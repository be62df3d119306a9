package data

import (
	"fmt"
	"math"
	"slices"
)

// Silo is one institution and all its rows, before anything is held out.
type Silo struct {
	Name string
	Rows Rows
}

// Silos are institutions with rows of the same features.
type Silos struct {
	All      []Silo
	Features int
	// Classes is how many labels Y can have, from 0; 0: Y are values.
	Classes int
	Report  LoadReport
	// NotCovered lists what was done to the rows before they were stored.
	NotCovered []string
}

// Standardise says where the constants come from that features are scaled by.
type Standardise string

// The ways to standardise.
const (
	// BySilo takes every silo's mean and standard deviation over its own training
	// rows, as paper 002's code does: all rows then depend on each other.
	BySilo Standardise = "silo"
	// ByPublic takes constants that were fixed without looking at the rows.
	ByPublic Standardise = "public"
	// ByPaid leaves scaling to whoever can pay for moments: package fl. Centre and
	// Scale are then the public range that rows are clamped to, Centre ± Scale.
	ByPaid Standardise = "paid"
	// Unscaled leaves features as they are.
	Unscaled Standardise = "none"
)

// notStandardised is what BySilo leaves out of the accounting.
const notStandardised = "standardisation (every silo's features are scaled by its own training rows)"

// SiloOptions say how silos become a federation.
type SiloOptions struct {
	Seed uint64
	// TestShare is the share of every silo's rows that is held out: each row by a number
	// of its own, so that how many there are in the end follows from chance.
	TestShare float64
	// TrainLimit is how many rows a silo trains on at most; 0: all that are left.
	TrainLimit  int
	Standardise Standardise
	// Centre and Scale are ByPublic's constants, (x - Centre) / Scale, and ByPaid's
	// ranges.
	Centre, Scale []float64
}

func (o SiloOptions) check(features int) error {
	if !(o.TestShare > 0 && o.TestShare < 1) {
		return fmt.Errorf("silos: a test share of %v; allowed: between 0 and 1", o.TestShare)
	}
	switch o.Standardise {
	case BySilo, Unscaled:
	case ByPublic, ByPaid:
		if len(o.Centre) != features || len(o.Scale) != features {
			return fmt.Errorf("silos: standardise %s needs %d public constants in centre and in scale, got %d and %d: give data.centre and data.scale", o.Standardise, features, len(o.Centre), len(o.Scale))
		}
		for j, s := range o.Scale {
			if !(s > 0) || math.IsInf(s, 0) || math.IsNaN(o.Centre[j]) || math.IsInf(o.Centre[j], 0) {
				return fmt.Errorf("silos: feature %d: centre %v and scale %v; allowed: finite, the scale positive", j, o.Centre[j], s)
			}
		}
	default:
		return fmt.Errorf("silos: standardise %q; allowed: silo, public, paid, none", o.Standardise)
	}
	return nil
}

// Why silos and examples are left out.
const (
	leftTinySilo  = "silo with too few examples to train on"
	leftOverLimit = "examples above data.train_limit"
	leftUneven    = "examples that do not divide among the silos"
)

// Federation holds out part of every silo's rows, by numbers drawn from each row
// alone, and scales features. A silo without rows to train on is left out and counted;
// one that holds nothing out stays.
func (s *Silos) Federation(o SiloOptions) (*Federation, error) {
	if err := o.check(s.Features); err != nil {
		return nil, err
	}
	f := &Federation{Features: s.Features, Classes: s.Classes}
	report := s.Report
	report.LeftOut, report.Notes = slices.Clone(report.LeftOut), slices.Clone(report.Notes)
	var buffer []byte
	for _, silo := range s.All {
		number := func(purpose string) func(int) uint64 {
			draw := newRowDraw(o.Seed, purpose, silo.Name)
			return func(i int) uint64 {
				buffer = silo.Rows.bytes(i, buffer)
				return draw.of(buffer)
			}
		}
		train, test := holdOut(silo.Rows.Len(), o.TestShare, number("hold out"))
		if len(train) == 0 {
			report.leaveOut(leftTinySilo, fmt.Sprintf("%s: %d rows", silo.Name, silo.Rows.Len()))
			continue
		}
		kept := atMost(o.TrainLimit, train, number("limit"))
		if over := len(train) - len(kept); over > 0 {
			report.leaveOutMany(leftOverLimit, over)
		}
		train = kept
		a, b := silo.Rows.pick(train), silo.Rows.pick(test)
		centre, scale := o.Centre, o.Scale
		if o.Standardise == BySilo {
			centre, scale = moments(a)
		}
		if o.Standardise == BySilo || o.Standardise == ByPublic {
			a.standardise(centre, scale)
			b.standardise(centre, scale)
		}
		f.Train = append(f.Train, Client{Rows: a})
		f.Test = append(f.Test, Client{Rows: b})
		f.Names = append(f.Names, silo.Name)
	}
	if len(f.Train) == 0 {
		return nil, fmt.Errorf("no silo is left: %s", &report)
	}
	f.NotCovered = slices.Clone(s.NotCovered)
	if o.Standardise == BySilo {
		f.NotCovered = append(f.NotCovered, notStandardised)
	}
	f.Report = &report
	return f, nil
}

// pick copies some rows.
func (r Rows) pick(index []int) Rows {
	out := Rows{Features: r.Features, X: make([]float64, 0, len(index)*r.Features), Y: make([]float64, 0, len(index))}
	for _, i := range index {
		out.X = append(out.X, r.X[i*r.Features:(i+1)*r.Features]...)
		out.Y = append(out.Y, r.Y[i])
	}
	return out
}

// moments are every feature's mean and standard deviation, with n in the
// denominator. A constant feature has deviation 1: it becomes 0.
func moments(r Rows) (mean, deviation []float64) {
	mean, deviation = make([]float64, r.Features), make([]float64, r.Features)
	n := float64(r.Len())
	for i := range r.Len() {
		for j, v := range r.X[i*r.Features : (i+1)*r.Features] {
			mean[j] += v
		}
	}
	for j := range mean {
		mean[j] /= n
	}
	for i := range r.Len() {
		for j, v := range r.X[i*r.Features : (i+1)*r.Features] {
			deviation[j] += (v - mean[j]) * (v - mean[j]) / n
		}
	}
	for j, v := range deviation {
		deviation[j] = math.Sqrt(v)
		// What is left of a constant after rounding is not a spread.
		if deviation[j] <= 1e-12*math.Abs(mean[j]) || deviation[j] == 0 {
			deviation[j] = 1
		}
	}
	return mean, deviation
}

func (r Rows) standardise(centre, scale []float64) {
	for i := range r.Len() {
		x := r.X[i*r.Features : (i+1)*r.Features]
		for j := range x {
			x[j] = (x[j] - centre[j]) / scale[j]
		}
	}
}
