package audit

import (
	"fmt"
	"math"
)

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
