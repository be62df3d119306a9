package evaluate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all" // every method and protection
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/model"
)

// scene is an evaluation, and what a participant needs to answer it.
type scene struct {
	*Evaluation
	run     config.Run
	learner model.Learner
	sent    fl.Broadcast
}

const (
	classRun = `data: {kind: vehicle, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: 1, local: {loss: cross-entropy}}
privacy: {protects: %s, noise: exact-seeded, relation: %s, delta: 1.0e-5}
judge: {evaluate: {epsilon: %v, bins: 4}}
`
	valueRun = `data: {kind: school, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: 1}
privacy: {protects: %s, noise: exact-seeded, relation: %s, delta: 1.0e-5}
judge: {evaluate: {epsilon: %v, bound: 2}}
`
)

func newScene(t *testing.T, text string, classes int) scene {
	t.Helper()
	run, err := config.Resolve([]byte(text), nil, data.Check, model.Check, fl.Check)
	if err != nil {
		t.Fatal(err)
	}
	shape := data.Shape{Features: 2, Classes: classes}
	m, err := model.Of(run, shape)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fl.New(run, m, 2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(run, shape, a)
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	sent, err := a.Broadcast(a.Start())
	if err != nil {
		t.Fatal(err)
	}
	for i := range sent.Hypotheses {
		sent.Hypotheses[i] = 1 + float64(i)
	}
	return scene{e, run, l, sent}
}

// answer is what a participant with these rows releases. Its noise follows from its number.
func (s scene) answer(t *testing.T, id int, held *data.Client) []float64 {
	t.Helper()
	out := make([]float64, s.Length())
	p := fl.Participant{ID: id, Data: new(data.Client)}
	if released, err := s.Answer(s.sent, &p, held, s.learner, out); err != nil || !released {
		t.Fatalf("released %v: %v", released, err)
	}
	return out
}

// rows are examples of two features; some of them are wild.
func rows(r *rand.Rand, n, classes int) *data.Client {
	c := &data.Client{Rows: data.Rows{Features: 2}}
	for range n {
		x, y := [2]float64{r.NormFloat64(), r.NormFloat64()}, r.Float64()*3-1
		if classes > 0 {
			y = float64(r.IntN(classes))
		}
		switch r.IntN(12) {
		case 0:
			x[0] = math.NaN()
		case 1:
			x[0], x[1] = math.MaxFloat64, -math.MaxFloat64
		case 2:
			y = []float64{math.NaN(), math.Inf(1), -7, 0.5, 99}[r.IntN(5)]
		}
		c.X, c.Y = append(c.X, x[:]...), append(c.Y, y)
	}
	return c
}

// without is a client with one row less; exchanged is one with another row in its place.
func without(c *data.Client, i int) *data.Client {
	return &data.Client{Rows: data.Rows{
		Features: 2, X: append(append([]float64(nil), c.X[:2*i]...), c.X[2*i+2:]...), Y: append(append([]float64(nil), c.Y[:i]...), c.Y[i+1:]...),
	}}
}

func exchanged(c *data.Client, i int, by *data.Client) *data.Client {
	out := without(c, i)
	out.X, out.Y = append(out.X, by.X[:2]...), append(out.Y, by.Y[0])
	return out
}

// TestOneExampleMovesOneCell: with the same noise, the counts of neighbours are at most as
// far apart as the charge says: 1 where a row comes or goes, sqrt(2) where it is replaced,
// whatever is in the row. Both are attained.
func TestOneExampleMovesOneCell(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, task := range []struct {
		text    string
		classes int
	}{{classRun, 2}, {valueRun, 0}} {
		for relation, most := range map[event.Relation]float64{event.AddRemove: 1, event.ReplaceOne: math.Sqrt2} {
			s := newScene(t, fmt.Sprintf(task.text, "nothing", relation, 2), task.classes)
			if charged := factor(relation) * s.deviation() / s.gaussian.Multiplier; charged > most*(1+1e-12) || charged < most*(1-1e-12) {
				t.Errorf("%s: the noise is charged for neighbours %v apart; want %v", relation, charged, most)
			}
			attained := 0.0
			for range 3000 {
				held := rows(r, 1+r.IntN(12), task.classes)
				at := r.IntN(held.Len())
				other := without(held, at)
				if relation == event.ReplaceOne {
					other = exchanged(held, at, rows(r, 1, task.classes))
				}
				id := r.IntN(1000)
				a, b := s.answer(t, id, held), s.answer(t, id, other)
				apart := 0.0
				for i := range a {
					apart = math.Hypot(apart, a[i]-b[i])
				}
				if attained = max(attained, apart); apart > most*(1+1e-9) {
					t.Fatalf("%s, %d classes: neighbours are %v apart, want at most %v\n%v\n%v", relation, task.classes, apart, most, a, b)
				}
			}
			if reach := map[int]float64{2: most, 0: 0.3 * most}[task.classes]; attained < reach*(1-1e-9) {
				t.Errorf("%s, %d classes: neighbours are at most %v apart: the test shows too little", relation, task.classes, attained)
			}
		}
	}
}

// factor is what accountants multiply a bound by.
func factor(r event.Relation) float64 {
	if r == event.ReplaceOne {
		return 2
	}
	return 1
}

// TestCountsHaveTheNoiseThatWasPaid: the variance of released zeros is what the charge
// says, within 5 of its standard deviations, which a right sampler misses once in 1.7
// million runs; noise that is 5 % too small is seen.
func TestCountsHaveTheNoiseThatWasPaid(t *testing.T) {
	for relation, sensitivity := range map[event.Relation]float64{event.AddRemove: 1, event.ReplaceOne: math.Sqrt2} {
		s := newScene(t, fmt.Sprintf(classRun, "nothing", relation, 1), 2)
		squares, n := 0.0, 0
		for id := range 5000 {
			for _, v := range s.answer(t, id, nil) {
				squares += v * v
				n++
			}
		}
		purse := new(fltest.Purse)
		p := fl.Participant{Purse: purse, Data: new(data.Client)}
		if _, err := s.Answer(s.sent, &p, nil, s.learner, make([]float64, s.Length())); err != nil {
			t.Fatal(err)
		}
		paid := purse.Asked[0].What.(event.Gaussian).Noise * sensitivity / factor(relation)
		fits := func(deviation float64) bool {
			ratio := squares / float64(n) / (deviation * deviation)
			return math.Abs(ratio-1) < 5*math.Sqrt(2/float64(n))
		}
		if !fits(paid) {
			t.Errorf("%s: counts have noise of deviation %v; %v was paid for", relation, math.Sqrt(squares/float64(n)), paid)
		}
		if fits(paid / 0.95) {
			t.Errorf("%s: noise that is 5 %% too small goes unnoticed", relation)
		}
	}
}

// TestEvaluationCostsWhatItSays: by the formulas of the Gaussian mechanism at whole orders,
// written out here, the release costs the epsilon of the run file, and not a per cent less.
func TestEvaluationCostsWhatItSays(t *testing.T) {
	for relation, sensitivity := range map[event.Relation]float64{event.AddRemove: 1, event.ReplaceOne: math.Sqrt2} {
		for _, asked := range []float64{0.3, 1, 4} {
			s := newScene(t, fmt.Sprintf(classRun, "nothing", relation, asked), 2)
			least, delta := math.Inf(1), 1e-5
			for order := 2.0; order < 2000; order++ {
				divergence := order * sensitivity * sensitivity / (2 * s.deviation() * s.deviation())
				least = min(least, divergence+math.Log1p(-1/order)-(math.Log(delta)+math.Log(order))/(order-1))
			}
			if least > asked*(1+1e-3) || least < 0.97*asked {
				t.Errorf("%s: epsilon %v is asked for, the noise of %v costs %v", relation, asked, s.deviation(), least)
			}
			told, err := s.Statement(event.ClaimProved)
			if err != nil || math.Abs(float64(told.Epsilon)/asked-1) > 1e-6 || float64(told.Delta) != delta {
				t.Errorf("%s: epsilon %v is asked for, %+v is told (%v)", relation, asked, told, err)
			}
		}
	}
	// Three records a person need more noise than one.
	one := newScene(t, fmt.Sprintf(classRun, "nothing", "add-remove", 1), 2)
	run := one.run
	run.Privacy.Silos = []config.SiloTarget{{Name: "ward", RecordsPerPerson: 3}}
	three, err := New(run, data.Shape{Features: 2, Classes: 2}, one.algorithm)
	if err != nil || !(three.deviation() > 2.9*one.deviation()) {
		t.Errorf("with three records a person the noise is %v, with one %v (%v)", three.deviation(), one.deviation(), err)
	}
}

// TestUnpaidCountsDoNotExist: without payment no example is asked (there is no learner to
// ask) and nothing is written; less noise than was paid for is refused.
func TestUnpaidCountsDoNotExist(t *testing.T) {
	s := newScene(t, fmt.Sprintf(classRun, "nothing", "add-remove", 1), 2)
	held := rows(rand.New(rand.NewPCG(1, 1)), 5, 2)
	out := make([]float64, s.Length())
	for _, no := range []error{fl.ErrRefused, errors.New("the disk is full")} {
		p := fl.Participant{Purse: &fltest.Purse{Err: no}, Data: held}
		released, err := s.Answer(s.sent, &p, held, nil, out)
		if released || (err != nil) == errors.Is(no, fl.ErrRefused) {
			t.Errorf("%v: released %v, %v", no, released, err)
		}
		for _, v := range out {
			if v != 0 {
				t.Fatalf("%v: %v was written", no, out)
			}
		}
	}
	paid, err := mech.NewPaid(s.Price(new(fl.Participant)))
	if err != nil {
		t.Fatal(err)
	}
	lattice, err := s.gaussian.Lattice(1)
	if err != nil {
		t.Fatal(err)
	}
	draw := func(noise float64) error {
		sum, err := mech.NewPositiveSum(2, 1, event.AddRemove, lattice)
		if err != nil {
			t.Fatal(err)
		}
		return paid.Release(mech.Gaussian{Multiplier: noise}, make([]int64, 2), sum, mech.SystemEntropy())
	}
	if err := draw(0.99 * s.gaussian.Multiplier); !errors.Is(err, mech.ErrUnpaid) {
		t.Errorf("less noise than was paid for: %v", err)
	}
	if err := draw(s.gaussian.Multiplier); err != nil {
		t.Error(err)
	}
	if err := draw(s.gaussian.Multiplier); !errors.Is(err, mech.ErrUnpaid) {
		t.Errorf("a second draw for one payment: %v", err)
	}
	if _, err := s.Answer(s.sent, new(fl.Participant), nil, s.learner, make([]float64, 3)); err == nil {
		t.Error("counts are written to too little room")
	}
}

// TestEvaluationIsProvedOnlyIfTheModelIs: whatever brings training rows to the evaluated
// model unpaid, or couples rows, takes the proof away.
func TestEvaluationIsProvedOnlyIfTheModelIs(t *testing.T) {
	const judge = "\njudge: {evaluate: {epsilon: 1}}\n"
	for text, want := range map[string]event.Claim{
		"algorithm: {kind: fedavg, mode: sound}\nprivacy: {protects: update}":                                                                           event.ClaimProved,
		"algorithm: {kind: fedavg, mode: sound}\nprivacy: {protects: nothing}":                                                                          event.ClaimProved,
		"algorithm: {kind: group-private, mode: sound, hypotheses: 2}\nprivacy: {protects: update}":                                                     event.ClaimHeuristic, // the best of two
		"algorithm: {kind: mr-mtl, mode: sound}\nprivacy: {protects: update}":                                                                           event.ClaimHeuristic, // a model without noise
		"algorithm: {kind: mr-mtl, mode: sound, weights: equal}\nprivacy: {protects: example, epsilon: 3, public_size: 20}":                             event.ClaimProved,
		"algorithm: {kind: mr-mtl, mode: sound}\nprivacy: {protects: example, epsilon: 3, relation: replace-one}":                                       event.ClaimProved,
		"algorithm: {kind: mr-mtl}\nprivacy: {protects: example, epsilon: 3}":                                                                           event.ClaimHeuristic, // shuffled batches
		"algorithm: {kind: mr-mtl, mode: sound}\nprivacy: {protects: example, silos: [{name: other, epsilon: 3}], relation: replace-one}":               event.ClaimHeuristic, // no target, no noise
		"algorithm: {kind: ifca, mode: sound, hypotheses: 2, selection: {rule: best}}\nprivacy: {protects: example, epsilon: 3, relation: replace-one}": event.ClaimHeuristic,
	} {
		s := newScene(t, "data: {kind: synthetic}\n"+text+judge, 0)
		p := fl.Participant{Data: rows(rand.New(rand.NewPCG(2, 2)), 20, 0)}
		if err := s.algorithm.Prepare(&p); err != nil {
			t.Fatal(err)
		}
		if got := s.Price(&p); got.Claim != want || got.Unit != event.UnitExample || got.Trust != event.TrustLocal || got.Relation != event.Relation(s.run.Privacy.Relation) {
			t.Errorf("%s: %+v, want the claim %s", text, got, want)
		}
		p.Uncovered = []string{"scaling by own rows"}
		if got := s.Price(&p).Claim; got != event.ClaimHeuristic {
			t.Errorf("%s, on rows that something uncovered was done to: %s", text, got)
		}
	}
}

// TestExactCountsComeFromTheSystem: whoever knows the seed must not know the noise, unless
// the run file says so.
func TestExactCountsComeFromTheSystem(t *testing.T) {
	text := fmt.Sprintf(classRun, "nothing", "add-remove", 1)
	seeded, exact := newScene(t, text, 2), newScene(t, strings.Replace(text, "exact-seeded", "exact", 1), 2)
	if a, b := seeded.answer(t, 4, nil), seeded.answer(t, 4, nil); !slices.Equal(a, b) {
		t.Errorf("seeded noise differs: %v, %v", a, b)
	}
	if a, b := seeded.answer(t, 4, nil), seeded.answer(t, 5, nil); slices.Equal(a, b) {
		t.Errorf("two participants have the same noise: %v", a)
	}
	known := seeded.answer(t, 4, nil)
	if a, b := exact.answer(t, 4, nil), exact.answer(t, 4, nil); slices.Equal(a, b) || slices.Equal(a, known) {
		t.Errorf("exact noise can be repeated: %v, %v, from the seed %v", a, b, known)
	}
}

// TestTooLongCountsAreClipped: even if an example were counted twice, what it adds to the
// sums would be clipped to what was paid for.
func TestTooLongCountsAreClipped(t *testing.T) {
	s := newScene(t, fmt.Sprintf(classRun, "nothing", "add-remove", 1), 2)
	for name, cells := range map[string][]float64{"two cells": {1, 1, 0, 0, 0, 0, 0, 0}, "a cell twice": {2, 0, 0, 0, 0, 0, 0, 0}} {
		sum, err := mech.NewPositiveSum(s.Length(), 1, event.AddRemove, mech.Lattice{Step: 0x1p-20})
		if err != nil {
			t.Fatal(err)
		}
		c, err := mech.Clip(slices.Clone(cells), 1)
		if err == nil {
			err = sum.Add(c)
		}
		if err != nil {
			t.Fatal(err)
		}
		noised := make([]int64, s.Length())
		if _, err := (mech.Gaussian{Multiplier: 1e-5}).Release(noised, sum, mech.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal}, mech.SystemEntropy()); err != nil {
			t.Fatal(err)
		}
		length := 0.0
		for _, v := range noised {
			length = math.Hypot(length, float64(v)*0x1p-20)
		}
		if length > 1.001 {
			t.Errorf("%s: an example counts for %v; the clip lets 1 pass", name, length)
		}
	}
}

// TestHeldOutRowsAreScaledAsTrainingWas: where a participant has paid for the moments of
// its features, its held-out rows are read through them.
func TestHeldOutRowsAreScaledAsTrainingWas(t *testing.T) {
	s := newScene(t, fmt.Sprintf(valueRun, "nothing", "add-remove", 1), 0)
	held := rows(rand.New(rand.NewPCG(5, 5)), 6, 0)
	scaled := &data.Client{Rows: held.Rows.Standardised([]float64{0.5, -1}, []float64{3, 0.2})}
	p := fl.Participant{Data: held, Kept: fl.Kept{Scaling: []float64{0.5, -1, 3, 0.2}}}
	got := make([]float64, s.Length())
	if released, err := s.Answer(s.sent, &p, held, s.learner, got); err != nil || !released {
		t.Fatal(err)
	}
	if want := s.answer(t, 0, scaled); !slices.Equal(got, want) || slices.Equal(got, s.answer(t, 0, held)) {
		t.Errorf("scaled rows count as %v, want %v", got, want)
	}
}
