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

func expTwin[F Float](dst, x []F) {
	for i, v := range x {
		if e := float64(v); e > 709 { // near its end package math overflows too early on some machines
			dst[i] = F(math.Exp(e-1) * math.E)
		} else {
			dst[i] = F(math.Exp(e))
		}
	}
}

func tanhTwin[F Float](dst, x []F) {
	for i, v := range x {
		dst[i] = F(math.Tanh(float64(v)))
	}
}

func sigmoidTwin[F Float](dst, x []F) {
	for i, v := range x {
		t := math.Exp(-math.Abs(float64(v)))
		s := 1 / (1 + t)
		if v < 0 { // which keeps its precision where it is tiny
			s = t / (1 + t)
		}
		dst[i] = F(s)
	}
}
