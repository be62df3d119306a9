package audit

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v within %v", what, got, want, tolerance)
	}
}

func TestPSNR(t *testing.T) {
	a := make([]float64, 784)
	b := make([]float64, 784)
	for i := range b {
		b[i] = 0.1 // mean squared error 0.01: 20 dB
	}
	got, err := PSNR(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "PSNR", got, 20, 1e-12)
	b = make([]float64, 784)
	b[3] = 1 // 1/784
	got, _ = PSNR(a, b)
	near(t, "PSNR of one wrong pixel", got, 10*math.Log10(784), 1e-12)
	if got, _ = PSNR(a, a); got != MaxPSNR {
		t.Errorf("PSNR of a copy is %v", got)
	}
	for _, bad := range [][]float64{nil, {1}, append(make([]float64, 783), math.NaN())} {
		if _, err := PSNR(a, bad); err == nil {
			t.Errorf("a picture of %d values is accepted", len(bad))
		}
	}
}

// TestSSIM holds the index against cases that can be worked out by hand from
// equation 13 of Wang et al. 2004.
func TestSSIM(t *testing.T) {
	const side = 28
	flat := func(v float64) []float64 {
		p := make([]float64, side*side)
		for i := range p {
			p[i] = v
		}
		return p
	}
	ssim := func(a, b []float64) float64 {
		t.Helper()
		got, err := SSIM(a, b, side, side)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	// Flat pictures have no variance: the luminance term alone is left.
	near(t, "SSIM of 0.2 and 0.6", ssim(flat(0.2), flat(0.6)), (2*0.2*0.6+1e-4)/(0.04+0.36+1e-4), 1e-9)
	near(t, "SSIM of black and white", ssim(flat(0), flat(1)), 1e-4/(1+1e-4), 1e-9)

	// A chequerboard and its negative: equal variance v, covariance -v. The
	// alternating sum of the window decides both means: 1/2 plus or minus s/2.
	board, negative := flat(0), flat(0)
	for i := range side {
		for j := range side {
			board[i*side+j] = float64((i + j) % 2)
			negative[i*side+j] = 1 - board[i*side+j]
		}
	}
	near(t, "SSIM of a picture with itself", ssim(board, board), 1, 1e-12)
	var alternating float64
	for i, w := range gaussianWindow() {
		alternating += w * math.Pow(-1, float64(i))
	}
	s := alternating * alternating
	ma, mb := (1+s)/2, (1-s)/2
	v := ma - ma*ma
	want := (2*ma*mb + 1e-4) * (-2*v + 9e-4) / ((ma*ma + mb*mb + 1e-4) * (2*v + 9e-4))
	near(t, "SSIM of a chequerboard and its negative", ssim(board, negative), want, 1e-9)

	for _, bad := range [][2]int{{28, 27}, {10, 10}, {0, 0}, {-28, -28}} {
		if _, err := SSIM(board, board, bad[0], bad[1]); err == nil {
			t.Errorf("a shape of %v is accepted", bad)
		}
	}
}

// TestSSIMHasItsProperties: symmetric, at most 1, 1 for copies only.
func TestSSIMHasItsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Float64Range(0, 1), 144, 144).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Float64Range(0, 1), 144, 144).Draw(t, "b")
		ab, err := SSIM(a, b, 12, 12)
		if err != nil {
			t.Fatal(err)
		}
		ba, _ := SSIM(b, a, 12, 12)
		if math.Abs(ab-ba) > 1e-12 || ab > 1+1e-12 || ab < -1-1e-12 {
			t.Fatalf("SSIM %v one way, %v the other", ab, ba)
		}
	})
}

func TestJudgeClips(t *testing.T) {
	original := make([]float64, 784)
	wild := make([]float64, 784)
	for i := range wild {
		wild[i] = -50 // clipped, it is the original
	}
	q, err := Judge(original, wild, 28, 28)
	if err != nil {
		t.Fatal(err)
	}
	if q.PSNR != MaxPSNR || !q.Success() {
		t.Errorf("%+v", q)
	}
	wild[0] = math.NaN()
	if got := Bytes(wild)[0]; got != 0 {
		t.Errorf("what is not a number is drawn as %d", got)
	}
}
