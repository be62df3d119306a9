package fl_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/model"
)

func TestClientTrainsTheHypothesisThatFits(t *testing.T) {
	run := config.Default("synthetic", "ifca", "paper")
	f := data.Synthetic(run.Data, 1)
	g := fltest.New(t, run, 100)
	pass, err := model.NewPass(run.Algorithm.Local, run.Algorithm.Rounds)
	if err != nil {
		t.Fatal(err)
	}
	l, err := g.Model().Learner()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []int{0, 99} { // one of each group
		p := fl.Participant{ID: c, Data: &f.Train[c]}
		s := fltest.TwoHypotheses()
		out, ok := fltest.Respond(t, g, s, &p)
		base := s.Hypotheses[2*f.Train[c].Group:][:2]
		want := slices.Clone(base)
		if err := l.Train(want, p.Data, &pass); err != nil {
			t.Fatal(err)
		}
		if !ok || !slices.Equal(out, want) {
			t.Errorf("client of group %d sends %v, one step from its hypothesis is %v", f.Train[c].Group, out, want)
		}
		if !math.IsInf(p.Account.Epsilon(), 1) {
			t.Errorf("a release without noise costs %v", p.Account.Epsilon())
		}
	}
}

// TestSiloMethodsLearn: without privacy every method fits; with little privacy cost
// it still does, from the seed and on the lattice alike, and repeats.
func TestSiloMethodsLearn(t *testing.T) {
	train, test := fltest.Silos(4, 60, fltest.Features, 0.2)
	zero := make([][]float64, len(test))
	for i := range zero {
		zero[i] = make([]float64, fltest.Features+1)
	}
	untrained := fltest.Error(t, zero, test)
	for name, run := range fltest.Variants() {
		run.Algorithm.Rounds, run.Privacy.UpdateClip = 30, 1
		plain, _, _ := fltest.Federate(t, fltest.Unprotected(run), train)
		if e := fltest.Error(t, plain, test); !(e < 0.7*untrained) {
			t.Errorf("%s without privacy: error %.4f, untrained %.4f", name, e, untrained)
		}
		run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Algorithm.Rounds = 0, 1, 4
		if run.Algorithm.Hypotheses > 1 { // a private choice takes a share of a target
			run.Privacy.NoiseMultiplier, run.Privacy.Epsilon = 0, 50
		}
		first, _, _ := fltest.Federate(t, run, train)
		again, _, _ := fltest.Federate(t, run, train)
		run.Privacy.Noise = fl.NoiseSeeded
		exact, _, _ := fltest.Federate(t, run, train)
		exactAgain, _, _ := fltest.Federate(t, run, train)
		for i := range first {
			if !slices.Equal(first[i], again[i]) || !slices.Equal(exact[i], exactAgain[i]) {
				t.Fatalf("%s: silo %d has another model the second time", name, i)
			}
			if slices.Equal(first[i], exact[i]) {
				t.Fatalf("%s: exact noise changed nothing", name)
			}
		}
	}
}

func TestSilosPayBeforeTheyTrain(t *testing.T) {
	train, _ := fltest.Silos(3, 40, fltest.Features, 0.2)
	for name, run := range fltest.Variants() {
		for _, refusal := range []error{fmt.Errorf("too much: %w", fl.ErrRefused), errors.New("disk is full")} {
			run.Privacy.Noise = "exact"
			s := fltest.New(t, run, 3)
			purse := &fltest.Purse{Err: refusal}
			p := fl.Participant{Data: &train[0], Purse: purse}
			if err := s.Prepare(&p); err != nil {
				t.Fatal(err)
			}
			own := slices.Clone(p.Personal)
			b, err := s.Broadcast(s.Start())
			if err != nil {
				t.Fatal(err)
			}
			out := make([]float64, s.ReleaseLength())
			released, err := s.Respond(new(fl.Worker), b, &p, out)
			if released || (err != nil) == errors.Is(refusal, fl.ErrRefused) {
				t.Errorf("%s: released %v, error %v", name, released, err)
			}
			if len(purse.Asked) != 1 || purse.Asked[0].Validate() != nil {
				t.Errorf("%s: the purse was asked for %+v", name, purse.Asked)
			}
			if !slices.Equal(out, make([]float64, len(out))) || !slices.Equal(own, p.Personal) || p.Paid != (fl.Paid{}) {
				t.Errorf("%s: something happened that was not paid for", name)
			}
		}
	}
}
