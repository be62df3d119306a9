package kernel

import "math"

// The twins of the functions round package math's float64 results.

func reluTwin[F Float](dst, x []F) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v <= 0 {
			v = 0
		}
		dst[i] = v
	}
}

func reluGradTwin[F Float](dst, x, dy []F) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i := range dst {
		if x[i] > 0 {
			dst[i] = dy[i]
		} else {
			dst[i] = 0
		}
	}
}

func leakyReluTwin[F Float](dst []F, slope F, x []F) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v > 0 {
			dst[i] = v
		} else {
			dst[i] = slope * v
		}
	}
}

func leakyReluGradTwin[F Float](dst []F, slope F, x, dy []F) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i := range dst {
		if x[i] > 0 {
			dst[i] = dy[i]
		} else {
			dst[i] = slope * dy[i]
		}
	}
}

func sigmoidGradTwin[F Float](dst, y, dy []F) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] * (v * (1 - v))
	}
}

func tanhGradTwin[F Float](dst, y, dy []F) {
	y, dy = y[:len(dst)], dy[:len(dst)]
	for i, v := range y {
		dst[i] = dy[i] * (1 - v*v)
	}
}

// expOf is math.Exp, whose amd64 form overflows from 709.44 instead of 709.78.
func expOf(v float64) float64 {
	if v > 709 {
		const low = 1.4456468917292502e-16 // e - float64(e)
		e := math.Exp(v - 1)
		return math.FMA(e, low, e*math.E)
	}
	return math.Exp(v)
}

// logOf is math.Log, whose amd64 form is wrong for subnormal numbers.
func logOf(v float64) float64 {
	if v > 0 && v < 0x1p-1022 {
		return math.Log(v*0x1p54) - 54*math.Ln2
	}
	return math.Log(v)
}

func expTwin[F Float](dst, x []F) {
	for i, v := range x {
		dst[i] = F(expOf(float64(v)))
	}
}

func expMinusTwin[F Float](dst []F, shift F, x []F) {
	for i, v := range x {
		dst[i] = F(math.Exp(float64(v - shift)))
	}
}

func logTwin[F Float](dst, x []F) {
	for i, v := range x {
		dst[i] = F(logOf(float64(v)))
	}
}

func tanhTwin[F Float](dst, x []F) {
	for i, v := range x {
		dst[i] = F(math.Tanh(float64(v)))
	}
}

// sigmoidParts are t = exp(-|v|) and sigmoid(v), which keeps its precision
// where it is tiny.
func sigmoidParts(v float64) (t, s float64) {
	t = math.Exp(-math.Abs(v))
	if v < 0 {
		return t, t / (1 + t)
	}
	return t, 1 / (1 + t)
}

func sigmoidTwin[F Float](dst, x []F) {
	for i, v := range x {
		_, s := sigmoidParts(float64(v))
		dst[i] = F(s)
	}
}

const (
	geluCubic = 0.044715
	geluBound = 30 // beyond it gelu is 0 or x, and its derivative 0 or 1
)

var geluScale = 2 * math.Sqrt(2/math.Pi)

func geluTwin[F Float](dst, x []F) {
	for i, v := range x {
		f := max(float64(v), -geluBound)
		_, s := sigmoidParts(f * (geluScale + geluScale*geluCubic*f*f))
		dst[i] = F(f * s)
	}
}

func geluGradTwin[F Float](dst, x, dy []F) {
	x, dy = x[:len(dst)], dy[:len(dst)]
	for i, v := range x {
		f := min(max(float64(v), -geluBound), geluBound)
		t, s := sigmoidParts(f * (geluScale + geluScale*geluCubic*f*f))
		slope := geluScale + 3*geluScale*geluCubic*f*f
		dst[i] = dy[i] * F(s+f*slope*t/((1+t)*(1+t)))
	}
}
