package kernel

// Axpy adds alpha*x to y.
func Axpy[F Float](alpha F, x, y []F) {
	checkLength("Axpy", len(y), len(x))
	for len(x) > chunk {
		axpy(alpha, x[:chunk], y[:chunk])
		x, y = x[chunk:], y[chunk:]
	}
	axpy(alpha, x, y)
}

// Scale writes alpha*x to dst.
func Scale[F Float](dst []F, alpha F, x []F) {
	checkLength("Scale", len(dst), len(x))
	for len(x) > chunk {
		scale(dst[:chunk], alpha, x[:chunk])
		dst, x = dst[chunk:], x[chunk:]
	}
	scale(dst, alpha, x)
}

// Sub writes x-y to dst.
func Sub[F Float](dst, x, y []F) {
	checkLength("Sub", len(x), len(dst))
	checkLength("Sub", len(y), len(dst))
	for lo := 0; lo < len(dst); lo += chunk {
		hi := min(lo+chunk, len(dst))
		sub(dst[lo:hi], x[lo:hi], y[lo:hi])
	}
}

// Maximum writes the larger of x and y to dst, and NaN where either is NaN.
func Maximum[F Float](dst, x, y []F) {
	checkLength("Maximum", len(x), len(dst))
	checkLength("Maximum", len(y), len(dst))
	for lo := 0; lo < len(dst); lo += chunk {
		hi := min(lo+chunk, len(dst))
		maximum(dst[lo:hi], x[lo:hi], y[lo:hi])
	}
}

// Dot is the sum of x*y. Like all sums here it is taken in float64, whatever
// the values are: a float32 product is exact in it.
func Dot[F Float](x, y []F) float64 {
	checkLength("Dot", len(y), len(x))
	var total float64
	for len(x) > chunk {
		total += dot(x[:chunk], y[:chunk])
		x, y = x[chunk:], y[chunk:]
	}
	return total + dot(x, y)
}

// SquaredNorm is the sum of x*x, taken in float64: finite for every finite
// float32 vector, NaN or +Inf if x holds NaN or an infinity.
func SquaredNorm[F Float](x []F) float64 {
	var total float64
	for len(x) > chunk {
		total += squaredNorm(x[:chunk])
		x = x[chunk:]
	}
	return total + squaredNorm(x)
}

// SquaredDistance is the sum of (x-y)*(x-y), taken in float64.
func SquaredDistance[F Float](x, y []F) float64 {
	checkLength("SquaredDistance", len(y), len(x))
	var total float64
	for len(x) > chunk {
		total += squaredDistance(x[:chunk], y[:chunk])
		x, y = x[chunk:], y[chunk:]
	}
	return total + squaredDistance(x, y)
}
