package fl

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

// SanitiseLayers is the run file's name for noise on every layer apart.
const SanitiseLayers = "layers"

// NoiseSeeded is exact noise that whoever knows the seed can subtract: it shows that
// a simulation and a federation do the same, and protects nobody.
const NoiseSeeded = "exact-seeded"

// NoiseExact is exact noise from the system's entropy: no run of it can be repeated.
const NoiseExact = "exact"

// Privacy is the statement about a run: what it protects and how far, over all
// participants.
type Privacy struct {
	event.Statement
	Protects string `json:"protects"`
	// Proved is what is proved for the same releases where the claim is heuristic; null
	// where the claim is proved itself, and where nothing is.
	Proved *event.Statement `json:"proved"`
	// Assumes is what the statement rests on, and Says what a reader should know beside
	// the numbers.
	Assumes []string `json:"assumes"`
	Says    []string `json:"says"`

	NoiseMultiplier event.Number `json:"noise_multiplier"` // of the run file; 0: it follows from targets
	MedianEpsilon   event.Number `json:"median_epsilon"`   // over participants
	MaxEpsilon      event.Number `json:"max_epsilon"`
	// EpsilonPerRelease is what a release loses at its radius; null unless updates or
	// nothing are protected.
	EpsilonPerRelease *event.Number `json:"epsilon_per_release"`
	// EpsilonAnyUpdate and EpsilonSwitch bound the most exposed participant's loss
	// in sound mode: against any other update of the same hypotheses, and against
	// a participant that chooses other hypotheses too.
	EpsilonAnyUpdate *event.Number `json:"epsilon_any_update"`
	EpsilonSwitch    *event.Number `json:"epsilon_switch"`
	// Layers is what was sanitised apart; absent if updates were noised in one piece.
	Layers []LayerTerms `json:"layers,omitempty"`
	// Batches is there where persons are protected in steps on batches.
	Batches          *Batches      `json:"batches,omitempty"`
	Ceiling          *event.Number `json:"ceiling"`
	Declined         int           `json:"declined"`          // participants that declined at least once
	DeclinedRequests int           `json:"declined_requests"` // requests that were declined
}

// LayerTerms is what one release says about one layer, noised on its own.
type LayerTerms struct {
	Name       string `json:"name"`
	Parameters int    `json:"parameters"`
	// Radius is the layer's share of the first round's public radius; null in paper
	// mode, where it is the layer's own length.
	Radius *event.Number `json:"radius"`
	// EpsilonPerRelease is what a release loses on the layer at its radius. Over the
	// layers they add up to the release's.
	EpsilonPerRelease event.Number `json:"epsilon_per_release"`
}

// StateUpdates sums up what participants spent whose updates are protected, or nothing.
func (a *Algorithm) StateUpdates(participants []Participant) Privacy {
	totals := make([]float64, len(participants))
	worst := 0.0
	for i := range participants {
		totals[i] = participants[i].Account.Epsilon()
		worst = max(worst, participants[i].Switch)
	}
	median, most := MedianAndMax(totals)
	return a.StateTotals(median, most, worst)
}

// StateTotals is StateUpdates of participants whose totals have this median and maximum,
// and of whom none loses more by a change of its choice than worst.
func (a *Algorithm) StateTotals(median, most, worst float64) Privacy {
	run := a.setup.Run
	p := Privacy{
		Statement: a.updateTerms(), Protects: run.Privacy.Protects, NoiseMultiplier: event.Number(run.Privacy.NoiseMultiplier),
	}
	if c := run.Privacy.Ceiling; c != nil {
		ceiling := event.Number(*c)
		p.Ceiling = &ceiling
	}
	// n/nu, infinite without noise.
	each := event.Number(float64(a.setup.Parameters) / run.Privacy.NoiseMultiplier)
	if !IsCentral(run.Algorithm.Kind) {
		p.EpsilonPerRelease = &each
	}
	p.MedianEpsilon, p.MaxEpsilon, p.Epsilon = event.Number(median), event.Number(most), event.Number(most)
	if run.Algorithm.Mode == "sound" && run.Privacy.NoiseMultiplier > 0 {
		twice, change := event.Number(2*most), event.Number(worst)
		p.EpsilonAnyUpdate, p.EpsilonSwitch = &twice, &change
	}
	a.protection.Describe(&p)
	return p
}

// UncoveredOwnModels is what noise on updates leaves out.
const UncoveredOwnModels = "participants' own models: they are trained without noise, and what they reveal to whoever sees them or their predictions is not covered"

// updateTerms says what the releases of a run protect, and what they do not.
func (a *Algorithm) updateTerms() event.Statement {
	run, chooses := a.setup.Run, a.outline.Models > 1
	s := event.Statement{
		Unit: event.UnitNeighbourhood, Relation: event.Metric, Trust: event.TrustLocal,
		Sampling: run.Algorithm.Sampling,
	}
	p := run.Privacy
	switch {
	case p.Protects != "update":
		s.Claim, s.Unit, s.Relation, s.Trust = event.ClaimNone, event.UnitClient, event.ReplaceOne, event.TrustNobody
		s.NotCovered = append(s.NotCovered, a.unprotected())
		if IsCentral(run.Algorithm.Kind) { // nobody is asked, and nothing but the model goes out
			s.Unit, s.Sampling = event.UnitExample, string(event.FullBatch)
		}
	case run.Algorithm.Mode == "sound":
		radius := event.Number(p.Radius)
		s.Claim, s.Radius = event.ClaimMetric, &radius
		if chooses {
			s.NotCovered = append(s.NotCovered, "group membership: a change of the chosen hypothesis moves further than the radius (epsilon_switch bounds it)")
		}
		s.NotCovered = append(s.NotCovered, "updates further apart than the radius lose in proportion, up to twice epsilon (epsilon_any_update)")
	default:
		s.Claim = event.ClaimHeuristic
		s.NotCovered = append(s.NotCovered,
			"the radius is each update's own length, which is private: the size of the noise gives it away, and no proof covers updates of different length")
		if chooses {
			s.NotCovered = append(s.NotCovered, "group membership: a change of the chosen hypothesis moves further than the radius")
		}
		if p.Sanitise == SanitiseLayers {
			s.NotCovered = append(s.NotCovered, "every layer has a radius of its own: the size of its noise gives its length away, too")
		}
	}
	if taken := run.Data.TakenFromData(); len(taken) > 0 && p.Protects == "update" {
		s.Claim = event.ClaimHeuristic
		s.NotCovered = append(s.NotCovered, taken...)
	}
	if a.outline.Personal && p.Protects == "update" {
		s.NotCovered = append(s.NotCovered, UncoveredOwnModels)
	}
	s.NotCovered = append(s.NotCovered, uncoveredStart(run)...)
	if !IsCentral(run.Algorithm.Kind) {
		s.NotCovered = append(s.NotCovered, "participation: the server sees who is asked and who declines")
	}
	if stop := run.Algorithm.Stop; stop.Patience > 0 || stop.Return == "best" {
		s.NotCovered = append(s.NotCovered,
			"validation clients: their raw losses decide when training stops and which round is returned")
	}
	s.NotCovered = append(s.NotCovered, "tuning: the settings were chosen without charging anyone")
	if p.NoiseMultiplier > 0 {
		s.NotCovered = append(s.NotCovered, arithmetic(p.Noise))
	}
	return s
}

// uncoveredStart is what a start from a file leaves open.
func uncoveredStart(run config.Run) []string {
	if run.Model.Start == "" {
		return nil
	}
	return []string{"what the model that training started from was trained on (model.start): it is public, or a release that this number does not count"}
}

// unprotected is what is left open where nothing is protected.
func (a *Algorithm) unprotected() string {
	switch {
	case IsCentral(a.setup.Run.Algorithm.Kind):
		return "everything: the model is trained without noise"
	case a.outline.Sends == 0:
		return "everything: nothing is sent, and models are trained without noise"
	}
	return "everything: the trained vectors are sent as they are"
}

// arithmetic is what a kind of noise leaves uncovered.
func arithmetic(noise string) string {
	switch noise {
	case "simulated":
		return "arithmetic: seeded float noise, for simulation only"
	case NoiseSeeded:
		return "everything, against whoever knows the seed: the noise is exact but repeatable"
	}
	return "timing: how long a release takes depends on its noise"
}

// MedianAndMax sorts values. The median of an even number is the mean of the
// middle two.
func MedianAndMax(values []float64) (median, most float64) {
	if len(values) == 0 {
		return 0, 0
	}
	slices.Sort(values)
	n := len(values)
	median = values[n/2]
	if n%2 == 0 && values[n/2-1] != values[n/2] {
		median = (values[n/2-1] + values[n/2]) / 2
	}
	return median, values[n-1]
}
