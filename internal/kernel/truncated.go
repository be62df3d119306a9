package kernel

import "math"

// Sums of whole numbers: values are rounded toward zero before they are added, each by
// itself. Sums are float64 and exact as long as they stay below 2^53, so that they do not
// depend on the order of additions.

// AddTruncated adds factor*x, rounded toward zero, to y.
func AddTruncated[F Float](factor float64, x []F, y []float64) {
	checkLength("AddTruncated", len(y), len(x))
	for len(x) > chunk {
		addTruncated(factor, x[:chunk], y[:chunk])
		x, y = x[chunk:], y[chunk:]
	}
	addTruncated(factor, x, y)
}

// AddTruncatedProducts adds x[k][i]*d[k][j], rounded toward zero, to acc[i][j], for every
// row k of x and d, which are as long as acc is high and wide.
func AddTruncatedProducts[F Float](acc []float64, x []F, d []float64, rows int) {
	if rows == 0 {
		return
	}
	checkRows("AddTruncatedProducts", len(x), len(x)/rows)
	high, wide := len(x)/rows, len(d)/rows
	checkLength("AddTruncatedProducts", len(x), rows*high)
	checkLength("AddTruncatedProducts", len(d), rows*wide)
	checkLength("AddTruncatedProducts", len(acc), high*wide)
	for from := 0; from < rows && high > 0 && wide > 0; from += truncatedRows {
		to := min(from+truncatedRows, rows)
		addTruncatedProducts(acc, x[from*high:to*high], d[from*wide:to*wide], to-from)
	}
}

// truncatedRows is how many rows are taken at a time: as many columns of d as a call takes
// stay in the first-level cache.
const truncatedRows = 64

func addTruncatedTwin[F Float](factor float64, x []F, y []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += math.Trunc(factor * float64(v))
	}
}

func addTruncatedProductsTwin[F Float](acc []float64, x []F, d []float64, rows int) {
	high, wide := len(x)/rows, len(d)/rows
	for k := range rows {
		for i, v := range x[k*high : (k+1)*high] {
			addTruncatedTwin(float64(v), d[k*wide:(k+1)*wide], acc[i*wide:(i+1)*wide])
		}
	}
}
