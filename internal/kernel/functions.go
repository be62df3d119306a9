package kernel

import (
	"math"
	"slices"
)

// The assembly's errors, measured over the whole range of arguments by the
// tests, which hold them to these bounds. One unit is the spacing of numbers at
// the result (ulp), for float32 and float64 alike; subnormal results are counted
// in the smallest spacing.
//
//	Exp          2
//	Log          2
//	Tanh         4
//	Sigmoid      3
//	Gelu         8 + 4|v|    v = 2u, the argument of its sigmoid
//	SoftmaxRows  6 + |x-m|   m = the row's largest input
//
// The twin rounds package math's float64 results and stays within them, but for
// Exp in float64: 3 ulp, because math.Exp is that far off on amd64.

// functionChunk is chunk for kernels that take about a nanosecond a value.
const functionChunk = 1024

// Exp writes exp(x) to dst: 0 and +Inf at the ends, NaN for NaN.
func Exp[F Float](dst, x []F) {
	checkLength("Exp", len(dst), len(x))
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		exp(dst[lo:hi], x[lo:hi])
	}
}

// Log writes the natural logarithm of x to dst: -Inf at 0, NaN below 0.
func Log[F Float](dst, x []F) {
	checkLength("Log", len(dst), len(x))
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		log(dst[lo:hi], x[lo:hi])
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

// Gelu writes the Gaussian error linear unit in its tanh form to dst:
// x*(1+tanh(u))/2, u = sqrt(2/pi)*(x + 0.044715*x^3) (Hendrycks and Gimpel
// 2016, section 2). At -Inf it is 0.
func Gelu[F Float](dst, x []F) {
	checkLength("Gelu", len(dst), len(x))
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		gelu(dst[lo:hi], x[lo:hi])
	}
}

// SoftmaxRows writes exp(x-m)/sum(exp(x-m)) for every row of cols values, m
// being the row's maximum. A row that holds NaN or +Inf, or nothing but -Inf,
// becomes NaN.
func SoftmaxRows[F Float](dst, x []F, cols int) {
	checkLength("SoftmaxRows", len(dst), len(x))
	checkRows("SoftmaxRows", len(x), cols)
	for lo := 0; lo < len(x); lo += cols {
		to, row := dst[lo:lo+cols], x[lo:lo+cols]
		m := Max(row)
		for at := 0; at < cols; at += functionChunk {
			end := min(at+functionChunk, cols)
			expMinus(to[at:end], m, row[at:end])
		}
		Scale(to, F(1/Sum(to)), to)
	}
}

// LogSumExp is log(sum(exp(x))), taken so that it does not overflow; scratch
// has the length of x and is overwritten. Of nothing it is -Inf.
func LogSumExp[F Float](x, scratch []F) float64 {
	checkLength("LogSumExp", len(scratch), len(x))
	m := Max(x)
	if math.IsInf(float64(m), 0) {
		if slices.ContainsFunc(x, func(v F) bool { return v != v }) {
			return math.NaN()
		}
		return float64(m)
	}
	for lo := 0; lo < len(x); lo += functionChunk {
		hi := min(lo+functionChunk, len(x))
		expMinus(scratch[lo:hi], m, x[lo:hi])
	}
	return float64(m) + math.Log(Sum(scratch))
}
