package sweep

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	mathrand "math/rand/v2"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// system is the operating system's entropy as a source.
type system struct{}

// Uint64 is eight bytes of entropy. rand.Read does not fail: it ends the program.
func (system) Uint64() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// chance is where a silo's secrets come from: the number of its trials, what each
// tries, and the seeds of their noise.
func (p *Plan) chance(silo int) mathrand.Source {
	if p.Tuning.Entropy == "system" {
		return system{}
	}
	f := rng.NewFamily(p.Base.Seed, "tuning")
	return f.Stream(0, silo)
}

// trial is one run of a silo at a setting: what it would return, and the noised score
// by which it competes. Both are private; the score is charged with the trial.
type trial struct {
	point int
	theta []float64
	score float64
}

// bench is what one goroutine needs to make trials.
type bench struct {
	worker  fl.Worker
	learner model.Learner
	losses  []float64
	out     []float64
	entropy *mech.Entropy
}

// attempt follows the pivot's means with a silo at one point of the grid.
func (b *bench) attempt(p *Plan, pivot *pivot, m model.Model, silo *fl.Participant, point int, seed uint64) (trial, error) {
	run := p.Points[point].Run
	run.Seed = seed
	run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Silos = 0, silo.Plan.Noise, nil
	algorithm, err := fl.New(run, m, len(pivot.Participants))
	if err != nil {
		return trial{}, err
	}
	t := trial{point: point, theta: make([]float64, m.Parameters())}
	one := fl.Participant{ID: silo.ID, Name: silo.Name, Data: silo.Data, Uncovered: silo.Uncovered}
	if err := algorithm.Prepare(&one); err != nil {
		return trial{}, err
	}
	b.out = append(b.out[:0], make([]float64, algorithm.ReleaseLength())...)
	finite := true
	for _, sent := range pivot.sent[:len(pivot.sent)-1] {
		// A trial whose training leaves the finite numbers is not reported: that would
		// tell of the examples. It competes with the public model instead.
		if _, err := fl.RespondOpenly(algorithm, &b.worker, sent, &one, b.out); err != nil {
			finite = false
			break
		}
	}
	if finite {
		algorithm.Adopt(t.theta, pivot.end(), &one, nil)
	} else {
		copy(t.theta, pivot.end().Hypotheses)
	}
	t.score, err = b.score(p, run, t.theta, silo, rng.NewFamily(seed, "score"))
	return t, err
}

// score is the sum of the silo's clipped losses with noise.
func (b *bench) score(p *Plan, run config.Run, theta []float64, silo *fl.Participant, seeded rng.Family) (float64, error) {
	s := p.Tuning.Score
	noise := mech.Gaussian{Multiplier: s.Noise}
	paid, err := mech.NewPaid(event.Release{ // a trial's score, as every trial is charged for it
		Unit: event.UnitExample, Relation: event.Relation(run.Privacy.Relation), Claim: event.ClaimProved, Trust: event.TrustLocal,
		What: s.event(),
	})
	if err != nil {
		return 0, err
	}
	if run.Privacy.Noise == "simulated" {
		sum, err := mech.NewSimulatedSum(1, s.Bound)
		if err != nil {
			return 0, err
		}
		if err := b.addLosses(theta, silo.Data, s.Bound, sum.Add); err != nil {
			return 0, err
		}
		var out [1]float64
		err = paid.Simulate(noise, out[:], sum, seeded.Stream(0, silo.ID))
		return out[0], err
	}
	lattice, err := noise.Lattice(s.Bound)
	if err != nil {
		return 0, err
	}
	sum, err := mech.NewClippedSum(1, s.Bound, lattice)
	if err != nil {
		return 0, err
	}
	if err := b.addLosses(theta, silo.Data, s.Bound, sum.Add); err != nil {
		return 0, err
	}
	if b.entropy == nil {
		b.entropy = mech.SystemEntropy()
	}
	if run.Privacy.Noise == fl.NoiseSeeded {
		b.entropy.Reset(seeded.Stream(0, silo.ID))
	}
	var steps [1]int64
	if err := paid.Release(noise, steps[:], sum, b.entropy); err != nil {
		return 0, err
	}
	var out [1]float64
	lattice.Float(out[:], steps[:])
	return out[0], nil
}

func (b *bench) addLosses(theta []float64, c *data.Client, bound float64, add func(mech.Clipped) error) error {
	b.losses = append(b.losses[:0], make([]float64, c.Len())...)
	if err := b.learner.Losses(b.losses, theta, c); err != nil {
		return fmt.Errorf("score: %w", err)
	}
	for _, loss := range b.losses {
		if !(loss <= bound) { // not a number counts as the bound
			loss = bound
		}
		clipped, err := mech.Clip([]float64{math.Max(0, loss)}, bound)
		if err != nil {
			return fmt.Errorf("score: %w", err)
		}
		if err := add(clipped); err != nil {
			return fmt.Errorf("score: %w", err)
		}
	}
	return nil
}
