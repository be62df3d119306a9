package protect

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/cluster"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// layered is a network of two layers, 40 and 11 parameters.
func layered(mode, sanitise string) config.Run {
	run := config.Default("synthetic", "group-private", mode)
	run.Data.Dimension, run.Data.Groups, run.Algorithm.Hypotheses = 3, 1, 1
	run.Model = config.Model{Kind: "network", Layers: []config.Layer{
		{Kind: "linear", Units: 10}, {Kind: "tanh"}, {Kind: "linear", Units: 1},
	}}
	run.Privacy.Sanitise, run.Privacy.NoiseMultiplier = sanitise, 3
	if sanitise == fl.SanitiseLayers && mode == "sound" {
		run.Privacy.LayerShares = []float64{0.9, 0.1}
	}
	return run
}

// TestEveryLayerHasItsOwnNoise: a layer's noise has length ~ Gamma(n_l, nu*r_l/n_l),
// so its mean over nu*r_l is 1 with standard deviation 1/sqrt(n_l). False alarms:
// 1e-6 a layer. The planted bug is noise on the update as a whole.
func TestEveryLayerHasItsOwnNoise(t *testing.T) {
	const z, draws = 4.8916, 400
	fits := func(mode, sanitise, noise string) bool {
		run := layered(mode, sanitise)
		run.Privacy.Noise = noise
		g := fltest.New(t, run, 100)
		p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0]}
		bare := run
		bare.Privacy.Protects, bare.Privacy.NoiseMultiplier = "nothing", 0
		trained, _ := fltest.Respond(t, fltest.New(t, bare, 100), g.Start(), &p)
		base := g.Start().Hypotheses
		cut, err := newLayers(layered(mode, fl.SanitiseLayers).Privacy, g.Model())
		if err != nil {
			t.Fatal(err)
		}
		update, whole := make([]float64, len(cut)), 0.0
		for l, c := range cut {
			update[l] = math.Sqrt(cluster.SquaredDistance(trained[c.From:c.To], base[c.From:c.To]))
			whole += update[l] * update[l]
		}
		ratio := make([]float64, len(cut))
		for draw := range draws {
			s := g.Start()
			s.Round = draw
			q := fl.Participant{ID: 1, Data: p.Data}
			out, _ := fltest.Respond(t, g, s, &q)
			for l, c := range cut {
				radius, clip := update[l], 1.0
				if mode == "sound" {
					radius = run.Privacy.Radius * c.share
					clip = min(1, radius/update[l])
				}
				var noise float64
				for i := c.From; i < c.To; i++ {
					d := out[i] - base[i] - clip*(trained[i]-base[i])
					noise += d * d
				}
				ratio[l] += math.Sqrt(noise) / (run.Privacy.NoiseMultiplier * radius * draws)
			}
		}
		for l, c := range cut {
			if math.Abs(ratio[l]-1) > z/math.Sqrt(float64(c.Len()*draws)) {
				return false
			}
		}
		return true
	}
	for _, mode := range []string{"paper", "sound"} {
		for _, noise := range []string{"simulated", fl.NoiseSeeded} {
			if !fits(mode, fl.SanitiseLayers, noise) {
				t.Errorf("%s, %s: a layer's noise does not follow its own radius", mode, noise)
			}
		}
		if fits(mode, "update", "simulated") {
			t.Errorf("%s: noise on the whole update was taken for noise on layers", mode)
		}
	}
}

func TestEveryLayerIsPaidFor(t *testing.T) {
	for mode, claim := range map[string]event.Claim{"paper": event.ClaimHeuristic, "sound": event.ClaimMetric} {
		run := layered(mode, fl.SanitiseLayers)
		g := fltest.New(t, run, 100)
		purse := &fltest.Purse{}
		p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0], Purse: purse}
		for range 3 {
			fltest.Respond(t, g, g.Start(), &p)
		}
		if len(purse.Asked) != 3 || purse.Asked[0].Claim != claim {
			t.Fatalf("%s: the purse was asked for %+v", mode, purse.Asked)
		}
		if err := purse.Asked[0].Validate(); err != nil {
			t.Error(err)
		}
		parts := purse.Asked[0].What.(event.Composed).Parts
		var dimensions []int
		for _, part := range parts {
			dimensions = append(dimensions, part.(event.MetricLaplace).Dimension)
		}
		if !slices.Equal(dimensions, []int{40, 11}) {
			t.Errorf("%s: lines for layers of %v parameters, want 40 and 11", mode, dimensions)
		}
		if got := p.Account.Epsilon(); got != 3*51/3.0 || p.Account.Releases != 3 {
			t.Errorf("%s: 3 releases of 51 parameters at nu 3 cost %v in %d releases, want 51", mode, got, p.Account.Releases)
		}
		// Per unit of distance: the root of the layers' squared n_l/(nu*C_l).
		want := math.Hypot(40/(3*0.9*run.Privacy.Radius), 11/(3*0.1*run.Privacy.Radius))
		if got := p.Account.At(1) / 3; mode == "sound" && math.Abs(got-want) > 1e-9*want {
			t.Errorf("per unit of distance a release loses %v, want %v", got, want)
		}
	}
}

// TestJointBoundsEverySplit: however a distance is spread over the layers, the
// layers' losses stay below the joint event's, and some split reaches it.
func TestJointBoundsEverySplit(t *testing.T) {
	parts := []bounded{
		{event: event.MetricLaplace{Dimension: 40, NoiseMultiplier: 3, Radius: 0.7}},
		{event: event.MetricLaplace{Dimension: 11, NoiseMultiplier: 3, Radius: 0.02}},
		{event: event.MetricLaplace{Dimension: 900, NoiseMultiplier: 3, Radius: 5}},
	}
	all := joint(parts)
	if math.Abs(all.Leak()-951/3.0) > 1e-9 {
		t.Errorf("every layer at its radius: %v, want n/nu = %v", all.Leak(), 951/3.0)
	}
	family := rng.NewFamily(1, "test splits")
	s := family.Stream(0, 0)
	most := 0.0
	for range 100_000 {
		var d [3]float64
		var norm, loss float64
		for l, part := range parts {
			d[l] = math.Abs(s.Normal()) * part.event.Epsilon()
			norm += d[l] * d[l]
			loss += part.event.Epsilon() * d[l]
		}
		most = max(most, loss/math.Sqrt(norm))
	}
	if most > all.Epsilon()*(1+1e-12) || most < 0.999*all.Epsilon() {
		t.Errorf("the worst of 100,000 splits loses %v per unit of distance, the joint event says %v", most, all.Epsilon())
	}
}

func TestLayersOfALinearModelAreTheWhole(t *testing.T) {
	for _, mode := range []string{"paper", "sound"} {
		for _, noise := range []string{"simulated", fl.NoiseSeeded} {
			var want []float64
			for _, sanitise := range []string{"update", fl.SanitiseLayers} {
				run := config.Default("synthetic", "group-private", mode)
				run.Privacy.Sanitise, run.Privacy.Noise = sanitise, noise
				out, _ := fltest.Respond(t, fltest.New(t, run, 100), fltest.TwoHypotheses(), &fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0]})
				if want != nil && !slices.Equal(out, want) {
					t.Errorf("%s, %s: %v and %v", mode, noise, want, out)
				}
				want = out
			}
		}
	}
}

func TestLayersStopAtTheCeiling(t *testing.T) {
	ceiling := 2 * 51 / 3.0
	run := layered("sound", fl.SanitiseLayers)
	run.Privacy.Ceiling = &ceiling
	g := fltest.New(t, run, 100)
	p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0]}
	for r := range 4 {
		if _, released := fltest.Respond(t, g, g.Start(), &p); released != (r < 2) {
			t.Errorf("release %d: %v", r+1, released)
		}
	}
	said := g.StateUpdates(nil)
	whole := fltest.New(t, layered("sound", "update"), 100).StateUpdates(nil)
	if l := said.Layers; len(l) != 2 || l[0].EpsilonPerRelease+l[1].EpsilonPerRelease != 17 || math.Abs(float64(*l[1].Radius)-0.03) > 1e-12 {
		t.Errorf("%+v", l)
	}
	if whole.Layers != nil {
		t.Error("an update in one piece has terms for layers")
	}
}

func TestLayerSharesMustFit(t *testing.T) {
	for _, c := range []struct {
		mode, sanitise string
		shares         []float64
	}{
		{"sound", fl.SanitiseLayers, []float64{1}}, {"sound", fl.SanitiseLayers, []float64{0.5, 0.5, 0.5}},
		{"sound", fl.SanitiseLayers, []float64{0, 1}}, {"sound", fl.SanitiseLayers, []float64{0.5, 1.5}}, {"sound", fl.SanitiseLayers, []float64{0.5, math.NaN()}},
		{"paper", fl.SanitiseLayers, []float64{0.5, 0.5}}, {"sound", "update", []float64{0.5}},
	} {
		run := layered(c.mode, c.sanitise)
		run.Privacy.LayerShares = c.shares
		m, err := model.Of(run, data.Shape{Features: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fl.New(run, m, 100); err == nil || !strings.Contains(err.Error(), "layer_shares") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
