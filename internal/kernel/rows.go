package kernel

import "fmt"

// checkRows panics unless a slice is made of whole rows.
func checkRows(function string, length, cols int) {
	if cols < 0 || (cols == 0 && length > 0) || (cols > 0 && length%cols != 0) {
		panic(fmt.Sprintf("kernel: %s: %d values are not rows of %d", function, length, cols))
	}
}

// rowChunk is the number of rows that one call into assembly works on.
const rowChunk = 512

// AddToRows adds bias to every row of x; rows are as long as bias.
func AddToRows[F Float](x, bias []F) {
	cols := len(bias)
	checkRows("AddToRows", len(x), cols)
	for lo := 0; lo < len(x); lo += rowChunk * cols {
		addToRows(x[lo:min(lo+rowChunk*cols, len(x))], bias)
	}
}

// AddToRowsRelu adds bias to every row of x, then takes max(x, 0); NaN stays
// NaN.
func AddToRowsRelu[F Float](x, bias []F) {
	cols := len(bias)
	checkRows("AddToRowsRelu", len(x), cols)
	for lo := 0; lo < len(x); lo += rowChunk * cols {
		addToRowsRelu(x[lo:min(lo+rowChunk*cols, len(x))], bias)
	}
}

// SumRows adds the sum of all rows of x to dst; rows are as long as dst. It is
// the gradient of a bias.
func SumRows[F Float](dst, x []F) {
	cols := len(dst)
	checkRows("SumRows", len(x), cols)
	for lo := 0; lo < len(x); lo += rowChunk * cols {
		sumRows(dst, x[lo:min(lo+rowChunk*cols, len(x))])
	}
}

// SumProducts adds the sum of all rows of x*y, element by element, to dst; rows are
// as long as dst. It is the gradient of factors that all rows share.
func SumProducts[F Float](dst, x, y []F) {
	cols := len(dst)
	checkRows("SumProducts", len(x), cols)
	checkLength("SumProducts", len(y), len(x))
	for lo := 0; lo < len(x); lo += rowChunk * cols {
		hi := min(lo+rowChunk*cols, len(x))
		sumProducts(dst, x[lo:hi], y[lo:hi])
	}
}

// AffineRows writes x*factor+bias to dst, element by element of every row; rows are
// as long as factor and bias.
func AffineRows[F Float](dst, x, factor, bias []F) {
	cols := len(bias)
	checkRows("AffineRows", len(x), cols)
	checkLength("AffineRows", len(factor), cols)
	checkLength("AffineRows", len(dst), len(x))
	for lo := 0; lo < len(x); lo += rowChunk * cols {
		hi := min(lo+rowChunk*cols, len(x))
		affineRows(dst[lo:hi], x[lo:hi], factor, bias)
	}
}

func addToRowsTwin[F Float](x, bias []F) {
	for ; len(x) > 0; x = x[len(bias):] {
		addTwin(x[:len(bias)], x[:len(bias)], bias)
	}
}

func addToRowsReluTwin[F Float](x, bias []F) {
	addToRowsTwin(x, bias)
	reluTwin(x, x)
}

func sumRowsTwin[F Float](dst, x []F) {
	for ; len(x) > 0; x = x[len(dst):] {
		addTwin(dst, dst, x[:len(dst)])
	}
}

func sumProductsTwin[F Float](dst, x, y []F) {
	for ; len(x) > 0; x, y = x[len(dst):], y[len(dst):] {
		a, b := x[:len(dst)], y[:len(dst)]
		for i := range dst {
			dst[i] += a[i] * b[i]
		}
	}
}

func affineRowsTwin[F Float](dst, x, factor, bias []F) {
	factor = factor[:len(bias)]
	for ; len(x) > 0; dst, x = dst[len(bias):], x[len(bias):] {
		to, from := dst[:len(bias)], x[:len(bias)]
		for i, b := range bias {
			to[i] = from[i]*factor[i] + b
		}
	}
}
