package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/internal/rng"
)

func stream(name string) *rng.Stream {
	f := rng.NewFamily(17, name)
	return f.Stream(0, 0)
}

// exampleTerms protect single rows.
var exampleTerms = mech.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal}

func normals[F Float](name string, n int, sd float64) []F {
	s := stream(name)
	out := make([]F, n)
	for i := range out {
		out[i] = F(sd * s.Normal())
	}
	return out
}

// small are networks that between them use every layer, stride and padding.
var small = map[string]struct {
	in     Shape
	layers []Layer
}{
	"linear":         {Shape{1, 1, 5}, []Layer{{Kind: "linear", Units: 3}}},
	"linear, bare":   {Shape{1, 1, 5}, []Layer{{Kind: "linear", Units: 3, NoBias: true}, {Kind: "relu"}, {Kind: "linear", Units: 2}}},
	"tanh":           {Shape{1, 1, 4}, []Layer{{Kind: "linear", Units: 6}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"gain":           {Shape{1, 1, 4}, []Layer{{Kind: "linear", Units: 6}, {Kind: "gain"}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"sigmoid":        {Shape{1, 1, 4}, []Layer{{Kind: "linear", Units: 6}, {Kind: "sigmoid"}, {Kind: "linear", Units: 2}}},
	"leaky":          {Shape{1, 1, 4}, []Layer{{Kind: "linear", Units: 6}, {Kind: "leaky-relu", Slope: 0.1}, {Kind: "linear", Units: 2}}},
	"two in a row":   {Shape{1, 1, 4}, []Layer{{Kind: "linear", Units: 6}, {Kind: "relu"}, {Kind: "tanh"}, {Kind: "sigmoid"}, {Kind: "linear", Units: 2}}},
	"relu first":     {Shape{1, 1, 4}, []Layer{{Kind: "relu"}, {Kind: "linear", Units: 2}}},
	"conv":           {Shape{6, 5, 2}, []Layer{{Kind: "conv", Channels: 3, Kernel: 3}, {Kind: "relu"}, {Kind: "linear", Units: 2}}},
	"conv padded":    {Shape{5, 5, 2}, []Layer{{Kind: "conv", Channels: 3, Kernel: 3, Padding: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"conv strided":   {Shape{7, 8, 2}, []Layer{{Kind: "tanh"}, {Kind: "conv", Channels: 4, Kernel: 3, Stride: 2, Padding: 1}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"conv stride 3":  {Shape{8, 9, 1}, []Layer{{Kind: "conv", Channels: 2, Kernel: 2, Stride: 3, NoBias: true}, {Kind: "tanh"}, {Kind: "conv", Channels: 2, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"transposed":     {Shape{4, 3, 2}, []Layer{{Kind: "tanh"}, {Kind: "transposed-conv", Channels: 3, Kernel: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"transposed 2":   {Shape{3, 4, 2}, []Layer{{Kind: "tanh"}, {Kind: "transposed-conv", Channels: 3, Kernel: 3, Stride: 2, Padding: 1}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"max pool":       {Shape{6, 6, 2}, []Layer{{Kind: "tanh"}, {Kind: "max-pool", Kernel: 2}, {Kind: "linear", Units: 2}}},
	"max pool over":  {Shape{5, 6, 2}, []Layer{{Kind: "conv", Channels: 3, Kernel: 2}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 3, Stride: 2, Padding: 1}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"mean pool":      {Shape{5, 5, 2}, []Layer{{Kind: "tanh"}, {Kind: "mean-pool", Kernel: 3, Stride: 2, Padding: 1}, {Kind: "flatten"}, {Kind: "linear", Units: 2}}},
	"residual":       {Shape{1, 1, 4}, []Layer{{Kind: "linear", Units: 4}, {Kind: "residual", Inner: []Layer{{Kind: "linear", Units: 6}, {Kind: "tanh"}, {Kind: "linear", Units: 4}}}, {Kind: "linear", Units: 2}}},
	"residual convs": {Shape{4, 4, 2}, []Layer{{Kind: "residual", Inner: []Layer{{Kind: "conv", Channels: 2, Kernel: 3, Padding: 1}, {Kind: "relu"}, {Kind: "conv", Channels: 2, Kernel: 3, Padding: 1}}}, {Kind: "relu"}, {Kind: "linear", Units: 2}}},
	"whole mean":     {Shape{5, 4, 2}, []Layer{{Kind: "conv", Channels: 3, Kernel: 2}, {Kind: "tanh"}, {Kind: "mean-pool"}, {Kind: "linear", Units: 2}}},
	"group norm":     {Shape{4, 5, 2}, []Layer{{Kind: "conv", Channels: 6, Kernel: 3, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: 3}, {Kind: "relu"}, {Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "group-norm", Groups: 1}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"group norms":    {Shape{3, 3, 10}, []Layer{{Kind: "group-norm"}, {Kind: "group-norm", Groups: 2}, {Kind: "linear", Units: 12}, {Kind: "group-norm", Groups: 4}, {Kind: "linear", Units: 2}}},
	"layer norm":     {Shape{1, 1, 7}, []Layer{{Kind: "layer-norm"}, {Kind: "linear", Units: 9}, {Kind: "layer-norm"}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"layer norms":    {Shape{3, 4, 2}, []Layer{{Kind: "conv", Channels: 5, Kernel: 2}, {Kind: "layer-norm"}, {Kind: "layer-norm"}, {Kind: "linear", Units: 2}}},
	"shortcut":       {Shape{5, 6, 2}, []Layer{{Kind: "residual", Inner: []Layer{{Kind: "conv", Channels: 4, Kernel: 3, Padding: 1, Stride: 2}, {Kind: "group-norm", Groups: 2}, {Kind: "relu"}, {Kind: "conv", Channels: 4, Kernel: 3, Padding: 1}}, Shortcut: []Layer{{Kind: "conv", Channels: 4, Kernel: 1, Stride: 2}, {Kind: "group-norm", Groups: 2}}}, {Kind: "relu"}, {Kind: "linear", Units: 2}}},
	"shortcut later": {Shape{1, 1, 3}, []Layer{{Kind: "linear", Units: 4}, {Kind: "residual", Inner: []Layer{{Kind: "linear", Units: 5}, {Kind: "tanh"}}, Shortcut: []Layer{{Kind: "linear", Units: 5, NoBias: true}}}, {Kind: "linear", Units: 2}}},
	"embedding":      {Shape{1, 1, 6}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: 3}, {Kind: "layer-norm"}, {Kind: "linear", Units: 2}}},
	"places":         {Shape{1, 1, 6}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: 3}, {Kind: "linear", Units: 5, Each: true}, {Kind: "relu"}, {Kind: "linear", Units: 2, Each: true, NoBias: true}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
	"wide places":    {Shape{1, 1, 2}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: 7}, {Kind: "linear", Units: 8, Each: true}, {Kind: "gelu"}, {Kind: "linear", Units: 2}}},
	"attention":      {Shape{1, 1, 5}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: 12}, {Kind: "positions"}, {Kind: "attention", Heads: 2}, {Kind: "linear", Units: 2}}},
	"words":          {Shape{1, 1, 5}, []Layer{{Kind: "words", Vocabulary: 9, Units: 3, Inner: []Layer{{Kind: "positions", SD: 0.5}, {Kind: "residual", Inner: []Layer{{Kind: "layer-norm"}, {Kind: "linear", Units: 9, Each: true}, {Kind: "attention", Heads: 1}, {Kind: "linear", Units: 3, Each: true}}}, {Kind: "layer-norm"}}}}},
	"two embeddings": {Shape{1, 1, 5}, []Layer{{Kind: "residual", Inner: []Layer{{Kind: "embedding", Vocabulary: 3, Units: 4}, {Kind: "tanh"}}, Shortcut: []Layer{{Kind: "embedding", Vocabulary: 9, Units: 4}}}, {Kind: "linear", Units: 2}}},
}

func newEngine[F Float](t testing.TB, in Shape, layers []Layer, o Objective[F], workers int) (*Engine[F], []F) {
	t.Helper()
	n, err := Build[F](in, layers)
	if err != nil {
		t.Fatal(err)
	}
	p := pool.New(workers)
	t.Cleanup(p.Close)
	e, err := NewEngine(n, o, p)
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]F, n.Parameters())
	n.Initialise(theta, stream("theta"))
	return e, theta
}

func examples[F Float](e *Engine[F], n int) (Examples[F], []int) {
	s := stream("labels")
	ex := Examples[F]{X: normals[F]("x", n*e.network.Input().Len(), 1)}
	if e.network.chain.check(ex.X) != nil { // of words, of which some come twice in a row
		for i := range ex.X {
			ex.X[i] = F(s.Below(3))
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
		if e.objective.labelled() {
			ex.Labels = append(ex.Labels, s.Below(max(2, e.network.Output().Len())))
		}
	}
	if _, ok := e.objective.(nextWord[F]); ok {
		ex.Targets = ex.X
	} else if !e.objective.labelled() {
		ex.Targets = normals[F]("y", n*e.network.Output().Len(), 1)
	}
	return ex, order
}

func TestGradientsOfEveryLayer(t *testing.T) {
	for name, c := range small {
		e, theta := newEngine[float64](t, c.in, c.layers, crossEntropy[float64]{}, 1)
		checkGradients(t, name, e, theta)
	}
}

func TestGradientsOfEveryLoss(t *testing.T) {
	in := Shape{1, 1, 4}
	hidden := []Layer{{Kind: "linear", Units: 5}, {Kind: "tanh"}}
	for _, c := range []struct {
		name    string
		outputs int
	}{
		{"squared-error", 3}, {"rmse", 3}, {"cross-entropy", 3}, {"binary-cross-entropy", 1}, {"hinge", 1},
	} {
		o, err := NewObjective[float64](c.name)
		if err != nil {
			t.Fatal(err)
		}
		e, theta := newEngine[float64](t, in, append(slices.Clone(hidden), Layer{Kind: "linear", Units: c.outputs}), o, 1)
		checkGradients(t, fmt.Sprint(c), e, theta)
	}
}

// checkGradients compares the gradients of parameters and inputs with central
// differences, single rows with the batch, and norms with gradients of one row.
func checkGradients(t *testing.T, name string, e *Engine[float64], theta []float64) {
	t.Helper()
	const rows, h = 5, 1e-6
	ex, order := examples(e, rows)
	grad := make([]float64, len(theta))
	if _, err := e.Gradient(grad, theta, ex, order); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	scratch := make([]float64, len(theta))
	loss := func() float64 {
		l, err := e.Gradient(scratch, theta, ex, order)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-6*(1+math.Abs(want))) {
			t.Errorf("%s: %s is %v, differences say %v", name, what, got, want)
		}
	}
	for j := range theta {
		old := theta[j]
		theta[j] = old + h
		up := loss()
		theta[j] = old - h
		down := loss()
		theta[j] = old
		near(fmt.Sprintf("gradient %d", j), grad[j], (up-down)/(2*h))
	}
	in := e.network.Input().Len()
	dx, one := make([]float64, in), make([]float64, 1)
	rowLoss := func() float64 {
		if err := e.Losses(one, theta, ex, []int{2}); err != nil {
			t.Fatal(err)
		}
		return one[0]
	}
	if _, err := e.InputGradient(dx, theta, ex, 2); err != nil {
		t.Fatal(err)
	}
	if e.network.chain.check([]float64{0.5}) != nil { // nothing is between two words
		if slices.Min(dx) != 0 || slices.Max(dx) != 0 {
			t.Errorf("%s: words have the gradient %v", name, dx)
		}
		dx = nil
	}
	for j := range dx {
		old := ex.X[2*in+j]
		ex.X[2*in+j] = old + h
		up := rowLoss()
		ex.X[2*in+j] = old - h
		down := rowLoss()
		ex.X[2*in+j] = old
		near(fmt.Sprintf("input gradient %d", j), dx[j], (up-down)/(2*h))
	}
	checkClipping(t, name, e, theta, ex, order)
}

// checkClipping builds the clipped sum from gradients of single rows, and compares.
func checkClipping[F Float](t *testing.T, name string, e *Engine[F], theta []F, ex Examples[F], order []int) {
	t.Helper()
	tolerance := 1e-9
	if _, single := any(theta).([]float32); single {
		tolerance = 2e-4
	}
	grads, norms := make([][]F, len(order)), make([]float64, len(order))
	for i, row := range order {
		grads[i] = make([]F, len(theta))
		if _, err := e.Gradient(grads[i], theta, ex, []int{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Norms(norms, theta, ex, order); err != nil {
		t.Fatal(err)
	}
	bound := norms[0] * 0.8 // some rows are clipped, some perhaps not
	want := make([]float64, len(theta))
	for i, g := range grads {
		var sq float64
		for _, v := range g {
			sq += float64(v) * float64(v)
		}
		if norm := math.Sqrt(sq); math.Abs(norm-norms[i]) > tolerance*(1+norm) {
			t.Errorf("%s: row %d has norm %v, its gradient %v", name, i, norms[i], norm)
		}
		for j, v := range g {
			want[j] += float64(v) * min(1, bound/math.Sqrt(sq))
		}
	}
	sum, err := mech.NewLaneSum[F](len(theta), lanes, bound)
	if err != nil {
		t.Fatal(err)
	}
	// What clip rules that learn add up: examples within the bound and beyond it apart.
	rule := mech.StepRule{Clip: bound, Noise: 1, Sampling: event.Poisson, Rate: 1, Clipping: onlineRule}
	parted, err := mech.PrepareLanes[F](sampledSteps(t, rule, stream("batches"), mech.Randomness{Keyed: stream("noise")}), nil, len(theta), lanes)
	if err != nil {
		t.Fatal(err)
	}
	for way, sum := range map[string]*mech.LaneSum[F]{"clipped": sum, "parted": parted} {
		if _, err := e.ClippedSum(sum, theta, ex, order); err != nil {
			t.Fatal(err)
		}
		got := make([]F, len(theta))
		if err := sum.Unprotected(got); err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if math.Abs(float64(got[j])-want[j]) > tolerance*(1+math.Abs(want[j])) {
				t.Fatalf("%s: %s sum %d is %v, row by row %v", name, way, j, got[j], want[j])
			}
		}
	}
}

func TestPapersNetworks(t *testing.T) {
	// As the papers' tables count them.
	parameters := map[string]int{
		"hospital": 11, "mnist": 551322, "autoencoder": 48705, "agnews": 113156, "femnist": 1206590,
		"cross-silo-cifar": 42442, "cross-silo-mnist": 34826, "cross-silo-adni": 53697,
		"resnet8": 76720 + 650 + 2*336, // convolutions, 10 units, norms of 336 channels
	}
	for name, n := range named {
		net, err := Build[float32](n.Input, n.Layers)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if net.Parameters() != parameters[name] {
			t.Errorf("%s has %d parameters, its paper says %d", name, net.Parameters(), parameters[name])
		}
		end := 0
		for _, v := range net.Views() {
			if v.Offset != end {
				t.Errorf("%s: view %s begins at %d, want %d", name, v.Name, v.Offset, end)
			}
			end += v.Len()
		}
		if end != net.Parameters() {
			t.Errorf("%s: the views cover %d of %d parameters", name, end, net.Parameters())
		}
	}
	if _, err := NamedNetwork("resnet-8"); err == nil {
		t.Error("an unknown network was accepted")
	}
	wide := named["agnews"]
	if net, err := Build[float32](Shape{1, 1, 1250}, wide.Layers); err != nil || net.Parameters() != 177156 {
		t.Errorf("25 words of 50: %v, %v", net.Parameters(), err)
	}
	if net, err := Build[float32](Shape{1, 1, 28}, LinearLayers(1, false)); err != nil || net.Parameters() != 28 {
		t.Errorf("linear regression: %v, %v", net.Parameters(), err)
	}
}

// TestWorkersGiveTheSameBits covers plain and private gradients of a network with
// every kind of cost.
func TestWorkersGiveTheSameBits(t *testing.T) {
	c := small["max pool over"]
	var plain, private []float32
	for _, workers := range []int{1, 2, 8} {
		e, theta := newEngine[float32](t, c.in, c.layers, crossEntropy[float32]{}, workers)
		ex, order := examples(e, 1500)
		g := make([]float32, len(theta))
		if _, err := e.Gradient(g, theta, ex, order); err != nil {
			t.Fatal(err)
		}
		sum, err := mech.NewLaneSum[float32](len(theta), lanes, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.ClippedSum(sum, theta, ex, order); err != nil {
			t.Fatal(err)
		}
		h := make([]float32, len(theta))
		if err := mech.SimulateStep(begin(t, Step{Paid: paidSteps(t, 0.5, 1, mech.Randomness{Keyed: stream("noise")})}).Paid, h, sum); err != nil {
			t.Fatal(err)
		}
		if plain == nil {
			plain, private = g, h
		}
		if !slices.Equal(g, plain) || !slices.Equal(h, private) {
			t.Errorf("%d workers give other bits than one", workers)
		}
	}
}

func TestClippingInSinglePrecision(t *testing.T) {
	for _, name := range []string{"conv", "residual convs", "transposed 2", "max pool over", "group norm", "layer norms", "shortcut", "embedding", "two embeddings"} {
		c := small[name]
		e, theta := newEngine[float32](t, c.in, c.layers, crossEntropy[float32]{}, 2)
		ex, order := examples(e, 300)
		checkClipping(t, name, e, theta, ex, order)
	}
}

func TestBadBatchesAreNamed(t *testing.T) {
	e, theta := newEngine[float64](t, Shape{1, 1, 2}, LinearLayers(3, true), crossEntropy[float64]{}, 1)
	g := make([]float64, len(theta))
	good := Examples[float64]{X: []float64{1, 2, 3, 4}, Labels: []int{0, 2}}
	for name, try := range map[string]func() error{
		"label out of range": func() error {
			_, err := e.Gradient(g, theta, Examples[float64]{X: good.X, Labels: []int{0, 3}}, []int{0, 1})
			return err
		},
		"negative label": func() error {
			_, err := e.Gradient(g, theta, Examples[float64]{X: good.X, Labels: []int{0, -1}}, []int{1})
			return err
		},
		"row out of range":     func() error { _, err := e.Gradient(g, theta, good, []int{2}); return err },
		"no rows":              func() error { _, err := e.Gradient(g, theta, good, nil); return err },
		"odd values":           func() error { _, err := e.Gradient(g, theta, Examples[float64]{X: []float64{1}}, []int{0}); return err },
		"labels missing":       func() error { _, err := e.Gradient(g, theta, Examples[float64]{X: good.X}, []int{0}); return err },
		"parameters too short": func() error { _, err := e.Gradient(g, theta[1:], good, []int{0}); return err },
	} {
		if try() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Norms sets dst to the norm of every row's gradient.
func (e *Engine[F]) Norms(dst []float64, theta []F, ex Examples[F], order []int) error {
	for i, row := range order {
		err := e.each(theta, ex, order[i:i+1], func(w *workspace[F], _ int, rows []int) error {
			e.rowNorms(w, theta, rows)
			dst[i] = w.norms[0]
			return nil
		}, nil)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
	}
	return nil
}
