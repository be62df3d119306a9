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
