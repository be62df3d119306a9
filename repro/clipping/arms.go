package clipping

import (
	"cmp"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// arm is a change to a method that shows what its parts are worth.
type arm string

// The arms of a study of Online by its parts.
const (
	clipFrozen  arm = "clip frozen, step learned"
	stepFrozen  arm = "step frozen, clip learned"
	bothFrozen  arm = "both frozen"
	coins       arm = "both moved by coins"
	stepDecays  arm = "step decays by exp(-0.0025) a step, in public"
	clipDecays  arm = "clip decays by exp(-0.0025) a step, in public"
	clipGrows   arm = "clip grows by exp(0.0025) a step, in public"
	slower      arm = "rates 0.001"
	faster      arm = "rates 0.01"
	noiseTenth  arm = "gradient noise 0.1 % above"
	noiseTen    arm = "gradient noise 10 % above"
	noiseHalves arm = "gradient noise 41 % above: half the budget each"
)

// armOf are the arms in the order of the report, the method that each changes, and what
// another implementation (bfloat16 products, PyTorch's start, seeds of its own) came to at
// epsilon 3 for one run, rho 31.6, C 0.1.
var armOf = []struct {
	arm    arm
	method method
	other  float64
	apply  func(*config.Run)
}{
	{"", online, 96.45, func(*config.Run) {}},
	{clipFrozen, online, 96.46, func(r *config.Run) { r.Privacy.Clipping.Learn = "step" }},
	{stepFrozen, online, 96.07, func(r *config.Run) { r.Privacy.Clipping.Learn = "clip" }},
	{bothFrozen, online, 95.79, func(r *config.Run) { r.Privacy.Clipping.Learn = "nothing" }},
	{coins, online, 95.78, func(r *config.Run) { r.Privacy.Clipping.Learn = "random" }},
	{stepDecays, threshold, 96.91, func(r *config.Run) { r.Algorithm.Local.StepDecay = rate }},
	{clipDecays, threshold, 96.75, func(r *config.Run) { r.Privacy.Clipping.Decay = rate }},
	{clipGrows, threshold, 39, func(r *config.Run) { r.Privacy.Clipping.Decay = -rate }},
	{slower, online, 96.01, func(r *config.Run) { r.Privacy.Clipping.Rate, r.Privacy.Clipping.StepRate = 0.001, 0.001 }},
	{faster, online, 96.77, func(r *config.Run) { r.Privacy.Clipping.Rate, r.Privacy.Clipping.StepRate = 0.01, 0.01 }},
	{noiseTenth, online, 96.05, func(r *config.Run) { r.Privacy.Clipping.GradientNoise = 1.001 }},
	{noiseTen, online, 96.34, func(r *config.Run) { r.Privacy.Clipping.GradientNoise = 1.1 }},
	{noiseHalves, online, 95.00, func(r *config.Run) { r.Privacy.Clipping.GradientNoise = 1.4142 }},
}

// Arms are compared at one epsilon, with the budget of one run, at the grid's best setting.
const armEpsilon = 3

var armSetting = setting{Step: 31.62, Clip: startClip}

func (a arm) apply(r *config.Run) {
	for _, known := range armOf {
		if known.arm == a {
			known.apply(r)
		}
	}
}

const takenApart = "Online taken apart: one run at epsilon 3, rho 31.62, C 0.1"

// armRows compare the arms with Online as published.
func (b book) armRows() (out []study.Row) {
	if !b.task.apart {
		return nil
	}
	var published group
	for _, a := range armOf {
		g, ok := b.at(row{method: a.method, arm: a.arm, epsilon: armEpsilon, runs: 1, steps: b.task.steps()}, armSetting)
		if !ok {
			continue
		}
		r := b.shown(g, takenApart)
		r.Label = cmp.Or(string(a.arm), "as published (errata applied)")
		r.Note = fmt.Sprintf("another implementation: %v; best judgement %.4g", a.other, g.best())
		if a.arm == "" {
			published = g
		} else if d := b.task.advantages(g, published); len(d) > 0 {
			s := lab.Interval(d)
			r.Note = fmt.Sprintf("%+.2f ± %.2g to as published; %s", s.Middle, s.High-s.Middle, r.Note)
		}
		out = append(out, r)
	}
	return out
}
