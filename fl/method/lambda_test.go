package method

import (
	"fmt"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
	"github.com/coterie-fl/coterie/internal/rng"
)

// TestEstimateRecoversWhatWasDrawn feeds the server with releases from the model that
// the estimate assumes: curvature 0.8, a spread in coordinate 0 only, coordinate 1
// without curvature. A silo that declares half its noise is the planted error.
func TestEstimateRecoversWhatWasDrawn(t *testing.T) {
	const silos, rounds, h, tau = 80, 60, 0.8, 0.2
	estimate := func(declared float64) []float64 {
		run := fltest.Run("mr-mtl")
		run.Algorithm.Lambda, run.Algorithm.Local.Step = config.LambdaAuto, 0.02
		s := fltest.New(t, run, silos)
		m := s.Method().(*meanRegularised)
		const steps, variance = 3, 1e-4
		f := rng.NewFamily(5, "releases")
		optimum := make([]float64, silos)
		for k := range optimum {
			optimum[k] = tau * f.Stream(0, k).Normal()
		}
		last := make([][]float64, silos)
		for k := range last {
			last[k] = make([]float64, m.n)
		}
		st := s.Start()
		for round := range rounds {
			b, err := s.Broadcast(st)
			if err != nil {
				t.Fatal(err)
			}
			r := fl.Releases{Vectors: make([]float64, silos*s.ReleaseLength())}
			for k := range silos {
				r.Clients = append(r.Clients, k)
				out := r.Vectors[k*s.ReleaseLength():][:s.ReleaseLength()]
				copy(out, last[k])
				m.pullBy(out[:m.n], b.Hypotheses, b.Memory, declared*variance, steps, 100)
				noise := f.Stream(1+round, k)
				for i := range m.n {
					curvature, at := h, 0.0
					switch i {
					case 0:
						at = optimum[k]
					case 1:
						curvature = 0
					}
					out[i] += run.Algorithm.Local.Step*steps*curvature*(at-out[i]) + math.Sqrt(variance)*noise.Normal()
				}
				copy(last[k], out[:m.n])
				copy(out[m.n:], tail(100, 0, declared*variance, steps))
			}
			if out := s.Aggregate(st, r); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		return st.Memory[:m.toldLength()]
	}
	n := fltest.Features + 1
	told := estimate(1)
	curvatures, spreads := told[toldEach:toldEach+n], told[toldEach+n:]
	if c := curvatures[0]; math.Abs(c-h) > 0.25*h {
		t.Errorf("curvature of coordinate 0: %.3f, drawn with %.3f", c, h)
	}
	if c := curvatures[1]; c > 0.3*h {
		t.Errorf("curvature of coordinate 1: %.3f, drawn with none", c)
	}
	// The spread is taken two standard errors low, about 2*sqrt(2/80) of it.
	if got, want := spreads[0], h*h*tau*tau; got < 0.3*want || got > 1.3*want {
		t.Errorf("spread of coordinate 0: %.4g, drawn with %.4g", got, want)
	}
	for i, spread := range spreads[1:] {
		if spread > 0.02*h*h*tau*tau {
			t.Errorf("spread of coordinate %d: %.3g, drawn with none", i+1, spread)
		}
	}
	wrong := 0
	for _, spread := range estimate(0.25)[toldEach+n+1:] {
		if spread > 0 {
			wrong++
		}
	}
	if wrong == 0 {
		t.Errorf("noise that is larger than declared is not seen as spread: the test sees nothing")
	}
}

// TestAutomaticLambda: on silos whose intercepts differ it must take most of what the
// best fixed lambda gains over the better end, and never lose much to either end.
func TestAutomaticLambda(t *testing.T) {
	train, test := fltest.Silos(30, 60, fltest.Features, 0.15)
	for _, noise := range []float64{2, 6, 20} {
		figure := func(kind string, lambda config.Lambda) float64 {
			run := fltest.Run(kind)
			run.Algorithm.Rounds, run.Algorithm.Lambda, run.Algorithm.Prox = 60, lambda, "server"
			run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = 0, noise
			models, _, _ := fltest.Federate(t, run, train)
			return fltest.Error(t, models, test)
		}
		ends := min(figure("local", "0"), figure("fedavg", "0"))
		best := ends
		for _, lambda := range []config.Lambda{"0.1", "0.3", "1", "3", "10"} {
			best = min(best, figure("mr-mtl", lambda))
		}
		auto := figure("mr-mtl", config.LambdaAuto)
		line := fmt.Sprintf("noise %v: better end %.5f, best fixed lambda %.5f, auto %.5f", noise, ends, best, auto)
		t.Log(line)
		if auto > 1.02*ends || auto > ends-0.7*(ends-best) {
			t.Error(line)
		}
	}
}

// TestStrength holds the closed form against a search for the least error.
func TestStrength(t *testing.T) {
	for _, c := range []struct{ h, tau2, q, sampling float64 }{
		{1, 0.01, 0.002, 0}, {0.5, 0.01, 0.002, 0.0005}, {2, 0.001, 0.0005, 0.0001}, {1, 0.0001, 0.01, 0},
	} {
		spread := c.h * c.h * c.tau2
		got := strengthAt(c.h, spread, c.q, c.sampling)
		risk := func(l float64) float64 { // of docs/proofs/mr-mtl-lambda.md
			s := c.sampling / c.h // variance of the local optimum
			return (l*l*c.tau2+c.h*c.h*s)/((c.h+l)*(c.h+l)) + c.q/(c.h+l)
		}
		best, least := 0.0, risk(0)
		for l := 1e-4; l < 1e6; l *= 1.001 {
			if r := risk(l); r < least {
				best, least = l, r
			}
		}
		if math.IsInf(got, 1) {
			if best < 9e5 {
				t.Errorf("%+v: infinite, the search finds %v", c, best)
			}
			continue
		}
		if math.Abs(got/best-1) > 0.01 {
			t.Errorf("%+v: %v, the search finds %v", c, got, best)
		}
	}
	if got := strengthAt(0, 1, 1, 0); !math.IsInf(got, 1) {
		t.Errorf("without curvature: %v", got)
	}
}
