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
