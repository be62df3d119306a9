package fl_test

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// TestBatchesBesideEverybody: at the size of a state, S 4 and epsilon 5, batches of 512 have
// tens of times the noise of steps on everybody in their mean gradient, as a numerical study
// found (436 and 8.1); whoever protects examples, or steps on everybody, is told nothing.
func TestBatchesBesideEverybody(t *testing.T) {
	const n = 2_600_000
	plan := fl.Plan{
		Target: fl.Target{Epsilon: 5, Delta: 1.0 / n}, Examples: n, Batch: 512, Steps: 2 * (n / 512), Nodes: 4, Clip: 15,
		Drawn: event.Shuffle, Trust: event.TrustHolder, Uncovered: true,
		Terms: account.Terms{Unit: event.UnitNode, Relation: event.Removal, Claim: event.ClaimHeuristic},
	}
	if err := plan.Calibrate(1, 0); err != nil {
		t.Fatal(err)
	}
	p := fl.Participant{Plan: plan}
	p.Paid.Rounds = 1
	spent, proved, err := plan.Spend(p.Paid)
	if err != nil || proved != nil || spent.Sampling != fl.ShuffledAsDrawn || spent.Epsilon > 5 || spent.Epsilon < 4.99 {
		t.Fatalf("%+v, %v, %v", spent, proved, err)
	}
	b, err := fl.BatchesOf([]fl.Participant{p}, []account.Guarantee{spent})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("batches: noise %.4g a step, %.4g in the mean; everybody: %.4g; the authors' formula: %.4g", b.Noise, b.MeanNoise, b.FullMeanNoise, b.AuthorsCode.Epsilon)
	if want := float64(b.Noise) * n / 512 / math.Sqrt(float64(b.Steps)); math.Abs(float64(b.MeanNoise)-want) > 1e-9*want {
		t.Errorf("%v in the mean, want %v", b.MeanNoise, want)
	}
	if b.MeanNoise < 350 || b.MeanNoise > 550 || b.FullMeanNoise < 7 || b.FullMeanNoise > 9 {
		t.Errorf("%v and %v; the study has 436 and 8.1", b.MeanNoise, b.FullMeanNoise)
	}
	if b.AuthorsCode.Claim != event.ClaimHeuristic || !(b.AuthorsCode.Epsilon < event.Number(spent.Epsilon)) {
		t.Errorf("the authors' formula: %+v", b.AuthorsCode)
	}
	full := p
	full.Plan.Drawn = event.FullBatch
	rows := p
	rows.Plan.Nodes = 0
	if none, err := fl.BatchesOf([]fl.Participant{full, rows}, make([]account.Guarantee, 2)); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
}
