package audit

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// rowsRun is a federation of rows with an intercept.
func rowsRun(kind string, nu float64) config.Run {
	run := config.Default("synthetic", kind, "paper")
	run.Name = "test"
	run.Data.Dimension, run.Data.Groups = 6, 2
	run.Model.Intercept = true
	run.Privacy.NoiseMultiplier = nu
	return run
}

func inspect(t *testing.T, run config.Run, o InspectOptions) Inspection {
	t.Helper()
	o.Evaluations, o.Restarts = 60, 1
	got, err := Inspect(context.Background(), run, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestInspectReadsARow off the update of a batch of one, for both losses and for a
// network; ten rows at once hide each other.
func TestInspectReadsARow(t *testing.T) {
	network := rowsRun("ifca", 0)
	network.Model = config.Model{Kind: "network", Layers: []model.Layer{{Kind: "linear", Units: 4}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}}
	rmse := rowsRun("ifca", 0)
	rmse.Algorithm.Local.Loss = "rmse"
	for name, run := range map[string]config.Run{"linear": rowsRun("ifca", 0), "rmse": rmse, "network": network} {
		got := inspect(t, run, InspectOptions{Client: 5, OneExample: true, Example: 2})
		if !got.Recovered || got.Stronger == "" || got.Steps != 1 || got.Examples != 1 {
			t.Errorf("%s: %+v", name, got)
		}
		if closed := got.Attacks[0]; closed.Error == nil || *closed.Error > 1e-6 || closed.Example != 2 {
			t.Errorf("%s: the closed form: %+v", name, closed)
		}
		if control := got.Attacks[2]; control.Attack != NameGuess || control.Recovered {
			t.Errorf("%s: the control: %+v", name, control)
		}
		if got := inspect(t, run, InspectOptions{Client: 5}); got.Recovered || got.Examples != 10 {
			t.Errorf("%s, ten rows: %+v", name, got)
		}
	}
}

// TestInspectWithoutIntercept knows a direction only, and does not call that a row.
func TestInspectWithoutIntercept(t *testing.T) {
	run := rowsRun("ifca", 0)
	run.Model.Intercept = false
	got := inspect(t, run, InspectOptions{OneExample: true})
	closed := got.Attacks[0]
	if closed.Error != nil || closed.Recovered || math.Abs(float64(closed.Cosine)) < 1-1e-9 {
		t.Errorf("%+v", closed)
	}
	if !strings.Contains(got.Verdict, "up to its length") {
		t.Errorf("verdict %q", got.Verdict)
	}
	if got := inspect(t, run, InspectOptions{}); strings.Contains(got.Verdict, "up to its length") {
		t.Errorf("ten rows: verdict %q", got.Verdict)
	}
}

// TestNoiseHidesARow: at nu = 100 no row is recovered from 20 clients, at nu = 0
// every one is.
func TestNoiseHidesARow(t *testing.T) {
	for nu, want := range map[float64]int{0: 20, 100: 0} {
		kind := "group-private"
		if nu == 0 {
			kind = "ifca"
		}
		found := 0
		for client := range 20 {
			if inspect(t, rowsRun(kind, nu), InspectOptions{Client: client, OneExample: true}).Recovered {
				found++
			}
		}
		if found != want {
			t.Errorf("nu %v: %d of 20 rows recovered, want %d", nu, found, want)
		}
	}
}

func TestInspectFindsTheHypothesis(t *testing.T) {
	run := rowsRun("ifca", 0)
	start := make([]float64, 2*7)
	for i := range 7 {
		start[7+i] = 50 // nobody chooses it
	}
	got := inspect(t, run, InspectOptions{OneExample: true, Hypotheses: start})
	if got.Hypothesis != 0 || !got.Recovered {
		t.Errorf("%+v", got)
	}
}

func TestInspectRefuses(t *testing.T) {
	ctx := context.Background()
	o := InspectOptions{Evaluations: 10, Restarts: 1}
	far, wrong, missing := o, o, o
	far.Client = 1000
	wrong.Hypotheses = make([]float64, 3)
	missing.OneExample, missing.Example = true, 10
	ceiling := 0.001
	broke := rowsRun("group-private", 5)
	broke.Privacy.Ceiling = &ceiling
	if _, err := Inspect(ctx, broke, nil, o); !errors.Is(err, fl.ErrRefused) {
		t.Errorf("above the ceiling: %v", err)
	}
	weighted, focal := rowsRun("ifca", 0), rowsRun("ifca", 0)
	weighted.Algorithm.Local.ClassWeights, focal.Algorithm.Local.Loss = []float64{1, 2}, "focal"
	for _, run := range []config.Run{weighted, focal} {
		if _, err := Inspect(ctx, run, nil, o); err == nil || !strings.Contains(err.Error(), "plain losses") {
			t.Errorf("emphasised examples: %v", err)
		}
	}
	if _, _, err := networkOf(rowsRun("ifca", 0), &data.Federation{Features: 2, Reconstruct: true, Train: make([]data.Client, 1)}); err == nil || !strings.Contains(err.Error(), "their own targets") {
		t.Errorf("examples that are their own targets: %v", err)
	}
	if _, _, err := networkOf(rowsRun("ifca", 0), &data.Federation{Features: 2, Classes: 3, Train: make([]data.Client, 1)}); err == nil || !strings.Contains(err.Error(), "3 classes") {
		t.Errorf("a softmax: %v", err)
	}
	real := rowsRun("ifca", 0)
	real.Data.Kind = "writers"
	for what, err := range map[string]error{
		"client 1000":     second(Inspect(ctx, rowsRun("ifca", 0), nil, far)),
		"three values":    second(Inspect(ctx, rowsRun("ifca", 0), nil, wrong)),
		"an 11th example": second(Inspect(ctx, rowsRun("ifca", 0), nil, missing)),
		"no folder":       second(Inspect(ctx, real, nil, o)),
	} {
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// handmade is a federation of drawn pictures.
func handmade(clients int) *data.Federation {
	n := DenseFirst(10)
	im := &data.Images{Height: 28, Width: 28}
	for i := range 2 * clients {
		im.Pixels = append(im.Pixels, Bytes(drawn(n, i))...)
		im.Labels = append(im.Labels, i%10)
	}
	f := &data.Federation{Features: 784, Classes: 10}
	for i := range clients {
		f.Train = append(f.Train, data.Client{Pictures: data.Pictures{Images: im, Index: []int{2 * i, 2*i + 1}}})
	}
	f.Validation = f.Train[:1]
	return f
}

func TestSurvey(t *testing.T) {
	f := handmade(4)
	pictures, err := DrawPictures(f, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Network: DenseFirst(10), Step: 0.1, Evaluations: 10, Restarts: 1}
	ticks := 0
	got, err := s.Run(context.Background(), pictures, 1, func(int) { ticks++ })
	if err != nil {
		t.Fatal(err)
	}
	closed := got.Attacks[0]
	if closed.Recovered != 1 || closed.Labels != 1 || got.Stronger != NameClosedForm || ticks != 3 || !strings.Contains(got.Verdict, "100 %") {
		t.Errorf("%+v", got)
	}
	s.Sanitiser.Multiplier, s.Restarts = 1000, 0
	if got, err = s.Run(context.Background(), pictures, 1, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if len(got.Attacks) != 1 || got.Attacks[0].Recovered != 0 || !strings.Contains(got.Verdict, "does not show") {
		t.Errorf("%+v", got)
	}
	for what, err := range map[string]error{
		"no pictures":       second(s.Run(context.Background(), nil, 1, func(int) {})),
		"too many":          second(DrawPictures(f, 5, 1)),
		"another network's": second(Setup{Network: quarter(), Step: 0.1, Evaluations: 9}.Run(context.Background(), pictures, 1, func(int) {})),
	} {
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestMeanExample(t *testing.T) {
	f := handmade(1)
	mean := MeanExample(f.Validation, 784)
	a, _ := example(&f.Train[0], 0)
	b, _ := example(&f.Train[0], 1)
	for i := range mean {
		near(t, "mean", mean[i], (a[i]+b[i])/2, 1e-12)
	}
}
