//go:build linux

package cuda_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// openWhole readies a device for sums of whole numbers.
func openWhole(t *testing.T, m model.Model, chunk int) *cuda.Device {
	t.Helper()
	return openFor(t, m, model.Plan{Chunk: chunk, Whole: true})
}

// wholeOf is what rows add to a sum of whole numbers, clipped, on a lattice of steps.
func wholeOf(t *testing.T, d *cuda.Device, theta []float64, c *data.Client, rows []int, clip, step float64) []float64 {
	t.Helper()
	single := make([]float32, len(theta))
	for i, v := range theta {
		single[i] = float32(v)
	}
	there := rows
	if c.Images != nil {
		there = nil
		for _, row := range rows {
			there = append(there, c.Index[row])
		}
	}
	sum := make([]float64, len(theta))
	err := d.Whole(single, c, there, func(norms []float64, add func(sum, weights []float64) error) error {
		weights := make([]float64, len(norms))
		for i, norm := range norms {
			if !math.IsNaN(norm) && !math.IsInf(norm, 0) {
				weights[i] = min(1, clip/(norm*(1+0x1p-24))) / step
			}
		}
		return add(sum, weights)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func lengthOf(v []float64) float64 {
	var s float64
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s)
}

// TestWholeSums: what a row adds to a sum of whole numbers is the same to the last bit whatever rows
// are taken with it, how many a device takes at a time, and in whatever order kernels run; it is no
// longer than the clip, and the row's own gradient, clipped.
func TestWholeSums(t *testing.T) {
	cudatest.Use(t)
	type network struct {
		model model.Model
		theta []float64
		c     *data.Client
	}
	all := map[string]network{}
	for name, n := range networks {
		m, theta := build(t, n.shape, n.loss, n.layers)
		all[name] = network{m, theta, client(n.shape, 20, rand.New(rand.NewPCG(3, 4)))}
	}
	for name, n := range ended {
		m, theta := buildBy(t, n.shape, n.local, n.layers)
		all[name] = network{m, theta, examplesFor(n.shape, 20, rand.New(rand.NewPCG(3, 4)))}
	}
	for name, n := range parted {
		m, theta := build(t, n.shape, n.loss, n.layers)
		all[name] = network{m, theta, client(n.shape, 20, rand.New(rand.NewPCG(3, 4)))}
	}
	for name, n := range texts {
		if n.rows != nil && !cudatest.OnDevice() {
			continue // as below; TestRoomForTexts says that it goes another way
		}
		m, theta := buildText(t, n.shape, n.block)
		some := 20
		if len(theta) > 10000 {
			some = 3
		}
		all["text, "+name] = network{m, theta, written(n.shape, some, rand.New(rand.NewPCG(3, 4)))}
	}
	for name, s := range map[string]data.Shape{"mnist": {Height: 28, Width: 28, Classes: 10}, "femnist": {Height: 28, Width: 28, Classes: 62}} {
		if name != "mnist" && !cudatest.OnDevice() {
			continue // it takes the emulation long
		}
		m, theta := named(t, name, s)
		all[name] = network{m, theta, client(s, 3, rand.New(rand.NewPCG(3, 4)))}
	}
	for name, n := range all {
		for _, major := range majors(strings.HasPrefix(name, "sixteens") || strings.HasPrefix(name, "text")) {
			t.Run(name+", capability "+major, func(t *testing.T) {
				t.Setenv("COTERIE_EMU_MAJOR", major)
				wholeSums(t, n.model, n.theta, n.c)
			})
		}
	}
}

func wholeSums(t *testing.T, m model.Model, theta []float64, c *data.Client) {
	rows, smooth, orders := []int{3, 0, 19, 7, 4, 4, 16}, []int{0, 19}, []string{"forward", "backward"}
	if c.Len() < 20 { // large networks
		rows, smooth, orders = []int{2, 0, 1}, []int{2}, orders[:1]
	}
	d, l := openWhole(t, m, 0), learner(t, model.On(m, nil))
	norms := rowNorms(t, l, theta, c, rows)
	clip := norms[len(norms)/2]
	step := math.Ldexp(1, math.Ilogb(clip)-20)
	want := make([]float64, len(theta))
	for _, row := range rows {
		alone := wholeOf(t, d, theta, c, []int{row}, clip, step)
		for i, v := range alone {
			if v != math.Trunc(v) {
				t.Fatalf("row %d adds %v", row, v)
			}
			want[i] += v
		}
		if norm := lengthOf(alone) * step; norm > clip {
			t.Errorf("row %d adds %.9g, clipped to %.9g", row, norm, clip)
		}
		for i, v := range wholeOf(t, d, theta, c, []int{row}, clip, step*0x1p17) { // where rounding is most of it
			if v != math.Trunc(alone[i]*0x1p-17) {
				t.Fatalf("row %d, value %d: %v on a coarse lattice, %v on a fine one", row, i, v, alone[i])
			}
		}
	}
	checkShares(t, l, theta, c, near(t, l, theta, c, smooth), func(rows []int) []float64 { return wholeOf(t, d, theta, c, rows, clip, step) }, clip, step)
	if got := wholeOf(t, d, theta, c, nil, clip, step); lengthOf(got) != 0 {
		t.Error("no rows add something")
	}
	for _, order := range orders {
		t.Setenv("COTERIE_EMU_ORDER", order)
		for _, chunk := range []int{0, 2} {
			d := openWhole(t, m, chunk)
			for range 2 { // launched, and recorded
				if got := wholeOf(t, d, theta, c, rows, clip, step); !slices.Equal(got, want) {
					t.Fatalf("%s, %d at a time: the sum is not that of rows alone", order, chunk)
				}
			}
		}
	}
}

// checkShares compares what single rows add with their gradients, as the processor has them.
func checkShares(t *testing.T, l model.Learner, theta []float64, c *data.Client, rows []int, whole func(rows []int) []float64, clip, step float64) {
	t.Helper()
	g, got := make([]float64, len(theta)), make([]float64, len(theta))
	for _, row := range rows {
		if err := l.Gradient(g, theta, c, []int{row}, &model.Step{}); err != nil {
			t.Fatal(err)
		}
		factor := min(1, clip/lengthOf(g))
		for i, v := range whole([]int{row}) {
			g[i], got[i] = g[i]*factor, v*step
		}
		if off := apart(got, g); !(off < 2e-5+step*math.Sqrt(float64(len(g)))/lengthOf(g)) {
			t.Errorf("row %d: off by %.2g", row, off)
		}
	}
}

// TestWholeRowsAreLeftOut: rows of weight 0 add nothing, finite or not, and one batch's numbers are not
// in the next.
func TestWholeRowsAreLeftOut(t *testing.T) {
	cudatest.Use(t)
	for _, name := range []string{"rows of classes, with a head", "rows whose ways part"} {
		n := ended[name]
		m, theta := buildBy(t, n.shape, n.local, n.layers)
		c := examplesFor(n.shape, 6, rand.New(rand.NewPCG(3, 4)))
		d := openWhole(t, m, 0)
		want := wholeOf(t, d, theta, c, []int{0, 1, 2, 4, 5}, 0.1, 0x1p-24)
		for _, v := range []float64{math.NaN(), math.Inf(-1), 1e300} {
			c.X[3*n.shape.Features+1] = v
			if got := wholeOf(t, d, theta, c, []int{0, 1, 2, 3, 4, 5}, 0.1, 0x1p-24); !slices.Equal(got, want) {
				t.Errorf("%s, %v: the row is not left out", name, v)
			}
		}
	}
}

// exactSteps are paid, with exact noise that follows from a seed; one has begun.
func exactSteps(t *testing.T, rule mech.StepRule) *mech.Steps {
	s := paidWith(t, rule, func(family rng.Family) mech.Randomness {
		return mech.Randomness{Exact: mech.NewEntropy(family.Stream(0, 1))}
	})
	if err := s.Blank(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExactStepsOnADevice: what a learner releases with exact noise on a device is the processor's sum, and the
// same as on the processor but for rounding, under every clip rule.
func TestExactStepsOnADevice(t *testing.T) {
	cudatest.Use(t)
	n, text := networks["convolutions, a pool, linear layers"], texts["one of odd sizes"]
	m, theta := build(t, n.shape, n.loss, n.layers)
	exactOnADevice(t, m, theta, client(n.shape, 30, rand.New(rand.NewPCG(3, 4))))
	m, theta = buildText(t, text.shape, text.block)
	exactOnADevice(t, m, theta, written(text.shape, 30, rand.New(rand.NewPCG(3, 4))))
}

func exactOnADevice(t *testing.T, m model.Model, theta []float64, c *data.Client) {
	d := openWhole(t, m, 4)
	l := learner(t, m)
	rows := near(t, l, theta, c, rand.New(rand.NewPCG(5, 5)).Perm(30)[:19])
	norms := rowNorms(t, l, theta, c, rows)
	clip := (norms[len(norms)/2] + norms[len(norms)/2+1]) / 2 // no row's own
	for name, rule := range map[string]mech.ClipRule{
		"fixed": {}, "quantile": {Signal: mech.SignalCount, GradientNoise: 1.01, Quantile: 0.5}, "online": {Signal: mech.SignalDirections, GradientNoise: 1.01},
	} {
		var released [2][]float64
		var after [2]mech.ClipState
		for i, on := range []model.Model{m, model.On(m, d)} {
			steps := exactSteps(t, mech.StepRule{Clip: clip, Noise: 1e-6, Clipping: rule, Sampling: event.Poisson, Rate: 1})
			released[i] = make([]float64, len(theta))
			step := model.Step{Paid: steps, Divisor: 1}
			if err := learner(t, on).Gradient(released[i], theta, c, rows, &step); err != nil {
				t.Fatal(err)
			}
			steps.Save(&after[i])
		}
		if off := apart(released[1], released[0]); !(off < 2e-5) || off == 0 {
			t.Errorf("%s: off by %.2g", name, off)
		}
		if math.Abs(after[1].Clip/after[0].Clip-1) > 1e-6 {
			t.Errorf("%s: the clip goes to %v, and to %v on the device", name, after[0].Clip, after[1].Clip)
		}
		for i, v := range after[0].Direction {
			if math.Abs(float64(after[1].Direction[i]-v)) > 1e-4 {
				t.Errorf("%s: direction %d is %v, and %v on the device", name, i, v, after[1].Direction[i])
				break
			}
		}
	}
	if err := learner(t, model.On(m, d)).Gradient(make([]float64, len(theta)), theta, c, rows, &model.Step{Clip: clip, Divisor: 1}); err == nil || !strings.Contains(err.Error(), "opened for sums of whole numbers") {
		t.Errorf("a clipped sum of floats: %v", err)
	}
	steps := exactSteps(t, mech.StepRule{Clip: clip, Noise: 1e-9, Sampling: event.Poisson, Rate: 1})
	err := learner(t, model.On(m, d)).Gradient(make([]float64, len(theta)), theta, c, rows, &model.Step{Paid: steps, Divisor: 1})
	if err == nil || !strings.Contains(err.Error(), "set run.device cpu") {
		t.Errorf("a lattice that is too fine: %v", err)
	}
}
