package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
)

// runOf is a run file with a model block and a loss.
func runOf(m config.Model, loss Loss) config.Run {
	return config.Run{Model: m, Algorithm: config.Algorithm{Local: config.Local{Loss: loss.String()}}}
}

func someRows(features, n int) data.Rows {
	f := rng.NewFamily(5, "rows")
	s := f.Stream(0, 0)
	r := data.Rows{Features: features}
	for range n {
		for range features {
			r.X = append(r.X, s.Normal())
		}
		r.Y = append(r.Y, s.Normal())
	}
	return r
}

// lossOf is a second way to the loss, straight from its definition.
func lossOf(m Linear, theta []float64, rows data.Rows, order []int) float64 {
	sum := 0.0
	for _, i := range order {
		p := 0.0
		for j := range m.Features {
			p += theta[j] * rows.X[i*m.Features+j]
		}
		if m.Intercept {
			p += theta[m.Features]
		}
		sum += (p - rows.Y[i]) * (p - rows.Y[i])
	}
	if m.Loss == RMSE {
		return math.Sqrt(sum / float64(len(order)))
	}
	return sum / float64(len(order))
}

func TestGradientAgainstFiniteDifferences(t *testing.T) {
	for _, m := range []Linear{{Features: 1}, {Features: 2}, {Features: 2, Intercept: true}, {Features: 7, Intercept: true}} {
		rows := someRows(m.Features, 9)
		theta := someRows(m.Parameters(), 1).X
		for _, loss := range []Loss{SquaredError, RMSE} {
			for _, order := range [][]int{nil, {3, 1, 8}} {
				all := order
				if all == nil {
					all = []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
				}
				grad := make([]float64, len(theta))
				m.Loss = loss
				if err := learnerOf(t, m).Gradient(grad, theta, &data.Client{Rows: rows}, order, &Step{Whole: order == nil}); err != nil {
					t.Fatal(err)
				}
				for j := range theta {
					const h = 1e-6
					up, down := slices.Clone(theta), slices.Clone(theta)
					up[j] += h
					down[j] -= h
					want := (lossOf(m, up, rows, all) - lossOf(m, down, rows, all)) / (2 * h)
					if math.Abs(grad[j]-want) > 1e-8*(1+math.Abs(want)) {
						t.Errorf("%+v, loss %d, rows %v: gradient %d is %v, differences say %v", m, loss, order, j, grad[j], want)
					}
				}
			}
		}
	}
}

func TestLossesAgree(t *testing.T) {
	for _, m := range []Linear{{Features: 2}, {Features: 3}, {Features: 2, Intercept: true}} {
		rows, theta := someRows(m.Features, 10), someRows(m.Parameters(), 1).X
		want := lossOf(m, theta, rows, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
		if got := m.SquaredError(theta, rows); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%+v: %v, want %v", m, got, want)
		}
	}
}

func TestPerfectFitHasNoGradient(t *testing.T) {
	l := learnerOf(t, Linear{Features: 1, Loss: RMSE})
	rows := data.Rows{X: []float64{1, 2}, Y: []float64{3, 6}, Features: 1}
	grad := []float64{math.NaN()}
	if err := l.Gradient(grad, []float64{3}, &data.Client{Rows: rows}, nil, &Step{Whole: true}); err != nil || grad[0] != 0 {
		t.Errorf("gradient %v at a perfect fit (%v)", grad, err)
	}
}

func TestTrainWalksThroughBatches(t *testing.T) {
	l := learnerOf(t, Linear{Features: 2})
	c := &data.Client{Rows: someRows(2, 10)}
	f := rng.NewFamily(1, "b")
	train := func(theta []float64, p Pass) {
		t.Helper()
		if err := l.Train(theta, c, &p); err != nil {
			t.Fatal(err)
		}
	}
	theta := []float64{0.5, 0.5}
	train(theta, Pass{StepSize: 0.05, Epochs: 200, Batch: 3, Shuffle: f.Stream(0, 0)})
	whole := []float64{0.5, 0.5}
	train(whole, Pass{StepSize: 0.05, Epochs: 800})
	if d := math.Hypot(theta[0]-whole[0], theta[1]-whole[1]); d > 0.3 {
		t.Errorf("batches end at %v, the whole data at %v", theta, whole)
	}
	one := []float64{1, 1}
	grad := make([]float64, 2)
	if err := l.Gradient(grad, one, c, nil, &Step{Whole: true}); err != nil {
		t.Fatal(err)
	}
	train(one, Pass{StepSize: 0.1, Epochs: 1})
	if one[0] != 1-0.1*grad[0] || one[1] != 1-0.1*grad[1] {
		t.Errorf("one step ends at %v", one)
	}
}

func TestBest(t *testing.T) {
	m := Linear{Features: 1}
	rows := data.Rows{X: []float64{1}, Y: []float64{2}, Features: 1}
	if loss, j, err := Best(learnerOf(t, m), 1, []float64{5, 2, 2}, &data.Client{Rows: rows}); err != nil || loss != 0 || j != 1 {
		t.Errorf("loss %v of hypothesis %d, want 0 of 1: ties go to the lowest index", loss, j)
	}
}

func TestParseLoss(t *testing.T) {
	if _, err := ParseLoss("huber"); err == nil {
		t.Error("an unknown loss was accepted")
	}
}

func BenchmarkLinearEpoch(b *testing.B) {
	l, c, theta := learnerOf(b, Linear{Features: 2}), &data.Client{Rows: someRows(2, 10)}, []float64{1, 1}
	p := &Pass{StepSize: 1e-9, Epochs: 1}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Train(theta, c, p); err != nil {
			b.Fatal(err)
		}
	}
}

func TestHonestRMSE(t *testing.T) {
	m := Linear{Features: 1}
	// Row 0 is fitted by 1, rows 1 and 2 by 2: row 0 is scored under 2, the others
	// have one row each way and take the first.
	c := &data.Client{Rows: data.Rows{X: []float64{1, 1, 1}, Y: []float64{1, 2, 2}, Features: 1}}
	got, ok, err := HonestRMSE(learnerOf(t, m), 1, []float64{1, 2}, c)
	if err != nil {
		t.Fatal(err)
	}
	if want := math.Sqrt(3.0 / 3); !ok || math.Abs(got-want) > 1e-15 {
		t.Errorf("%v, %v; want %v", got, ok, want)
	}
	if _, ok, _ := HonestRMSE(learnerOf(t, m), 1, []float64{1, 2}, &data.Client{Rows: data.Rows{X: []float64{1}, Y: []float64{1}, Features: 1}}); ok {
		t.Error("a client of one row was scored")
	}
}

// TestDataThatDoNotFitAreErrors: not panics, wherever a learner is asked.
func TestDataThatDoNotFitAreErrors(t *testing.T) {
	rows := data.Client{Rows: data.Rows{Features: 3, X: make([]float64, 7), Y: make([]float64, 3)}}
	pictures, _ := smallPictures(t, 3, 4)
	network, err := Of(runOf(config.Model{Kind: "network", Name: "hospital"}, SquaredError), data.Shape{Features: 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]Model{
		"linear": Linear{Features: 3}, "network": network, "half": Linear{Features: 3, Loss: HalfSquaredError}, "pictures": pictures,
	} {
		l, theta := learnerOf(t, m), make([]float64, m.Parameters())
		if _, err := l.Loss(theta, &rows); err == nil {
			t.Errorf("%s: a loss of 7 values in 3 rows", name)
		}
		if err := l.Train(theta, &rows, &Pass{StepSize: 0.1, Epochs: 1}); err == nil {
			t.Errorf("%s: trained on 7 values in 3 rows", name)
		}
		if _, _, err := Best(l, len(theta), theta, &rows); err == nil {
			t.Errorf("%s: the best of 7 values in 3 rows", name)
		}
	}
}
