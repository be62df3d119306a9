package fl_test

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func TestLargestValueFollowsFromPublicSettings(t *testing.T) {
	exact := config.Default("synthetic", "group-private", "sound")
	exact.Privacy.Noise = "exact"
	paper := config.Default("synthetic", "group-private", "paper")
	paper.Privacy.Noise = "exact"
	wide := exact
	wide.Privacy.Radius = 1e9
	broken := exact
	broken.Privacy.Radius = math.Inf(1)
	for name, c := range map[string]struct {
		run  config.Run
		want float64
	}{
		// 5*0.3*sqrt(2) = 2.12: a step of 2^(1-20), times 2^53.
		"exact, sound": {exact, math.Ldexp(1, 34)},
		// 5*64e-6*sqrt(2) = 4.5e-4, at least 2^-12: a step of 2^-32, times 2^53.
		"exact, paper":  {paper, math.Ldexp(1, 21)},
		"a wide radius": {wide, 1e12},
		"no lattice":    {broken, 1e12},
		"simulated":     {config.Default("synthetic", "group-private", "sound"), 1e12},
		"no noise":      {config.Default("synthetic", "fedavg", "sound"), 1e12},
		"silos":         {config.Default("school", "fedavg", "sound"), 1e12},
	} {
		if got := fl.LargestValue(c.run); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestReleaseBoundsFitEveryBroadcast: hypotheses at the bounds can be sent in every
// round and after the last one, and nothing larger can be sent in the end.
func TestReleaseBoundsFitEveryBroadcast(t *testing.T) {
	run := config.Default("synthetic", "group-private", "sound")
	run.Privacy.Noise, run.Privacy.RadiusDecay, run.Algorithm.Rounds = "exact", 0.9, 60
	paper := config.Default("synthetic", "group-private", "paper")
	paper.Privacy.Noise = "exact"
	for name, run := range map[string]config.Run{"sound": run, "paper": paper} {
		g, err := fl.New(run, model.Linear{Features: 7}, 100)
		if err != nil {
			t.Fatal(err)
		}
		at := func(round int, factor float64) error {
			s := &fl.State{Round: round, Hypotheses: make([]float64, 2*7)}
			for _, b := range g.ReleaseBounds() {
				for i := b.From; i < b.To; i++ {
					s.Hypotheses[i], s.Hypotheses[7+i] = factor*b.Most, -factor*b.Most
				}
			}
			_, err := g.Broadcast(s)
			return err
		}
		for round := range run.Algorithm.Rounds + 1 {
			if err := at(round, 1); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if at(run.Algorithm.Rounds, 1.01) == nil {
			t.Errorf("%s: more than the bounds can be sent after the last round: they are too small", name)
		}
	}
}

// TestReleaseBoundsCoverEveryValue of a release, of every method and of layers.
func TestReleaseBoundsCoverEveryValue(t *testing.T) {
	whole := func(name string, a *fl.Algorithm) {
		at := 0
		for _, b := range a.ReleaseBounds() {
			if b.From != at || b.To <= b.From || !(b.Most > 0) || !(b.Least < b.Most) {
				t.Errorf("%s: bound %+v after %d values", name, b, at)
			}
			at = b.To
		}
		if at != a.ReleaseLength() {
			t.Errorf("%s: %d of %d values are bounded", name, at, a.ReleaseLength())
		}
	}
	for _, method := range fl.Methods() {
		run := config.Default("school", method, "sound")
		for _, protects := range fl.Protections() {
			run.Privacy.Protects = protects
			if protects == "client" && method == "local" { // nothing is sent that the server could noise
				continue
			}
			var m model.Model = model.Linear{Features: 3, Loss: model.HalfSquaredError}
			if run.Model.Kind == "projection" {
				m = model.Projection{Features: 3, Components: 2}
				if protects == "client" || protects == "update" { // there are no updates
					continue
				}
			}
			s, err := fl.New(run, m, 4)
			if err != nil {
				t.Fatal(method, protects, err)
			}
			whole(method+", "+protects, s)
		}
	}
	run := config.Default("synthetic", "group-private", "sound")
	run.Privacy.Noise, run.Privacy.Sanitise = "exact", fl.SanitiseLayers
	m, err := model.Of(config.Run{
		Model: config.Model{Kind: "network", Name: "hospital"}, Algorithm: config.Algorithm{Local: config.Local{Loss: "squared-error"}},
	}, data.Shape{Features: 3})
	if err != nil {
		t.Fatal(err)
	}
	g, err := fl.New(run, m, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.ReleaseBounds()) < 2 {
		t.Error("a network's layers have one bound")
	}
	whole("layers", g)
}
