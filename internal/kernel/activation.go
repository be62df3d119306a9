package kernel

// Relu writes max(x, 0) to dst; NaN stays NaN.
func Relu[F Float](dst, x []F) {
	checkLength("Relu", len(dst), len(x))
	for lo := 0; lo < len(x); lo += chunk {
		hi := min(lo+chunk, len(x))
		relu(dst[lo:hi], x[lo:hi])
	}
}

// ReluGrad writes dy where x > 0 and 0 elsewhere; x may be Relu's input or its
// output.
func ReluGrad[F Float](dst, x, dy []F) {
	checkLength("ReluGrad", len(x), len(dst))
	checkLength("ReluGrad", len(dy), len(dst))
	for lo := 0; lo < len(dst); lo += chunk {
		hi := min(lo+chunk, len(dst))
		reluGrad(dst[lo:hi], x[lo:hi], dy[lo:hi])
	}
}

// LeakyRelu writes x where x > 0 and slope*x elsewhere.
func LeakyRelu[F Float](dst []F, slope F, x []F) {
	checkLength("LeakyRelu", len(dst), len(x))
	for lo := 0; lo < len(x); lo += chunk {
		hi := min(lo+chunk, len(x))
		leakyRelu(dst[lo:hi], slope, x[lo:hi])
	}
}

// LeakyReluGrad writes dy where x > 0 and slope*dy elsewhere; x may be
// LeakyRelu's input, or its output if slope is positive.
func LeakyReluGrad[F Float](dst []F, slope F, x, dy []F) {
	checkLength("LeakyReluGrad", len(x), len(dst))
	checkLength("LeakyReluGrad", len(dy), len(dst))
	for lo := 0; lo < len(dst); lo += chunk {
		hi := min(lo+chunk, len(dst))
		leakyReluGrad(dst[lo:hi], slope, x[lo:hi], dy[lo:hi])
	}
}

// SigmoidGrad writes dy*y*(1-y), y being Sigmoid's output.
func SigmoidGrad[F Float](dst, y, dy []F) {
	checkLength("SigmoidGrad", len(y), len(dst))
	checkLength("SigmoidGrad", len(dy), len(dst))
	for lo := 0; lo < len(dst); lo += chunk {
		hi := min(lo+chunk, len(dst))
		sigmoidGrad(dst[lo:hi], y[lo:hi], dy[lo:hi])
	}
}

// TanhGrad writes dy*(1-y*y), y being Tanh's output.
func TanhGrad[F Float](dst, y, dy []F) {
	checkLength("TanhGrad", len(y), len(dst))
	checkLength("TanhGrad", len(dy), len(dst))
	for lo := 0; lo < len(dst); lo += chunk {
		hi := min(lo+chunk, len(dst))
		tanhGrad(dst[lo:hi], y[lo:hi], dy[lo:hi])
	}
}
