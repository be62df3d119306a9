package data

import (
	"math"

	"github.com/coterie-fl/coterie/config"
)

// SiloKind is a data set of silos as the run file knows it: paper 002's settings that
// its data sets share (appendices B.1 and B.4), then those of its own, with deltas and
// steps of its authors' published scripts. Keys are those of the data block that it reads.
func SiloKind(name string, own func(r *config.Run), keys ...string) config.DataKind {
	return config.DataKind{Name: name, Method: "mr-mtl", OwnTest: true, Keys: keys, Settings: func(r *config.Run) {
		a, p := &r.Algorithm, &r.Privacy
		r.Data.TestShare, r.Data.Standardise = 0.2, string(BySilo)
		r.Model.Intercept, r.Model.InitSD = true, 0
		a.Rounds, a.ClientsPerRound, a.Stop = 200, 0, config.Stop{Return: "last", Every: 1}
		a.Local.Step, a.Local.Batch, a.Local.Loss, a.Local.Remainder = 0.01, 32, "half-squared-error", "drop"
		a.Empty, a.Clustering, a.Weights = "keep", "declared", "counts"
		a.Selection = config.Selection{Rule: "private", Share: 0.1, EpsilonShare: 0.03, Score: "error", Bound: 0.1}
		p.Protects, p.Epsilon, p.Clip, p.UpdateClip = "example", 6, 1, 0.02
		r.Judge.By = "own"
		own(r)
		if a.Mode == "sound" {
			// Neighbours of one size leave sizes public; public constants tell of no row.
			p.Relation, r.Data.Standardise, p.MomentsShare = "replace-one", string(ByPublic), 0.1
		}
	}}
}

// pictured are settings of silos of pictures, which train a network of their own.
func pictured(r *config.Run, network string) {
	r.Model = config.Model{Kind: "network", Name: network}
}

// classified are settings of silos of labelled pictures.
func classified(r *config.Run, network string) {
	pictured(r, network)
	r.Algorithm.Local.Batch, r.Algorithm.Local.Step, r.Algorithm.Local.Loss = 100, 0.1, "cross-entropy"
}

// rowSilos is a data set of silos of rows. Ranges are documented public ones, if it
// has any.
func rowSilos(kind config.DataKind, words, get string, s Shape, ranges func() (centre, scale []float64), load func(folder string) (*Silos, error)) Kind {
	kind.Keys = []string{"test_share", "train_limit", "standardise", "centre", "scale"}
	return Kind{
		DataKind: kind, Shape: wholeShape(s),
		Check: func(c *config.Checker, d config.Data) { checkConstants(c, d, s.Features, ranges != nil) },
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			all, err := once(f, kind.Name, []string{kind.Name}, load)
			if err != nil {
				return nil, err
			}
			o := SiloOptions{Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: Standardise(d.Standardise)}
			o.Centre, o.Scale = PublicRange(d)
			return all.Federation(o)
		},
		Ranges: documented(ranges),
		Words:  func(config.Data) string { return words },
		Get:    get,
	}
}

// documented are ranges that do not depend on the block.
func documented(ranges func() (centre, scale []float64)) func(config.Data) ([]float64, []float64) {
	if ranges == nil {
		return nil
	}
	return func(config.Data) ([]float64, []float64) { return ranges() }
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

// twoParts are pictures to train with and pictures to test with.
type twoParts struct {
	train, test *Images
	report      LoadReport
}
