package kernel

// The assembly's errors, measured over the whole range of arguments by the
// tests, which hold them to these bounds. One unit is the spacing of numbers at
// the result (ulp), for float32 and float64 alike; subnormal results are counted
// in the smallest spacing.
//
//	Exp      2
//	Tanh     4
//	Sigmoid  3
//
// The twin rounds package math's float64 results and stays within them.

// functionChunk is chunk for kernels that take about a nanosecond a value.
const functionChunk = 1024

// Exp writes e to the power of x to dst.
func Exp[F Float](dst, x []F) {
	checkLength("Exp", len(dst), len(x))
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		exp(dst[lo:hi], x[lo:hi])
	}
}

// Tanh writes the hyperbolic tangent of x to dst.
func Tanh[F Float](dst, x []F) {
	checkLength("Tanh", len(dst), len(x))
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		tanh(dst[lo:hi], x[lo:hi])
	}
}

// Sigmoid writes 1/(1+exp(-x)) to dst.
func Sigmoid[F Float](dst, x []F) {
	checkLength("Sigmoid", len(dst), len(x))
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		sigmoid(dst[lo:hi], x[lo:hi])
	}
}
