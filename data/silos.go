package data

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/coterie-fl/coterie/internal/pool"
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
	// Consume gives the silos' own rows away where they are held out already, instead of
	// a copy: they are not used again.
	Consume bool
	// KeepEmpty lets silos stay that have nothing to train on: where a silo joins by
	// itself, its absence would tell of its last row.
	KeepEmpty bool
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

// Federation holds out part of every silo's rows, by numbers drawn from each row
// alone, unless they are held out already, and scales features. A silo without rows to
// train on is left out and counted, unless it is to stay; one that holds nothing out stays.
func (s *Silos) Federation(o SiloOptions) (*Federation, error) {
	if err := o.check(s); err != nil {
		return nil, err
	}
	f, report := s.begin()
	parts := make([]divided, len(s.All))
	workers := pool.New(runtime.GOMAXPROCS(0))
	workers.Each(len(s.All), func(_, i int) { parts[i] = s.All[i].settle(o) })
	workers.Close()
	for i, d := range parts {
		if d.Client.Held == nil {
			rows := s.All[i].Len()
			if held := s.All[i].Held; held != nil {
				rows += held.Len()
			}
			report.leaveOutTiny(TinySilo{s.All[i].Name, rows})
			continue
		}
		if d.over > 0 {
			report.leaveOutMany(leftOverLimit, d.over)
			report.Kept -= d.over
		}
		f.Train = append(f.Train, d.Client)
	}
	if len(f.Train) == 0 {
		return nil, fmt.Errorf("no silo is left: %s", report)
	}
	f.cover(s, o)
	f.Report = report
	for i, a := range s.Sensitive {
		for k := range f.Train {
			a.Groups = append(a.Groups, f.Train[k].Held.Sensitive[i])
		}
		f.Sensitive = append(f.Sensitive, a)
	}
	return f, nil
}

// begin is a federation without clients, and what is told of it so far.
func (s *Silos) begin() (*Federation, *LoadReport) {
	f := &Federation{Features: s.Features, Classes: s.Classes, Encoding: s.Encoding}
	if s.Encoding != nil {
		f.Unit = s.Encoding.Unit()
	}
	report := s.Report.clone()
	return f, &report
}

// cover says what no accounting covers of how silos were read and scaled.
func (f *Federation) cover(s *Silos, o SiloOptions) {
	f.NotCovered = slices.Clone(s.NotCovered)
	if o.Standardise == BySilo {
		f.NotCovered = append(f.NotCovered, notStandardised)
	}
}

// divided is a silo that trains, with what it holds out; the zero value has nothing to
// train on.
type divided struct {
	Client
	over int // rows above the limit
}

// settle divides and scales one silo's rows.
func (c *Client) settle(o SiloOptions) (out divided) {
	var train, held []int
	if c.Held != nil {
		train = places(c.Len())
	} else {
		train, held = c.split(o.TestShare, o.Seed)
	}
	if len(train) == 0 && !o.KeepEmpty {
		return out
	}
	kept := c.atMost(o.TrainLimit, train, o.Seed)
	out.over = len(train) - len(kept)
	if o.Consume && c.Held != nil && len(kept) == c.Len() {
		out.Client = *c
	} else {
		out.Client = c.divide(kept, held)
	}
	if c.Held != nil {
		whole := *c.Held
		if !o.Consume {
			whole = c.Held.Pick(places(c.Held.Len()))
		}
		out.Held = &whole
	}
	centre, scale := o.Centre, o.Scale
	if o.Standardise == BySilo {
		centre, scale = moments(out.Rows)
	}
	if o.Standardise == BySilo || o.Standardise == ByPublic {
		out.standardise(centre, scale)
		out.Held.standardise(centre, scale)
	}
	return out
}
