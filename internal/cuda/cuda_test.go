//go:build linux

package cuda_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

type layers = []config.Layer

// networks that together meet every kernel, and every way through it.
var networks = map[string]struct {
	shape  data.Shape
	loss   string
	layers layers
}{
	"convolutions, a pool, linear layers": {data.Shape{Height: 10, Width: 9, Classes: 5}, "cross-entropy", layers{
		{Kind: "conv", Channels: 8, Kernel: 4, Padding: 2}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2, Stride: 1},
		{Kind: "conv", Channels: 20, Kernel: 3}, {Kind: "relu"}, {Kind: "linear", Units: 33}, {Kind: "relu"}, {Kind: "linear", Units: 5}}},
	"a pool between convolutions that one kernel takes back": {data.Shape{Height: 13, Width: 15, Channels: 2, Classes: 4}, "cross-entropy", layers{
		{Kind: "conv", Channels: 12, Kernel: 8, Padding: 3}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2, Stride: 1},
		{Kind: "conv", Channels: 6, Kernel: 4}, {Kind: "relu"}, {Kind: "linear", Units: 4}}},
	"an autoencoder": {data.Shape{Height: 9, Width: 9, Reconstruct: true}, "squared-error", layers{
		{Kind: "conv", Channels: 4, Kernel: 3}, {Kind: "leaky-relu"}, {Kind: "conv", Channels: 8, Kernel: 3}, {Kind: "leaky-relu", Slope: 0.2},
		{Kind: "transposed-conv", Channels: 4, Kernel: 3}, {Kind: "tanh"}, {Kind: "transposed-conv", Channels: 1, Kernel: 3}, {Kind: "sigmoid"}}},
	"strides, colours, no biases": {data.Shape{Height: 12, Width: 11, Channels: 3, Classes: 3}, "cross-entropy", layers{
		{Kind: "conv", Channels: 6, Kernel: 3, Stride: 2, Padding: 1, NoBias: true}, {Kind: "tanh"}, {Kind: "max-pool", Kernel: 3, Stride: 2, Padding: 1},
		{Kind: "transposed-conv", Channels: 7, Kernel: 4, Stride: 2, Padding: 1}, {Kind: "relu"}, {Kind: "conv", Channels: 5, Kernel: 2, Stride: 3}, {Kind: "sigmoid"},
		{Kind: "linear", Units: 3, NoBias: true}}},
	"wide filters of colours": {data.Shape{Height: 11, Width: 29, Channels: 3, Classes: 4}, "cross-entropy", layers{
		{Kind: "conv", Channels: 12, Kernel: 8, Padding: 3}, {Kind: "relu"}, {Kind: "conv", Channels: 9, Kernel: 5, Padding: 2}, {Kind: "leaky-relu"}, {Kind: "max-pool", Kernel: 2},
		{Kind: "linear", Units: 4}}},
	"filters and weights that begin anywhere": {data.Shape{Height: 7, Width: 8, Classes: 3}, "cross-entropy", layers{
		{Kind: "conv", Channels: 3, Kernel: 3}, {Kind: "relu"}, {Kind: "transposed-conv", Channels: 8, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 12}, {Kind: "relu"}, {Kind: "linear", Units: 7}, {Kind: "tanh"},
		{Kind: "linear", Units: 3}}},
	"more channels than a block has": {data.Shape{Height: 6, Width: 6, Classes: 4}, "cross-entropy", layers{
		{Kind: "conv", Channels: 70, Kernel: 3}, {Kind: "relu"}, {Kind: "conv", Channels: 68, Kernel: 2}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2}, {Kind: "flatten"}, {Kind: "linear", Units: 4}}},
	"sixteens of channels, and pools": {data.Shape{Height: 14, Width: 13, Classes: 4}, "cross-entropy", layers{
		{Kind: "conv", Channels: 16, Kernel: 3}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2}, {Kind: "conv", Channels: 32, Kernel: 3, Padding: 1}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2},
		{Kind: "conv", Channels: 16, Kernel: 2}, {Kind: "relu"}, {Kind: "linear", Units: 4}}},
	"sixteens of channels both ways": {data.Shape{Height: 8, Width: 7, Channels: 16, Reconstruct: true}, "squared-error", layers{
		{Kind: "conv", Channels: 32, Kernel: 3}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2, Stride: 1}, {Kind: "conv", Channels: 16, Kernel: 2}, {Kind: "tanh"},
		{Kind: "transposed-conv", Channels: 32, Kernel: 3}, {Kind: "leaky-relu"}, {Kind: "transposed-conv", Channels: 16, Kernel: 3}, {Kind: "sigmoid"}}},
	"pictures given back by halves": {data.Shape{Height: 5, Width: 5, Reconstruct: true}, "half-squared-error", layers{
		{Kind: "linear", Units: 40}, {Kind: "tanh"}, {Kind: "linear", Units: 25}, {Kind: "sigmoid"}}},
}

// client draws pictures and classes.
func client(s data.Shape, n int, src *rand.Rand) *data.Client {
	im := &data.Images{Height: s.Height, Width: s.Width, Channels: s.Channels, Pixels: make([]byte, n*s.Height*s.Width*s.Depth()), Labels: make([]int, n)}
	for i := range im.Pixels {
		im.Pixels[i] = byte(src.IntN(256))
	}
	for i := range im.Labels {
		im.Labels[i] = src.IntN(max(1, s.Classes))
	}
	c := &data.Client{}
	c.Images, c.Index = im, src.Perm(n) // rows are not where pictures are
	return c
}

func build(t *testing.T, s data.Shape, loss string, ls layers) (model.Model, []float64) {
	t.Helper()
	return buildBy(t, s, config.Local{Loss: loss}, ls)
}

func buildBy(t *testing.T, s data.Shape, local config.Local, ls layers) (model.Model, []float64) {
	t.Helper()
	m, err := model.Of(config.Run{Model: config.Model{Kind: "network", Layers: ls}, Algorithm: config.Algorithm{Local: local}}, s)
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, rand.NewPCG(1, 2))
	return m, theta
}

// open readies a device that takes so many examples at a time; 0: as many as pay.
func open(t *testing.T, m model.Model, chunk int) *cuda.Device {
	t.Helper()
	return openFor(t, m, model.Plan{Chunk: chunk})
}

// openFor readies a device for what is asked of a plan: how many examples at a time, and whole numbers.
func openFor(t *testing.T, m model.Model, asked model.Plan) *cuda.Device {
	t.Helper()
	p, err := model.PlanOf(m)
	if err != nil {
		t.Fatal(err)
	}
	p.Chunk, p.Whole = asked.Chunk, asked.Whole
	d, err := cuda.Open(0, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func learner(t *testing.T, m model.Model) model.Learner {
	t.Helper()
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// apart is the distance of two vectors over the length of the second.
func apart(a, b []float64) float64 {
	var d, n float64
	for i := range a {
		d += (a[i] - b[i]) * (a[i] - b[i])
		n += b[i] * b[i]
	}
	if !(d >= 0) {
		return math.Inf(1)
	}
	return math.Sqrt(d / n)
}

// near leaves out rows whose gradient jumps when parameters move by less than float32
// arithmetic differs by: a ReLU's or a pool's input is so close to its kink that two
// arithmetics may take different sides. At most one in ten may be such.
func near(t *testing.T, l model.Learner, theta []float64, c *data.Client, rows []int) (smooth []int) {
	t.Helper()
	src := rand.New(rand.NewPCG(5, 6))
	for _, row := range rows {
		g, moved, other := make([]float64, len(theta)), make([]float64, len(theta)), make([]float64, len(theta))
		if err := l.Gradient(g, theta, c, []int{row}, &model.Step{}); err != nil {
			t.Fatal(err)
		}
		jumps := false
		for range 4 {
			for i, v := range theta {
				other[i] = v * (1 + 4e-6*(2*src.Float64()-1))
			}
			if err := l.Gradient(moved, other, c, []int{row}, &model.Step{}); err != nil {
				t.Fatal(err)
			}
			jumps = jumps || apart(moved, g) > 2e-4
		}
		if !jumps {
			smooth = append(smooth, row)
		}
	}
	if len(smooth) < len(rows)*9/10 {
		t.Fatalf("%d of %d rows are near a kink", len(rows)-len(smooth), len(rows))
	}
	return smooth
}

func TestStepsAreTheProcessors(t *testing.T) {
	cudatest.Use(t)
	for name, n := range networks {
		for _, major := range majors(strings.HasPrefix(name, "sixteens")) {
			t.Run(name+", capability "+major, func(t *testing.T) {
				t.Setenv("COTERIE_EMU_MAJOR", major)
				checkNetwork(t, n.shape, n.loss, n.layers)
			})
		}
	}
}

// majors are the compute capabilities of an emulated device that a test is made with: the latest,
// and, where tensor cores change anything, one without these.
func majors(tensor bool) []string {
	if tensor && !cudatest.OnDevice() {
		return []string{"9", "7"}
	}
	return []string{"9"}
}

func checkNetwork(t *testing.T, shape data.Shape, loss string, ls layers) {
	src := rand.New(rand.NewPCG(3, 4))
	m, theta := build(t, shape, loss, ls)
	c := client(shape, 40, src)
	d := open(t, m, 0)
	ours, theirs := learner(t, model.On(m, d)), learner(t, m)
	rows := near(t, theirs, theta, c, src.Perm(40)[:37])
	got, want := make([]float64, len(theta)), make([]float64, len(theta))
	norms := rowNorms(t, theirs, theta, c, rows)
	for step, s := range map[string]model.Step{
		"plain": {}, "a clip that all meet": {Clip: norms[len(norms)/2] / 50, Divisor: 7},
		"a clip that some meet": {Clip: norms[len(norms)/2], Divisor: 37}, "a clip that none meets": {Clip: 1e9, Divisor: 1},
	} {
		for _, batch := range [][]int{rows, rows[:1], nil} {
			if err := ours.Gradient(got, theta, c, batch, &s); err != nil {
				t.Fatal(err)
			}
			if err := theirs.Gradient(want, theta, c, batch, &s); err != nil {
				t.Fatal(err)
			}
			if len(batch) == 0 {
				if slices.ContainsFunc(got, func(v float64) bool { return v != 0 }) {
					t.Errorf("%s: an empty batch has a gradient", step)
				}
				continue
			}
			if off := apart(got, want); off > 5e-6 {
				t.Errorf("%s, %d rows: off by %.2g of the processor's", step, len(batch), off)
			}
		}
	}
	checkOutputs(t, ours, theirs, theta, c)
}

// rowNorms are the norms of single rows' gradients, in order of length.
func rowNorms(t *testing.T, l model.Learner, theta []float64, c *data.Client, rows []int) []float64 {
	t.Helper()
	var norms []float64
	g := make([]float64, len(theta))
	for _, row := range rows {
		if err := l.Gradient(g, theta, c, []int{row}, &model.Step{}); err != nil {
			t.Fatal(err)
		}
		var s float64
		for _, v := range g {
			s += v * v
		}
		norms = append(norms, math.Sqrt(s))
	}
	slices.Sort(norms)
	return norms
}

func checkOutputs(t *testing.T, ours, theirs model.Learner, theta []float64, c *data.Client) {
	t.Helper()
	got, _, err := ours.Outputs(nil, theta, c)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := theirs.Outputs(nil, theta, c)
	if err != nil {
		t.Fatal(err)
	}
	if off := apart(got, want); off > 1e-6 {
		t.Errorf("outputs are off by %.2g", off)
	}
}

// TestChunksAndRepetition: a batch of more than a chunk is the sum of its parts, with the
// same bits every time, whatever order blocks run in.
func TestChunksAndRepetition(t *testing.T) {
	cudatest.Use(t)
	s := data.Shape{Height: 4, Width: 4, Classes: 3}
	m, theta := build(t, s, "cross-entropy", layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 3}})
	c := client(s, 50, rand.New(rand.NewPCG(1, 1)))
	batch := make([]int, 43)
	for i := range batch {
		batch[i] = i % 50
	}
	var before []float64
	for _, order := range []string{"forward", "backward"} {
		t.Setenv("COTERIE_EMU_ORDER", order)
		ours, theirs := learner(t, model.On(m, open(t, m, 16))), learner(t, m)
		step := model.Step{Clip: 0.5, Divisor: len(batch)}
		for range 2 {
			got, want := make([]float64, len(theta)), make([]float64, len(theta))
			if err := ours.Gradient(got, theta, c, batch, &step); err != nil {
				t.Fatal(err)
			}
			if err := theirs.Gradient(want, theta, c, batch, &step); err != nil {
				t.Fatal(err)
			}
			if off := apart(got, want); off > 5e-6 {
				t.Errorf("off by %.2g", off)
			}
			if before != nil && !slices.Equal(before, got) {
				t.Error("the same step has other bits")
			}
			before = got
		}
	}
}

// TestNotFiniteRowsAreLeftOut: a row whose gradient is not finite must not spoil the rows
// beside it.
func TestNotFiniteRowsAreLeftOut(t *testing.T) {
	cudatest.Use(t)
	s := data.Shape{Height: 4, Width: 4, Classes: 3}
	m, theta := build(t, s, "cross-entropy", layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "relu"}, {Kind: "linear", Units: 8}, {Kind: "relu"}, {Kind: "linear", Units: 3}})
	c := client(s, 20, rand.New(rand.NewPCG(1, 1)))
	for i := range theta {
		theta[i] = 0.1
	}
	for i := 4*4 + 4; i < 4*4+4+9*4*8; i++ {
		theta[i] = 5
	}
	theta[0] = 3e38 // the first pixel, if it is not black, overflows in the second layer
	for k, place := range c.Index {
		if k >= 4 { // and of most pictures it is black, wherever the filter reads it
			clear(c.Images.Pixels[place*16 : (place+1)*16])
		}
	}
	for _, k := range []int{0, 1, 2, 3} {
		for j := range 16 {
			c.Images.Pixels[c.Index[k]*16+j] = 255
		}
	}
	ours, theirs := learner(t, model.On(m, open(t, m, 0))), learner(t, m)
	got, want, batch := make([]float64, len(theta)), make([]float64, len(theta)), []int{0, 1, 2, 3, 4, 5}
	step := model.Step{Clip: 0.5, Divisor: 10}
	if err := ours.Gradient(got, theta, c, batch[:4], &step); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(got, func(v float64) bool { return v != 0 }) {
		t.Error("rows that are not finite count for something, or are finite")
	}
	if err := ours.Gradient(got, theta, c, batch, &step); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Gradient(want, theta, c, batch, &step); err != nil {
		t.Fatal(err)
	}
	if off := apart(got, want); !(off < 5e-6) {
		t.Errorf("off by %.2g", off)
	}
}

// TestTwoSums: gradients that belong to one sum are not in the other, whatever factors both
// have.
func TestTwoSums(t *testing.T) {
	cudatest.Use(t)
	n := networks["convolutions, a pool, linear layers"]
	m, theta := build(t, n.shape, n.loss, n.layers)
	c := client(n.shape, 24, rand.New(rand.NewPCG(7, 1)))
	d, l := open(t, m, 16), learner(t, m)
	single := make([]float32, len(theta))
	for i, v := range theta {
		single[i] = float32(v)
	}
	sums, rows, at := [2][]float32{make([]float32, len(theta)), make([]float32, len(theta))}, make([]int, 24), 0
	for i := range rows {
		rows[i] = c.Index[i]
	}
	err := d.Gradients(single, c, rows, func(norms []float64, add func(sum, factors []float32) error) error {
		one, other := make([]float32, len(norms)), make([]float32, len(norms))
		for i := range norms {
			if (at+i)%3 == 0 {
				one[i] = 1
			} else {
				other[i] = 0.5
			}
		}
		at += len(norms)
		if err := add(sums[0], one); err != nil {
			return err
		}
		return add(sums[1], other)
	})
	if err != nil || at != 24 {
		t.Fatal(err, at)
	}
	for k, factor := range []float64{1, 0.5} {
		var batch []int
		for i := range 24 {
			if (i%3 == 0) == (k == 0) {
				batch = append(batch, i)
			}
		}
		want, got := make([]float64, len(theta)), make([]float64, len(theta))
		if err := l.Gradient(want, theta, c, batch, &model.Step{}); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i] = float64(sums[k][i]) / factor / float64(len(batch))
		}
		if off := apart(got, want); off > 5e-6 {
			t.Errorf("sum %d is off by %.2g", k, off)
		}
	}
}

// TestClipHolds: a clipped row's share of the sum is within the clip, not only near it.
func TestClipHolds(t *testing.T) {
	cudatest.Use(t)
	n := networks["convolutions, a pool, linear layers"]
	m, theta := build(t, n.shape, n.loss, n.layers)
	c := client(n.shape, 30, rand.New(rand.NewPCG(1, 1)))
	l := learner(t, model.On(m, open(t, m, 0)))
	g := make([]float64, len(theta))
	for row := range 30 {
		const clip = 0.01
		if err := l.Gradient(g, theta, c, []int{row}, &model.Step{Clip: clip, Divisor: 1}); err != nil {
			t.Fatal(err)
		}
		var s float64
		for _, v := range g {
			s += v * v
		}
		if norm := math.Sqrt(s); norm > clip || norm < clip*(1-4e-6) {
			t.Errorf("row %d was clipped to %.9g instead of %v", row, norm, clip)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		s    data.Shape
		loss string
		ls   layers
	}{
		"the loss rmse of examples that are given back":      {data.Shape{Height: 2, Width: 2, Reconstruct: true}, "rmse", layers{{Kind: "linear", Units: 4}}},
		"layer 0 (embedding): it reads words of texts alone": {data.Shape{Features: 3, Classes: 2}, "cross-entropy", layers{{Kind: "embedding", Vocabulary: 4, Units: 2}, {Kind: "linear", Units: 2}}},
		"this model is none":                                 {data.Shape{Features: 3, Classes: 2, Windows: 1}, "cross-entropy", layers{{Kind: "linear", Units: 1}}},
		"layer 0 (residual), layer 1 (mean-pool)": {data.Shape{Height: 8, Width: 6, Classes: 3}, "cross-entropy", layers{
			{Kind: "residual", Inner: layers{{Kind: "tanh"}, {Kind: "mean-pool"}}, Shortcut: layers{{Kind: "mean-pool"}}}, {Kind: "linear", Units: 3}}},
		"ends with gelu": {data.Shape{Height: 8, Width: 8, Classes: 3}, "cross-entropy", layers{{Kind: "linear", Units: 3}, {Kind: "gelu"}}},
	} {
		m, _ := buildBy(t, c.s, config.Local{Loss: c.loss, Batch: 5}, c.ls)
		if _, err := model.PlanOf(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
	}
}

// named is one of the papers' networks, with biases that are not 0.
func named(t *testing.T, name string, s data.Shape) (model.Model, []float64) {
	t.Helper()
	loss := "cross-entropy"
	if s.Reconstruct {
		loss = "squared-error"
	}
	m, err := model.Of(config.Run{Model: config.Model{Kind: "network", Name: name}, Algorithm: config.Algorithm{Local: config.Local{Loss: loss}}}, s)
	if err != nil {
		t.Fatal(err)
	}
	theta, src := make([]float64, m.Parameters()), rand.New(rand.NewPCG(7, 4))
	m.Initialise(theta, rand.NewPCG(1, 2))
	for i := range theta {
		theta[i] += 0.002 * src.NormFloat64()
	}
	return m, theta
}

// TestPapersNetworks: the papers' networks of pictures, in their own size, for which kernels
// and what their blocks compute are chosen that smaller ones do not meet; in parts, of which
// two are on the device at a time.
func TestPapersNetworks(t *testing.T) {
	cudatest.Use(t)
	for name, shape := range map[string]data.Shape{
		"mnist":       {Height: 28, Width: 28, Classes: 10},
		"autoencoder": {Height: 28, Width: 28, Reconstruct: true},
		"femnist":     {Height: 28, Width: 28, Classes: 62},
	} {
		t.Run(name, func(t *testing.T) {
			m, theta := named(t, name, shape)
			c := client(shape, 12, rand.New(rand.NewPCG(3, 4)))
			ours, theirs := learner(t, model.On(m, open(t, m, 2))), learner(t, m)
			rows := near(t, theirs, theta, c, []int{1, 2, 5, 7, 11})
			got, want := make([]float64, len(theta)), make([]float64, len(theta))
			norms := rowNorms(t, theirs, theta, c, rows)
			for _, step := range []model.Step{{Clip: norms[len(norms)/2], Divisor: 5}, {}} {
				if err := ours.Gradient(got, theta, c, rows, &step); err != nil {
					t.Fatal(err)
				}
				if err := theirs.Gradient(want, theta, c, rows, &step); err != nil {
					t.Fatal(err)
				}
				for _, l := range model.Layers(m) {
					if off := apart(got[l.From:l.To], want[l.From:l.To]); !(off < 5e-6) {
						t.Errorf("clip %v, %s: off by %.2g", step.Clip, l.Name, off)
					}
				}
			}
		})
	}
}

// TestStreamsDoNotMeet: what runs at the same time may run in any order. Emulated, kernels of one of two
// streams run at once, those of the other, too, or as late as they may.
func TestStreamsDoNotMeet(t *testing.T) {
	cudatest.Use(t)
	for name, n := range networks {
		t.Run(name, func(t *testing.T) {
			m, theta := build(t, n.shape, n.loss, n.layers)
			c := client(n.shape, 12, rand.New(rand.NewPCG(3, 4)))
			var before []float64
			for _, order := range []string{"forward", "backward", "ahead", "late"} {
				t.Setenv("COTERIE_EMU_ORDER", order)
				l := learner(t, model.On(m, open(t, m, 4)))
				for range 3 { // one by one, recorded, and as they were recorded
					got := make([]float64, len(theta))
					if err := l.Gradient(got, theta, c, []int{1, 2, 3, 5, 7, 8}, &model.Step{Clip: 0.5, Divisor: 6}); err != nil {
						t.Fatal(err)
					}
					if before != nil && !slices.Equal(before, got) {
						t.Errorf("%s: other bits", order)
					}
					before = got
				}
			}
		})
	}
}

// TestLittleSharedMemory: a device whose blocks have less shared memory than some kernels want
// computes the same by others.
func TestLittleSharedMemory(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a device has what it has")
	}
	n := networks["a pool between convolutions that one kernel takes back"]
	n.shape.Height, n.shape.Width = 24, 24
	m, theta := build(t, n.shape, n.loss, n.layers)
	c := client(n.shape, 12, rand.New(rand.NewPCG(3, 4)))
	var before []float64
	for _, shared := range []string{"232448", "65536", "0"} {
		t.Setenv("COTERIE_EMU_SHARED", shared)
		got := make([]float64, len(theta))
		if err := learner(t, model.On(m, open(t, m, 4))).Gradient(got, theta, c, []int{1, 2, 3}, &model.Step{Clip: 0.5, Divisor: 3}); err != nil {
			t.Fatal(err)
		}
		if before != nil && !(apart(got, before) < 2e-6) {
			t.Errorf("%s bytes: off by %.2g", shared, apart(got, before))
		}
		if shared == "0" && slices.Equal(before, got) {
			t.Error("no other kernels, of which nothing is tested then")
		}
		if before == nil {
			before = got
		}
	}
}
