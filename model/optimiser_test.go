package model

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestAdamWByHand: Loshchilov and Hutter's steps, written out, with a warm-up of three.
func TestAdamWByHand(t *testing.T) {
	o, err := NewOptimiser(config.Local{Optimiser: "adamw", Beta1: 0.8, Beta2: 0.9, WeightDecay: 0.1, WarmUp: 3})
	if err != nil {
		t.Fatal(err)
	}
	o.restart(1, nil)
	theta, want := []float64{2}, 2.0
	var first, second float64
	for step, g := range []float64{1, -3, 0.5, 2} {
		size := 0.05 * min(1, float64(step+1)/3)
		first, second = 0.8*first+0.2*g, 0.9*second+0.1*g*g
		want -= size * 0.1 * want
		want -= size * (first / (1 - math.Pow(0.8, float64(step+1)))) / (math.Sqrt(second/(1-math.Pow(0.9, float64(step+1)))) + adamEpsilon)
		o.begin(0.05, 0)
		o.move(theta, 0, []float64{g})
		if math.Abs(theta[0]-want) > 1e-12 {
			t.Fatalf("step %d: %v, written out %v", step, theta[0], want)
		}
	}
}

// TestWarmUpOfPlainSteps: they rise from a fraction, and go on from pass to pass where
// training does.
func TestWarmUpOfPlainSteps(t *testing.T) {
	o, err := NewOptimiser(config.Local{Optimiser: "sgd", WarmUp: 4})
	if err != nil {
		t.Fatal(err)
	}
	theta, kept := []float64{0}, &Memory{}
	for pass, want := range []float64{-0.25, -0.75, -1.5, -2.5, -3.5} {
		o.restart(1, kept)
		o.begin(1, 0)
		o.move(theta, 0, []float64{1})
		if kept.Moves = o.steps; theta[0] != want {
			t.Errorf("pass %d: %v, want %v", pass, theta[0], want)
		}
	}
}

// TestLongestGradient: a step's gradient that is longer is scaled, a shorter one is not.
func TestLongestGradient(t *testing.T) {
	p := Pass{longest: 5}
	long, short := []float64{6, -8}, []float64{3, 4}
	p.shorten(long)
	p.shorten(short)
	if math.Abs(long[0]-3) > 1e-12 || math.Abs(long[1]+4) > 1e-12 || short[0] != 3 || short[1] != 4 {
		t.Errorf("%v, %v", long, short)
	}
}
