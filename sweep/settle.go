package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/theory"
)

// faults gathers what is wrong with a sweep file.
type faults []error

func (f *faults) require(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf("%w: "+format, append([]any{config.ErrInvalid}, args...)...))
	}
}

// trialsOf is the distribution of a number of trials.
func trialsOf(t Tuning, mean float64) (theory.Trials, error) {
	switch cmp.Or(t.Distribution, event.TruncatedNegativeBinomial) {
	case event.TruncatedNegativeBinomial:
		return theory.NegativeBinomialTrials(t.Eta, mean)
	case event.PoissonTrials:
		return theory.PoissonTrials(mean)
	}
	return theory.Trials{}, fmt.Errorf("distribution %q; allowed: tnb, poisson", t.Distribution)
}

// shared are the keys that all runs of a charged grid have in common: the target that they
// share, whom it is for, and on which terms.
var shared = []string{
	"algorithm.mode", "data.not_public", "data.standardise", "judge", "privacy.accounting", "privacy.delta", "privacy.epsilon", "privacy.noise", "privacy.noise_multiplier", "privacy.protects",
	"privacy.public_size", "privacy.records_per_person", "privacy.relation", "privacy.run", "privacy.runs", "privacy.silos",
}

// settleGrid checks whether the runs of a grid can share the run file's target, if the
// file wants that, every fault at once; and finds the random stopping that their price is
// held against.
func (p *Plan) settleGrid() error {
	t := Tuning{}
	var all faults
	if p.Tuning != nil {
		t = *p.Tuning
		privacy := p.Base.Privacy
		all.require(privacy.Epsilon > 0 && privacy.NoiseMultiplier == 0, "a charged grid needs privacy.epsilon: its runs share it, and the noise follows from it")
		all.require(privacy.Protects == "example" || privacy.Protects == "client", "privacy.protects is %s, but a charged grid shares a target for examples or participants; allowed: example, client", privacy.Protects)
		all.require(privacy.Runs == 0, "privacy.runs is %d, but a charged grid counts its runs itself; leave it out", privacy.Runs)
		all.require(p.Base.Judge.Evaluate.Epsilon == 0, "judge.evaluate: a charged grid has no charge for its runs' evaluations; leave it out, and evaluate the run that you choose")
		for _, s := range p.Points[0].Settings {
			common := slices.ContainsFunc(shared, func(key string) bool { return s.Path == key || strings.HasPrefix(s.Path, key+".") })
			all.require(!common, "grid.%s: the runs of a charged grid have it in common; set it in the run file, and make a sweep of its own for every value", s.Path)
		}
		all.require(t.MeanTrials == 0 && t.Score == Score{} && t.Entropy == "", "tuning: mean_trials, score and entropy are of charge random; leave them out, the number of runs follows from the grid")
	}
	if len(p.Points) > 1 {
		var err error
		p.Trials, err = trialsOf(t, float64(len(p.Points)))
		all.require(err == nil, "tuning: %v", err)
	}
	return errors.Join(all...)
}

// tunable are the keys that trials may differ in: they change neither what a trial
// costs nor what is sent.
var tunable = []string{"algorithm.lambda", "algorithm.local.step"}

// settleTuning checks whether the plan can be charged, every fault at once.
func (p *Plan) settleTuning() error {
	t, a := p.Tuning, p.Base.Algorithm
	if t.Distribution == "" {
		t.Distribution = event.TruncatedNegativeBinomial
	}
	if t.Entropy == "" {
		t.Entropy = "system"
	}
	var all faults
	all.require(p.Base.Privacy.Protects == "example" && p.Base.Judge.By == "own" && a.Kind == "mr-mtl" && a.WarmStart == 0 && a.Lambda != config.LambdaAuto,
		"charged tuning is of algorithm.kind mr-mtl under privacy.protects example, judged by own examples, with a fixed lambda and no warm start: trials follow the means of a pivot run at that public lambda")
	all.require(p.Base.Privacy.Epsilon > 0 && p.Base.Privacy.NoiseMultiplier == 0, "charged tuning needs privacy.epsilon: the noise follows from it")
	all.require(p.Base.Privacy.Runs == 0, "privacy.runs is %d, but charged tuning counts its trials itself; leave it out", p.Base.Privacy.Runs)
	all.require(p.Base.Privacy.RecordsPerPerson <= 1, "privacy.records_per_person: charged tuning knows one record a person only")
	all.require(p.Base.Data.Standardise != "paid", "data.standardise: charged tuning has no charge for moments; allowed: silo (paper accounting), public, none")
	for _, s := range p.Points[0].Settings {
		all.require(slices.Contains(tunable, s.Path), "grid.%s: charged tuning can vary %s", s.Path, strings.Join(tunable, " and "))
	}
	for _, point := range p.Points {
		all.require(point.Run.Algorithm.Lambda != config.LambdaAuto, "grid: %s: auto costs nothing, so there is nothing to charge", point.Label())
	}
	all.require(t.Entropy == "system" || t.Entropy == "seeded", "tuning.entropy: %q; allowed: system, seeded", t.Entropy)
	all.require(t.Score.Bound > 0 && t.Score.Bound < 1e300, "tuning.score.bound: %v; want what an example's loss is clipped to, above 0", t.Score.Bound)
	all.require(t.Score.Noise > 0 && t.Score.Noise < 1e300, "tuning.score.noise: %v; want a noise multiplier above 0: an unprotected score would tell of the examples", t.Score.Noise)
	var err error
	p.Trials, err = trialsOf(*t, t.MeanTrials)
	all.require(err == nil, "tuning: %v", err)
	return errors.Join(all...)
}
