package groupprivacy

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// laplaceDraws is how many noise vectors are looked at: the intervals are a few thousandths.
const laplaceDraws = 100_000

// laplaceRows check proposition 3.1 on noise as simulations draw it: its mean length is
// n/epsilon, and a component's variance (n+1)/epsilon^2. Dimensions are those of the studies.
func laplaceRows() (rows []study.Row, err error) {
	for _, n := range []int{2, 11} {
		lengths, squares, err := laplaceFigures(n, mech.Laplace{Multiplier: 5}.Simulate)
		if err != nil {
			return nil, fmt.Errorf("proposition 3.1: %w", err)
		}
		rows = append(rows,
			lab.Within(lawRow(n, "mean length over n/epsilon", "paper 000, section 3.1: the expected norm of the noise is n/epsilon"), lengths, 0.99, 1.01),
			lab.Within(lawRow(n, "a component's variance over (n+1)/epsilon^2", "paper 000, proposition 3.1: a component has the variance (n+1)/epsilon^2"), squares, 0.99, 1.01))
	}
	return rows, nil
}

func lawRow(n int, label, sentence string) study.Row {
	return study.Row{
		Section: "Propositions 3.1 and 3.2", Label: fmt.Sprintf("noise in %d dimensions: %s", n, label), Metric: "ratio", Unit: "ratio", Sentence: sentence,
		Settings: map[string]any{"n": n}, Note: fmt.Sprintf("agrees: the whole 95 %% interval over %d draws from 0.99 to 1.01", laplaceDraws),
		Why: "No reason is known: the sampler would be wrong.",
	}
}

// laplaceFigures are, draw by draw, the noise's length and its mean squared component, each
// over what the proposition says.
func laplaceFigures(n int, draw func(dst, base []float64, c mech.Clipped, src rand.Source) (event.MetricLaplace, error)) (lengths, squares []float64, err error) {
	zero, noise := make([]float64, n), make([]float64, n)
	c, err := mech.Clip(zero, 1)
	if err != nil {
		return nil, nil, err
	}
	family := rng.NewFamily(1, "proposition 3.1")
	src := family.Stream(0, n)
	for range laplaceDraws {
		e, err := draw(noise, zero, c, src)
		if err != nil {
			return nil, nil, err
		}
		square := 0.0
		for _, x := range noise {
			square += x * x
		}
		eps, d := e.Epsilon(), float64(n)
		lengths = append(lengths, math.Sqrt(square)*eps/d)
		squares = append(squares, square/d*eps*eps/(d+1))
	}
	return lengths, squares, nil
}

// riseRow checks proposition 3.2: noise rho raises the RMSE by at most
// |J| |rho| / sqrt(rows), J being the features for a linear model.
func riseRow(seeds int) study.Row {
	run := config.Default("synthetic", "group-private", "paper")
	top := 0.0
	for seed := range seeds {
		f := data.Synthetic(run.Data, uint64(seed+1))
		family := rng.NewFamily(uint64(seed+1), "proposition 3.2")
		m := model.Linear{Features: 2}
		for c := range f.Train {
			client := &f.Train[c]
			theta := f.Truth[client.Group]
			s := family.Stream(0, c)
			rho := []float64{s.Normal(), s.Normal()}
			loss := func(theta ...float64) float64 { return math.Sqrt(m.SquaredError(theta, client.Rows)) }
			rise := loss(theta[0]+rho[0], theta[1]+rho[1]) - loss(theta...)
			bound := spectralNorm(client.X) * math.Hypot(rho[0], rho[1]) / math.Sqrt(float64(client.Len()))
			top = max(top, rise/bound)
		}
	}
	r := lab.Measured(study.Row{
		Section: "Propositions 3.1 and 3.2", Label: "largest rise of the loss over its bound", Metric: "ratio", Unit: "at most 1", Paper: lab.Number(1),
		Settings: map[string]any{"k": 2}, Note: fmt.Sprintf("over %d clients; the bound holds exactly for a linear model", 100*seeds),
	}, lab.Exactly(top))
	return lab.Judged(r, 0, 1)
}

// spectralNorm is the largest singular value of rows of two features.
func spectralNorm(x []float64) float64 {
	var a, b, c float64
	for i := 0; i+1 < len(x); i += 2 {
		a += x[i] * x[i]
		b += x[i] * x[i+1]
		c += x[i+1] * x[i+1]
	}
	return math.Sqrt((a+c)/2 + math.Hypot((a-c)/2, b))
}
