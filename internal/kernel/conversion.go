package kernel

// conversionBlock is how many values the assembly converts at a time; the rest is left
// to Go, with the same results.
const conversionBlock = 16

// Narrow writes x in single precision to dst, rounded to the nearest.
func Narrow(dst []float32, x []float64) {
	checkLength("Narrow", len(dst), len(x))
	for len(x) > chunk {
		narrow(dst[:chunk], x[:chunk])
		dst, x = dst[chunk:], x[chunk:]
	}
	narrow(dst, x)
}

// AddSingle adds x to y.
func AddSingle(x []float32, y []float64) {
	checkLength("AddSingle", len(y), len(x))
	for len(x) > chunk {
		addSingle(x[:chunk], y[:chunk])
		x, y = x[chunk:], y[chunk:]
	}
	addSingle(x, y)
}

func narrowTwin(dst []float32, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(v)
	}
}

func addSingleTwin(x []float32, y []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float64(v)
	}
}
