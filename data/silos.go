package data

import (
	"fmt"
	"math"
	"slices"
)

// Silos are institutions with examples of the same form, before anything is held out.
type Silos struct {
	// All are the silos. One whose Held is not nil has a test part of its own: nothing
	// more is held out of its examples.
	All      []Client
	Features int
	// Classes is how many labels Y can have, from 0; 0: Y are values.
	Classes int
	Report  LoadReport
	// NotCovered lists what was done to the rows before they were stored.
	NotCovered []string
	// Encoding is how a table became rows; nil: it was none.
	Encoding *Encoding
	// Sensitive are attributes of the rows, by name and values; clients hold the groups.
	Sensitive []SensitiveColumn
}

// SiloOptions say how silos become a federation.
type SiloOptions struct {
	Seed uint64
	// TestShare is the share of every silo's rows that is held out: each row by a number
	// of its own, so that how many there are in the end follows from chance. Nobody asks
	// for it if every silo has a test part of its own.
	TestShare float64
	// TrainLimit is how many rows a silo trains on at most; 0: all that are left.
	TrainLimit  int
	Standardise Standardise
	// Centre and Scale are ByPublic's constants, (x - Centre) / Scale, and ByPaid's
	// ranges.
	Centre, Scale []float64
}

func (o SiloOptions) check(s *Silos) error {
	features := s.Features
	asked := slices.ContainsFunc(s.All, func(c Client) bool { return c.Held == nil })
	if asked && !(o.TestShare > 0 && o.TestShare < 1) {
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

// parts are the places of a silo's examples to train on, and what it holds out.
func (c *Client) parts(o SiloOptions) (train []int, held Client) {
	if c.Held != nil {
		return places(c.Len()), c.Held.Pick(places(c.Held.Len()))
	}
	train, index := c.split(o.TestShare, o.Seed)
	return train, c.Pick(index)
}

// Federation holds out part of every silo's rows, by numbers drawn from each row
// alone, unless they are held out already, and scales features. A silo without rows to train on is left out and counted;
// one that holds nothing out stays.
func (s *Silos) Federation(o SiloOptions) (*Federation, error) {
	if err := o.check(s); err != nil {
		return nil, err
	}
	f := &Federation{Features: s.Features, Classes: s.Classes, Encoding: s.Encoding}
	report := s.Report.clone()
	for i := range s.All {
		all := &s.All[i]
		train, held := all.parts(o)
		if len(train) == 0 {
			report.leaveOut(leftTinySilo, fmt.Sprintf("%s: %d rows", all.Name, all.Len()))
			continue
		}
		kept := atMost(o.TrainLimit, train, all.numbers(o.Seed, "limit"))
		if over := len(train) - len(kept); over > 0 {
			report.leaveOutMany(leftOverLimit, over)
		}
		c := all.Pick(kept)
		c.Held = &held
		centre, scale := o.Centre, o.Scale
		if o.Standardise == BySilo {
			centre, scale = moments(c.Rows)
		}
		if o.Standardise == BySilo || o.Standardise == ByPublic {
			c.standardise(centre, scale)
			c.Held.standardise(centre, scale)
		}
		f.Train = append(f.Train, c)
	}
	if len(f.Train) == 0 {
		return nil, fmt.Errorf("no silo is left: %s", &report)
	}
	f.NotCovered = slices.Clone(s.NotCovered)
	if o.Standardise == BySilo {
		f.NotCovered = append(f.NotCovered, notStandardised)
	}
	f.Report = &report
	for i, a := range s.Sensitive {
		for k := range f.Train {
			a.Groups = append(a.Groups, f.Train[k].Held.Sensitive[i])
		}
		f.Sensitive = append(f.Sensitive, a)
	}
	return f, nil
}
