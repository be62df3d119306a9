package audit

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// The tiny silo: a few ordinary rows, and a feature that the canary alone has.
const (
	ordinaryRows     = 7
	ordinaryFeatures = 3
	canaryFeature    = ordinaryFeatures
	// canaryValue makes the canary's gradient far longer than any clip, and its share
	// of the intercept's gradient a millionth.
	canaryValue = 1000
)

// CheckCanary lists what a run file must say so that its pipeline can be audited.
func CheckCanary(run config.Run) config.Faults {
	var c config.Checker
	d, a, p := run.Data, run.Algorithm, run.Privacy
	shape, _ := data.ShapeOf(d)
	c.Require(!shape.Pictures(), "data.kind", "is %q; a canary is a row: allowed: data of rows", d.Kind)
	c.Require(p.Protects == "example", "privacy.protects", "is %q; a canary is one example: allowed: example", p.Protects)
	c.Require(a.Kind == "fedavg" && a.WarmStart == 0, "algorithm.kind", "is %q with warm_start %v; the canary audit plays fedavg without a warm start", a.Kind, a.WarmStart)
	c.Require(a.Mode == "sound", "algorithm.mode", "is %q; allowed: sound, where claims are proved", a.Mode)
	c.Require(p.Relation == string(event.AddRemove), "privacy.relation", "is %q; the canary is there or not: allowed: add-remove, with privacy.public_size", p.Relation)
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0, "privacy.epsilon", "is 0 without privacy.noise_multiplier: nothing is claimed that could be audited; give one of them")
	c.Require(d.Standardise != string(data.ByPaid), "data.standardise", "is paid, but the audit's rows are not scaled; allowed: public, none")
	return c.Faults()
}

// canarySilo is the silo without the canary and with it.
func canarySilo(run config.Run) ([2]data.Client, model.Model, error) {
	classes := 0
	if run.Data.Kind != "school" {
		classes = 2
	}
	var silo [2]data.Client
	family := rng.NewFamily(run.Seed, "canary silo")
	s := family.Stream(0, 0)
	rows := data.Rows{Features: ordinaryFeatures + 1}
	for range ordinaryRows {
		for range ordinaryFeatures {
			rows.X = append(rows.X, s.Normal())
		}
		rows.X = append(rows.X, 0)
		y := s.Normal()
		if classes == 2 {
			y = float64(s.Below(2))
		}
		rows.Y = append(rows.Y, y)
	}
	silo[0].Rows = rows
	silo[1].Rows = data.Rows{
		Features: rows.Features,
		X:        append(append([]float64{}, rows.X...), 0, 0, 0, canaryValue*max(1, run.Privacy.Clip)),
		Y:        append(append([]float64{}, rows.Y...), 0),
	}
	m, err := model.Of(run, data.Shape{Features: rows.Features, Classes: classes})
	if err != nil {
		return silo, nil, fmt.Errorf("canary: %w", err)
	}
	return silo, m, nil
}
