package fl

import (
	"math"

	"github.com/coterie-fl/coterie/internal/rng"
)

// State is what the server keeps between rounds.
type State struct {
	Round      int
	Hypotheses []float64 // one after another
	Idle       []int     // rounds since each hypothesis last had an update
	Memory     []float64 // what else the method keeps, in a layout of its own
}

// Broadcast is public: every participant of the round sees it.
type Broadcast struct {
	Round      int
	Hypotheses []float64
	Radius     float64   // public radius of the round; 0 if there is none
	Spread     float64   // largest distance between two hypotheses; 0 if no price needs it
	Memory     []float64 // what else the method sends, in a layout of its own
}

// Outcome is what the server learned from a round's releases.
type Outcome struct {
	Assigned  []int // cluster of every release, -1 if it was left out; valid until the next round
	Relocated int   // hypotheses that were moved for want of updates
	// Err is why the round's releases could not be used; the models are as before.
	Err error
}

// startOf is the family that models are drawn from before the first round.
func startOf(seed uint64) *rng.Family {
	f := rng.NewFamily(seed, "initial hypotheses")
	return &f
}

// A release is a model and, for some methods, what the participant declares beside it:
// its weight, its cluster, the variance of the noise in every coordinate and the number
// of steps. None of it comes from an example's content; a cluster that is declared was
// chosen privately and paid for, or nothing is protected.
const (
	tailWeight = iota
	tailCluster
	tailVariance
	tailSteps
	// DeclarationLength is how many values a declaration has.
	DeclarationLength
)

// Declaration is what a participant says beside its model.
type Declaration struct {
	Weight   float64
	Cluster  int
	Variance float64
	Steps    float64
}

func (d Declaration) write(tail []float64) {
	tail[tailWeight], tail[tailCluster] = d.Weight, float64(d.Cluster)
	tail[tailVariance], tail[tailSteps] = d.Variance, d.Steps
}

// Declared reads a declaration. One that declares what cannot be is left out: it comes
// from outside.
func Declared(tail []float64, clusters int) (d Declaration, ok bool) {
	at := tail[tailCluster]
	d = Declaration{Weight: tail[tailWeight], Variance: tail[tailVariance], Steps: tail[tailSteps]}
	ok = d.Weight > 0 && d.Weight <= math.MaxInt32 && d.Steps >= 1 && d.Steps <= math.MaxInt32 &&
		d.Variance >= 0 && d.Variance <= math.MaxFloat64 && at >= 0 && at < float64(clusters) && at == math.Floor(at)
	if ok {
		d.Cluster = int(at)
	}
	return d, ok
}
