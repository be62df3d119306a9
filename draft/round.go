package draft

import "math"

// friendly is a range of round numbers around another one. One that begins close to 0
// begins there.
func friendly(low, high float64) []float64 {
	wide := high - low
	if !(wide > 0) { // the same number, or too close to tell
		low, high, wide = low-0.5, high+0.5, 1
	}
	if low > 0 && low <= wide/4 {
		low = 0
	}
	if high < 0 && -high <= wide/4 {
		high = 0
	}
	// The step is 1, 2 or 5 times a power of ten, and the range five to twenty of them.
	power := int(math.Floor(math.Log10(wide / 5)))
	digit := 1.0
	for _, d := range []float64{2, 5, 10} {
		if d*pow10(1, power) <= wide/5 {
			digit = d
		}
	}
	step := pow10(digit, power)
	return []float64{pow10(digit*math.Floor(low/step+1e-9), power), pow10(digit*math.Ceil(high/step-1e-9), power)}
}

// pow10 is v times a power of ten, so that 3 tenths are 0.3.
func pow10(v float64, power int) float64 {
	if power < 0 {
		return v / math.Pow10(-power)
	}
	return v * math.Pow10(power)
}

// roundDown is the largest number that is not above n and whose second digit is 0 or 5,
// with nothing after it.
func roundDown(n int) int {
	if n < 10 {
		return max(1, n)
	}
	step := 5 * int(math.Pow10(int(math.Log10(float64(n)))-1))
	return n / step * step
}
