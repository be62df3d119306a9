package event

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrRange says that a release or an event holds a value that no mechanism can
// have.
var ErrRange = errors.New("value out of range")

// The names that Selection.Mechanism, NodeGaussian.Formula and
// Tuning.Distribution know.
const (
	Exponential    = "exponential"
	PermuteAndFlip = "permute-and-flip"
	NoisyMax       = "noisy-max"

	Theorem     = "theorem"
	AuthorsCode = "authors-code"

	TruncatedNegativeBinomial = "tnb"
	PoissonTrials             = "poisson"
	NaiveTrials               = "naive"
)

// Validate says what is wrong with the release, if anything: every fault, with
// its place.
func (r Release) Validate() error {
	return errors.Join(
		oneOf("unit", r.Unit, UnitExample, UnitClient, UnitNode, UnitNeighbourhood),
		oneOf("relation", r.Relation, AddRemove, ReplaceOne, Metric, OwnRecord, Removal),
		oneOf("claim", r.Claim, ClaimProved, ClaimMetric, ClaimHeuristic, ClaimNone),
		oneOf("trust", r.Trust, TrustLocal, TrustHolder, TrustServer, TrustNobody),
		Validate(r.What),
	)
}

// Validate says what is wrong with the event, if anything.
func Validate(e Event) error { return validate(e, 0) }

func validate(e Event, depth int) error {
	if e == nil {
		return fmt.Errorf("%w: no event", ErrRange)
	}
	if depth >= maxDepth {
		return fmt.Errorf("%w: events nested more than %d deep", ErrRange, maxDepth)
	}
	var faults []error
	add := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if err := validateOwn(e); err != nil {
		add(fmt.Errorf("%s: %w", nameOf(e), err))
	}
	switch e := e.(type) {
	case Sampled:
		add(validate(e.Of, depth+1))
	case Repeated:
		add(validate(e.Of, depth+1))
	case Tuning:
		add(validate(e.Of, depth+1))
	case Composed:
		for _, part := range e.Parts {
			add(validate(part, depth+1))
		}
	}
	return errors.Join(faults...)
}

// nameOf is what people call an event whose values are wrong.
func nameOf(e Event) string {
	switch e.(type) {
	case Gaussian:
		return "Gaussian noise"
	case Laplace:
		return "Laplace noise"
	case DiscreteGaussian:
		return "whole-number Gaussian noise"
	case MetricLaplace:
		return "Laplace noise at a radius"
	case Selection:
		return "a private choice"
	case Sampled:
		return "batches"
	case Repeated:
		return "a repeated release"
	case Composed:
		return "releases together"
	case NodeGaussian, NodeSum, NodeThinned:
		return "noise for nodes"
	case Tuning:
		return "tuning"
	}
	return "a release"
}

// validateOwn judges an event's own values, not those of the events in it.
func validateOwn(e Event) error {
	switch e := e.(type) {
	case Gaussian:
		return positive("noise", e.Noise)
	case Laplace:
		return positive("scale", e.Scale)
	case DiscreteGaussian:
		return errors.Join(positive("sigma", e.Sigma), atLeast("bound", e.Bound, 1))
	case MetricLaplace:
		return errors.Join(
			atLeast("dimension", int64(e.Dimension), 1),
			positive("noise_multiplier", e.NoiseMultiplier),
			positive("radius", e.Radius),
			within("slack", e.Slack, 0, math.MaxFloat64),
			within("spread", e.Spread, 0, math.MaxFloat64),
		)
	case Selection:
		return errors.Join(
			oneOf("mechanism", e.Mechanism, Exponential, PermuteAndFlip, NoisyMax),
			positive("epsilon", e.Epsilon),
		)
	case Sampled:
		return validateSampling(e)
	case Repeated:
		return atLeast("times", e.Times, 0)
	case Composed:
		return atLeast("parts", int64(len(e.Parts)), 1)
	case NodeGaussian:
		return errors.Join(
			atLeast("nodes", e.Nodes, 1),
			between("occurrences", e.Occurrences, 1, min(e.Nodes, MaxOccurrences)),
			between("batch", e.Batch, 1, e.Nodes),
			positive("noise", e.Noise),
			oneOf("formula", e.Formula, Theorem, AuthorsCode),
		)
	case NodeSum:
		return errors.Join(between("examples", e.Examples, 1, MaxOccurrences), positive("noise", e.Noise))
	case NodeThinned:
		return errors.Join(between("degree", e.Degree, 1, MaxOccurrences), positive("keep", e.Keep), within("keep", e.Keep, 0, 1), positive("noise", e.Noise))
	case Tuning:
		return validateTuning(e)
	case Unprotected:
		return nil
	}
	return fmt.Errorf("%w: unknown kind", ErrRange)
}

func validateSampling(e Sampled) error {
	known := oneOf("sampling", e.Sampling, FullBatch, Poisson, WithoutReplacement, Shuffle)
	switch {
	case known != nil:
		return known
	case e.Sampling == Poisson:
		return errors.Join(within("rate", e.Rate, 0, 1), unused("batch", e.Batch == 0), unused("examples", e.Examples == 0))
	case e.Sampling == FullBatch:
		return errors.Join(unused("rate", e.Rate == 0), unused("batch", e.Batch == 0), unused("examples", e.Examples == 0))
	}
	return errors.Join(
		unused("rate", e.Rate == 0),
		atLeast("examples", e.Examples, 1),
		between("batch", e.Batch, 1, e.Examples),
	)
}

func validateTuning(e Tuning) error {
	switch e.Distribution {
	case TruncatedNegativeBinomial:
		faults := []error{unused("trials", e.Trials == 0)}
		if !(e.Eta > -1) || math.IsInf(e.Eta, 1) {
			faults = append(faults, fmt.Errorf("%w: eta = %v, want a finite number > -1", ErrRange, e.Eta))
		}
		if (e.Gamma != 0) == (e.Mean != 0) {
			return errors.Join(append(faults, fmt.Errorf("%w: want gamma or mean, and not both", ErrRange))...)
		}
		if e.Gamma != 0 && !(e.Gamma > 0 && e.Gamma < 1) {
			faults = append(faults, fmt.Errorf("%w: gamma = %v, want 0 < gamma < 1", ErrRange, e.Gamma))
		}
		if e.Mean != 0 {
			faults = append(faults, within("mean", e.Mean, 1, math.MaxFloat64))
		}
		return errors.Join(faults...)
	case PoissonTrials:
		return errors.Join(within("mean", e.Mean, 1, math.MaxFloat64), unused("eta", e.Eta == 0),
			unused("gamma", e.Gamma == 0), unused("trials", e.Trials == 0))
	case NaiveTrials:
		return errors.Join(atLeast("trials", e.Trials, 1), unused("eta", e.Eta == 0),
			unused("gamma", e.Gamma == 0), unused("mean", e.Mean == 0))
	}
	return oneOf("distribution", e.Distribution, TruncatedNegativeBinomial, PoissonTrials, NaiveTrials)
}

func oneOf[T ~string](name string, value T, known ...T) error {
	if slices.Contains(known, value) {
		return nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return fmt.Errorf("%w: %s = %q, want one of: %s", ErrRange, name, value, strings.Join(names, ", "))
}

// positive and its siblings are written so that NaN fails them.
func positive(name string, value float64) error {
	if value > 0 && value <= math.MaxFloat64 {
		return nil
	}
	return fmt.Errorf("%w: %s = %v, want a finite number > 0", ErrRange, name, value)
}

func within(name string, value, low, high float64) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%w: %s = %v, want %v to %v", ErrRange, name, value, low, high)
}

func atLeast(name string, value, low int64) error {
	if value >= low {
		return nil
	}
	return fmt.Errorf("%w: %s = %d, want at least %d", ErrRange, name, value, low)
}

func between(name string, value, low, high int64) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%w: %s = %d, want %d to %d", ErrRange, name, value, low, high)
}

func unused(name string, ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s has no meaning here, leave it out", ErrRange, name)
}
