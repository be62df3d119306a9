package event

import (
	"fmt"
	"strconv"
	"strings"
)

// Describe is an event in plain words, for people: what was done to the data, how often,
// with which noise. Programs read its JSON.
func Describe(e Event) string { return describe(e, 0) }

func describe(e Event, depth int) string {
	if depth >= maxDepth {
		return "…"
	}
	switch e := e.(type) {
	case Gaussian:
		return fmt.Sprintf("Gaussian noise of %s times the clip", figure(e.Noise))
	case Laplace:
		return fmt.Sprintf("Laplace noise of %s times the clip", figure(e.Scale))
	case DiscreteGaussian:
		return fmt.Sprintf("whole-number Gaussian noise of %s on counts up to %d", figure(e.Sigma), e.Bound)
	case MetricLaplace:
		text := fmt.Sprintf("Laplace noise on %s, noise multiplier %s, radius %s", counted(int64(e.Dimension), "value"), figure(e.NoiseMultiplier), figure(e.Radius))
		if e.Spread > 0 {
			text += fmt.Sprintf(", models up to %s apart", figure(e.Spread))
		}
		return text
	case Selection:
		return fmt.Sprintf("a private choice (%s, parameter %s)", e.Mechanism, figure(e.Epsilon))
	case NodeGaussian:
		return fmt.Sprintf("Gaussian noise of %s times the clip on batches of %d of %d nodes, each node in at most %d", figure(e.Noise), e.Batch, e.Nodes, e.Occurrences)
	case NodeSum:
		return fmt.Sprintf("Gaussian noise of %s times the clip on the sum of all nodes' examples, of which %s with a node", figure(e.Noise), changes(e.Examples))
	case NodeThinned:
		return fmt.Sprintf("Gaussian noise of %s times the clip on the sum of all nodes' examples, each contact in them kept with chance %s by a secret draw, nobody having more than %d", figure(e.Noise), figure(e.Keep), e.Degree)
	case Unprotected:
		return "something without noise"
	case Sampled:
		return describe(e.Of, depth+1) + batches(e)
	case Repeated:
		of := describe(e.Of, depth+1)
		if e.Times == 1 {
			return of
		}
		return fmt.Sprintf("%d times %s", e.Times, bracketed(of, e.Of))
	case Composed:
		parts := make([]string, len(e.Parts))
		for i, part := range e.Parts {
			parts[i] = describe(part, depth+1)
		}
		return strings.Join(parts, ", and ")
	case Tuning:
		return fmt.Sprintf("the best of %s of %s", trials(e), bracketed(describe(e.Of, depth+1), e.Of))
	}
	return "nothing"
}

// batches says what noise is added to.
func batches(e Sampled) string {
	switch e.Sampling {
	case Poisson:
		return fmt.Sprintf(" on batches that each example is in with chance %s", figure(e.Rate))
	case WithoutReplacement:
		return fmt.Sprintf(" on batches of %d of %d examples, each drawn afresh", e.Batch, e.Examples)
	case Shuffle:
		return fmt.Sprintf(" on a shuffled pass over %d examples in batches of %d", e.Examples, e.Batch)
	}
	return ""
}

// trials says how many runs the best was taken of.
func trials(e Tuning) string {
	switch {
	case e.Distribution == NaiveTrials:
		return counted(e.Trials, "run")
	case e.Mean != 0:
		return fmt.Sprintf("a random number of runs (%s on average)", figure(e.Mean))
	}
	return fmt.Sprintf("a random number of runs (eta %s, gamma %s)", figure(e.Eta), figure(e.Gamma))
}

// bracketed keeps together what several events are.
func bracketed(text string, e Event) string {
	if c, ok := e.(Composed); ok && len(c.Parts) > 1 {
		return "(" + text + ")"
	}
	return text
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// changes is how many examples go or change.
func changes(n int64) string {
	if n == 1 {
		return "1 changes"
	}
	return fmt.Sprintf("at most %d change", n)
}

// figure writes six digits.
func figure(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
