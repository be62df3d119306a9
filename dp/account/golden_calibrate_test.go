package account

import (
	"flag"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

var soak = flag.Bool("soak", false, "run the long tests as well")

func poissonTraining(rate float64, steps int64) Training {
	return Training{Terms: exampleTerms, Trust: event.TrustLocal, Sampling: event.Poisson, Rate: rate, Steps: steps}
}

func TestGoldenCalibration(t *testing.T) {
	t.Parallel()
	var file googleFile
	golden(t, "google_dp_accounting.json", &file)
	for i, row := range file.E.Rows {
		m := Method(row.Accountant)
		if m == MethodPLD && i%10 != 0 && !*soak {
			// A second each: most are read forwards only.
			if _, high := pldBounds(t, exampleTerms, dpsgd(row.NoiseMultiplier, row.Q, row.Steps), row.Delta, quick); apart(high, row.TargetEps) > 1e-3 {
				t.Errorf("%+v: epsilon %v", row, high)
			}
			continue
		}
		var orders []float64
		if m == MethodRDP {
			orders = file.Meta.DefaultOrders
		}
		plan, cost, err := poissonTraining(row.Q, row.Steps).WithNoiseFor(m, row.TargetEps, row.Delta, orders...)
		if err != nil {
			t.Fatal(err)
		}
		// Google's bound at fractional orders is above the truth, so its noise may
		// be above ours; its own tolerance is 1e-6.
		high, low := 1e-6, 6e-4
		if m == MethodPLD {
			high, low = 1e-4, 1e-4
		}
		if d := plan.Noise/row.NoiseMultiplier - 1; d > high || d < -low {
			t.Errorf("%+v: noise %v (%+.1e)", row, plan.Noise, d)
		}
		if cost.Epsilon > row.TargetEps {
			t.Errorf("%+v: epsilon %v is above the target", row, cost.Epsilon)
		}
	}
}

func TestGoldenGridBudgets(t *testing.T) {
	t.Parallel()
	var file googleFile
	golden(t, "google_dp_accounting.json", &file)
	for _, row := range file.E.Grid {
		plan := poissonTraining(row.Q, row.StepsTotal/row.Runs)
		plan.Runs = row.Runs
		plan, cost, err := plan.WithNoiseFor(MethodRDP, row.TargetEps, row.Delta, file.Meta.DefaultOrders...)
		if err != nil {
			t.Fatal(err)
		}
		if d := plan.Noise/row.NoiseMultiplier - 1; d > 1e-6 || d < -6e-4 || cost.Epsilon > row.TargetEps {
			t.Errorf("%+v: noise %v (%+.1e), epsilon %v", row, plan.Noise, d, cost.Epsilon)
		}
	}
}

func TestGoldenSiloCalibration(t *testing.T) {
	t.Parallel()
	var file siloFile
	golden(t, "cross_silo_and_node.json", &file)
	for _, row := range append(append([]siloRow{}, file.Silo.Rows...), file.Silo.Select...) {
		plan := poissonTraining(row.Q, row.Steps)
		if row.NumSelections > 0 {
			choice := event.Selection{Mechanism: event.Exponential, Epsilon: row.SelectionEps}
			plan.Also = []event.Event{event.Repeated{Times: row.NumSelections, Of: choice}}
		}
		plan, cost, err := plan.WithNoiseFor(MethodRDP, row.TargetEps, row.Delta, file.Silo.Orders...)
		if err != nil {
			t.Fatal(err)
		}
		// Theirs stops within about 1e-7 of the target on either side.
		if apart(plan.Noise, row.NoiseMult) > 1e-5 || cost.Epsilon > row.TargetEps {
			t.Errorf("%+v: noise %v, epsilon %v", row, plan.Noise, cost.Epsilon)
		}
	}
}

func TestGoldenOpacusCalibration(t *testing.T) {
	t.Parallel()
	var file exactFile
	golden(t, "exact_and_opacus.json", &file)
	for _, row := range file.OpacusCalibration {
		plan, _, err := poissonTraining(row.Rate, row.Steps).WithNoiseFor(MethodRDP, row.Target, row.Delta, file.Meta.OpacusAlphas...)
		if err != nil {
			t.Fatal(err)
		}
		// Theirs stops when epsilon is within 0.01 below the target.
		theirs, _ := rdpEpsilon(t, exampleTerms, dpsgd(row.NoiseMultiplier, row.Rate, row.Steps), row.Delta, WithOrders(file.Meta.OpacusAlphas...))
		if theirs > row.Target || theirs < row.Target-row.Tolerance || plan.Noise > row.NoiseMultiplier*(1+1e-8) {
			t.Errorf("%+v: theirs costs %v, our noise %v", row, theirs, plan.Noise)
		}
	}
}

func TestGoldenTuningNoise(t *testing.T) {
	t.Parallel()
	var file siloFile
	golden(t, "cross_silo_and_node.json", &file)
	f := file.TNB
	solve := func(target float64, e func(noise float64) event.Event) float64 {
		noise, err := LeastNoise(target, func(noise float64) (float64, error) {
			g, err := Spend(releaseOn(exampleTerms, e(noise)), MethodRDP, f.Delta, f.Orders...)
			return g.Epsilon, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return noise
	}
	for target, want := range f.BaseNoise {
		got := solve(atof(t, target), func(noise float64) event.Event { return event.Gaussian{Noise: noise} })
		if math.Abs(got/want-1) > 1e-4 {
			t.Errorf("base noise for %v: %v, want %v", target, got, want)
		}
	}
	for _, row := range f.Rows {
		for target, want := range row.NoiseForEps {
			got := solve(atof(t, target), func(noise float64) event.Event {
				return event.Tuning{Distribution: event.TruncatedNegativeBinomial, Eta: row.Eta, Gamma: row.Gamma, Of: event.Gaussian{Noise: noise}}
			})
			if math.Abs(got/want.NoiseMult-1) > 1e-4 {
				t.Errorf("eta %v gamma %v target %v: noise %v, want %v", row.Eta, row.Gamma, target, got, want.NoiseMult)
			}
		}
	}
}
