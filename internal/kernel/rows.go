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
	checkRows("AddToRows", len(x), len(bias))
	var room [widestRow]F
	bias, whole := several(&room, bias, len(x))
	for step, lo := rowChunk*len(bias), 0; lo < whole; lo += step {
		addToRows(x[lo:min(lo+step, whole)], bias)
	}
	if rest := x[whole:]; len(rest) > 0 {
		axpy(1, bias[:len(rest)], rest)
	}
}

// AddToRowsRelu adds bias to every row of x, then takes max(x, 0); NaN stays
// NaN.
func AddToRowsRelu[F Float](x, bias []F) {
	checkRows("AddToRowsRelu", len(x), len(bias))
	var room [widestRow]F
	bias, whole := several(&room, bias, len(x))
	for step, lo := rowChunk*len(bias), 0; lo < whole; lo += step {
		addToRowsRelu(x[lo:min(lo+step, whole)], bias)
	}
	if rest := x[whole:]; len(rest) > 0 {
		axpy(1, bias[:len(rest)], rest)
		relu(rest, rest)
	}
}

// widestRow is how many values lie in four vectors.
const widestRow = 32

// several is a short row, in room, as often as fills four vectors, and where the last whole
// ones of such of so many values end: rows of part of a vector are written under a mask,
// which takes longer on some processors.
func several[F Float](room *[widestRow]F, row []F, length int) (rows []F, end int) {
	n, wide := len(row), 4*lanes[F]()
	if n == 0 || n >= wide || wide%n != 0 || length < wide {
		return row, length
	}
	for at := 0; at < wide; at += n {
		copy(room[at:], row)
	}
	return room[:wide], length - length%wide
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
