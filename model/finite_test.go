package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// TestNotFiniteGradientsCountAsZero: a row or picture whose gradient overflows leaves
// the sum as if it were not there, in floats and in integers; the others stay.
func TestNotFiniteGradientsCountAsZero(t *testing.T) {
	check := func(name string, l Learner, theta []float64, c *data.Client, all, others []int, shift []float64) {
		t.Helper()
		n := len(theta)
		with, without := make([]float64, n), make([]float64, n)
		for kind, step := range map[string]Step{
			"floats":              {Clip: 0.5, Divisor: 3, Shift: shift},
			"integers one by one": {Paid: paidSteps(t, 0.5, 1e-9, mech.Randomness{Exact: mech.SystemEntropy()}), Divisor: 3, Shift: shift},
			"integers":            {Paid: paidSteps(t, 0.5, 1e-7, mech.Randomness{Exact: mech.SystemEntropy()}), Divisor: 3, Shift: shift},
		} {
			if err := l.Gradient(with, theta, c, all, begin(t, step)); err != nil {
				t.Fatalf("%s, %s: %v", name, kind, err)
			}
			if err := l.Gradient(without, theta, c, others, begin(t, step)); err != nil {
				t.Fatal(err)
			}
			moved := 0.0
			for j := range with {
				if !(math.Abs(with[j]-without[j]) <= 1e-6) {
					t.Fatalf("%s, %s, shift %v: coordinate %d is %v with the example and %v without", name, kind, shift != nil, j, with[j], without[j])
				}
				moved += math.Abs(without[j])
			}
			if len(others) > 0 && moved == 0 {
				t.Errorf("%s, %s: the others are gone, too", name, kind)
			}
		}
	}
	m := Linear{Features: 3, Intercept: true, Loss: HalfSquaredError}
	c := rowsFor(HalfSquaredError, 3, 4)
	c.X[3*2] = 1e160 // row 2: its output times itself overflows
	shift := []float64{0.1, -0.2, 0.3, 0}
	for _, s := range [][]float64{nil, shift} {
		check("rows", learnerOf(t, m), []float64{1e150, 0.5, 1, 0}, c, []int{0, 2, 3}, []int{0, 3}, s)
	}
	net, pictures := smallPictures(t, 3, 6)
	theta := make([]float64, net.Parameters())
	net.Initialise(theta, stream("start"))
	for i := range 4 * 3 * 3 * 2 {
		theta[i] = 1e38 // the convolution's weights: over bright pixels their sum is beyond single precision
	}
	clear(pictures.Images.Pixels)
	size := len(pictures.Images.Pixels) / 6
	bright := pictures.Images.Pixels[pictures.Index[2]*size:][:size]
	for j := range bright {
		bright[j] = 255
	}
	l := learnerOf(t, net)
	own := make([]float64, len(theta))
	if err := l.Gradient(own, theta, pictures, []int{2}, &Step{}); err != nil {
		t.Fatal(err)
	}
	if _, err := mech.Norm(own); err == nil {
		t.Fatal("the bright picture's gradient is finite: it shows nothing")
	}
	noShift := make([]float64, len(theta))
	for _, s := range [][]float64{nil, noShift} {
		check("pictures", l, theta, pictures, []int{0, 2, 3}, []int{0, 3}, s)
		check("one picture", l, theta, pictures, []int{2}, nil, s)
	}
}

// TestTinySlopesAreDropped: what would make the way back slow, and teaches nothing, is 0;
// what is small alone stays.
func TestTinySlopesAreDropped(t *testing.T) {
	e, theta := newEngine[float32](t, Shape{1, 1, 1}, []Layer{{Kind: "linear", Units: 2}}, crossEntropy[float32]{}, 1)
	gradient := make([]float32, len(theta))
	for gap, dropped := range map[float32]bool{70: true, 40: false} {
		clear(theta)
		theta[0] = gap
		if _, err := e.Gradient(gradient, theta, Examples[float32]{X: []float32{1}, Labels: []int{0}}, []int{0}); err != nil {
			t.Fatal(err)
		}
		if got := slices.Max(gradient) == 0 && slices.Min(gradient) == 0; got != dropped {
			t.Errorf("scores that differ by %v: gradient %v", gap, gradient)
		}
	}
}
