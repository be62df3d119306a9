package audit

import (
	"fmt"
	"math"
)

// MaxPSNR stands for a perfect copy, whose ratio is infinite: medians and charts
// need a number.
const MaxPSNR = 100

// PSNR is the peak signal-to-noise ratio in decibels of pictures with values from
// 0 to 1: -10 log10 of the mean squared error, at most MaxPSNR.
func PSNR(a, b []float64) (float64, error) {
	if len(a) != len(b) || len(a) == 0 {
		return 0, fmt.Errorf("psnr: pictures of %d and %d values", len(a), len(b))
	}
	var sum float64
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	if math.IsNaN(sum) {
		return 0, fmt.Errorf("psnr: a value is not a number")
	}
	return min(MaxPSNR, -10*math.Log10(sum/float64(len(a)))), nil
}

// The window and constants of Wang, Bovik, Sheikh and Simoncelli 2004 for values
// from 0 to 1.
const (
	ssimSide  = 11
	ssimSigma = 1.5
	ssimC1    = 0.01 * 0.01
	ssimC2    = 0.03 * 0.03
)

// SSIM is the mean structural similarity (Wang et al. 2004) of two pictures with
// values from 0 to 1, over all places where the 11x11 Gaussian window fits: 1 for
// equal pictures, about 0 for unrelated ones.
func SSIM(a, b []float64, height, width int) (float64, error) {
	if height < ssimSide || width < ssimSide || len(a) != height*width || len(b) != len(a) {
		return 0, fmt.Errorf("ssim: pictures of %d and %d values for %dx%d; allowed: equal, at least %dx%d", len(a), len(b), height, width, ssimSide, ssimSide)
	}
	window := gaussianWindow()
	var total float64
	for top := 0; top+ssimSide <= height; top++ {
		for left := 0; left+ssimSide <= width; left++ {
			var ma, mb, aa, bb, ab float64
			for i, wi := range window {
				for j, wj := range window {
					k, w := (top+i)*width+left+j, wi*wj
					ma += w * a[k]
					mb += w * b[k]
					aa += w * a[k] * a[k]
					bb += w * b[k] * b[k]
					ab += w * a[k] * b[k]
				}
			}
			total += (2*ma*mb + ssimC1) * (2*(ab-ma*mb) + ssimC2) /
				((ma*ma + mb*mb + ssimC1) * (aa - ma*ma + bb - mb*mb + ssimC2))
		}
	}
	places := (height - ssimSide + 1) * (width - ssimSide + 1)
	if math.IsNaN(total) {
		return 0, fmt.Errorf("ssim: a value is not a number")
	}
	return total / float64(places), nil
}

// gaussianWindow is one side of the separable window, adding up to 1.
func gaussianWindow() [ssimSide]float64 {
	var w [ssimSide]float64
	var sum float64
	for i := range w {
		x := float64(i - ssimSide/2)
		w[i] = math.Exp(-x * x / (2 * ssimSigma * ssimSigma))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// Cosine is the cosine of the angle between two vectors, 0 if either is 0.
func Cosine(a, b []float64) float64 {
	var ab float64
	for i := range min(len(a), len(b)) {
		ab += a[i] * b[i]
	}
	if n := squared(a) * squared(b); n > 0 {
		return ab / math.Sqrt(n)
	}
	return 0
}

// SuccessPSNR is the ratio above which a picture counts as recovered, in decibels.
const SuccessPSNR = 25

// ResemblesSSIM is the similarity from which on a picture counts as resembling the
// original: the mean picture of other writers has about 0.1.
const ResemblesSSIM = 0.3

// Quality says how near a recovered picture comes to the original.
type Quality struct{ PSNR, SSIM float64 }

// Success says that the picture counts as recovered.
func (q Quality) Success() bool { return q.PSNR > SuccessPSNR }

// Judge compares a recovered picture, clipped to the range from 0 to 1 as every
// attacker would, with the original.
func Judge(original, recovered []float64, height, width int) (Quality, error) {
	clipped := Clip(recovered)
	psnr, err := PSNR(original, clipped)
	if err != nil {
		return Quality{}, fmt.Errorf("audit: %w", err)
	}
	ssim, err := SSIM(original, clipped, height, width)
	if err != nil {
		return Quality{}, fmt.Errorf("audit: %w", err)
	}
	return Quality{psnr, ssim}, nil
}

// Clip is a picture with values from 0 to 1; what is not a number becomes 0.
func Clip(picture []float64) []float64 {
	out := make([]float64, len(picture))
	for i, v := range picture {
		if !math.IsNaN(v) {
			out[i] = min(max(v, 0), 1)
		}
	}
	return out
}

// Bytes is a picture as grey values, 0 black and 255 white.
func Bytes(picture []float64) []byte {
	out := make([]byte, len(picture))
	for i, v := range Clip(picture) {
		out[i] = byte(math.Round(255 * v))
	}
	return out
}
