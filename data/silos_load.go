package data

import (
	"math"

	"github.com/coterie-fl/coterie/config"
)

// siloKeys are those that silos of rows read.
var siloKeys = []string{"test_share", "train_limit", "standardise", "centre", "scale"}

// rowSilos is a data set of silos of rows. Ranges are documented public ones, if it
// has any.
func rowSilos(name, words string, s Shape, ranges func() (centre, scale []float64), load func(folder string) (*Silos, error)) Kind {
	return Kind{
		Name: name, Keys: siloKeys, Shape: wholeShape(s),
		Check: func(c *config.Checker, d config.Data) { checkConstants(c, d, s.Features, ranges != nil) },
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			all, err := f.readSilos(name, load)
			if err != nil {
				return nil, err
			}
			o := SiloOptions{Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: Standardise(d.Standardise)}
			o.Centre, o.Scale = PublicRange(d)
			return all.Federation(o)
		},
		Ranges: ranges,
		Words:  func(config.Data) string { return words },
	}
}

func checkConstants(c *config.Checker, d config.Data, features int, documented bool) {
	if d.Standardise != string(ByPublic) && d.Standardise != string(ByPaid) {
		c.Require(len(d.Centre) == 0 && len(d.Scale) == 0, "data.standardise", "is %q, but public constants are given; allowed with them: public, paid", d.Standardise)
		return
	}
	if documented && len(d.Centre) == 0 && len(d.Scale) == 0 {
		return
	}
	for _, k := range []struct {
		path   string
		values []float64
		least  float64
	}{{"data.centre", d.Centre, math.Inf(-1)}, {"data.scale", d.Scale, 0}} {
		c.Require(len(k.values) == features, k.path, "has %d values for %d features: standardise %s needs a constant for each, or choose silo or none", len(k.values), features, d.Standardise)
		for j, v := range k.values {
			c.Require(v > k.least && !math.IsInf(v, 0), k.path, "value %d is %v; allowed: finite, above %v", j, v, k.least)
		}
	}
}

// readSilos reads a data set of rows once.
func (f *Folder) readSilos(name string, load func(folder string) (*Silos, error)) (*Silos, error) {
	if err := f.Has(name); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.silos[name]; s != nil {
		return s, nil
	}
	s, err := load(f.path)
	if err == nil {
		f.silos[name] = s
	}
	return s, err
}

// twoParts are pictures to train with and pictures to test with.
type twoParts struct {
	train, test *Images
	report      LoadReport
}

// readPictures reads a set of pictures once.
func (f *Folder) readPictures(set string, read func() (twoParts, error)) (*twoParts, error) {
	if err := f.Has(set); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pictures[set]; p != nil {
		return p, nil
	}
	p, err := read()
	if err != nil {
		return nil, err
	}
	f.pictures[set] = &p
	return &p, nil
}

// checkPictured refuses what pictures do not have.
func checkPictured(c *config.Checker, d config.Data) {
	c.Require(d.Standardise != string(ByPaid), "data.standardise", "is paid, but %s has pictures, which are not standardised; leave it out", d.Kind)
}

// leaveOutMany counts examples that have no place of their own.
func (r *LoadReport) leaveOutMany(reason string, count int) {
	for i := range r.LeftOut {
		if r.LeftOut[i].Reason == reason {
			r.LeftOut[i].Count += count
			return
		}
	}
	r.LeftOut = append(r.LeftOut, LeftOut{Reason: reason, Count: count})
}
