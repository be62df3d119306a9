package onnx_test

// product is how many elements a shape has.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// transpose puts an array's axes into another order.
func transpose(x array, order []float64) array {
	out := array{kind: x.kind}
	steps := make([]int, len(order)) // of x, by the result's axes
	for _, axis := range order {
		out.dims = append(out.dims, x.dims[int(axis)])
	}
	for i, axis := range order {
		steps[i] = product(x.dims[int(axis)+1:])
	}
	for flat := range len(x.numbers) {
		left, at := flat, 0
		for axis := len(order) - 1; axis >= 0; axis-- {
			at += left % out.dims[axis] * steps[axis]
			left /= out.dims[axis]
		}
		out.numbers = append(out.numbers, x.numbers[at])
	}
	return out
}

// matMul multiplies the tables of the last two axes; the second array has as many tables
// as the first, or one.
func matMul(a, b array) array {
	n := len(a.dims)
	rows, inner, columns := a.dims[n-2], a.dims[n-1], b.dims[len(b.dims)-1]
	out := array{kind: 1, dims: append(append([]int{}, a.dims[:n-1]...), columns)}
	for table := range len(a.numbers) / (rows * inner) {
		x, y := a.numbers[table*rows*inner:], b.numbers
		if len(b.dims) > 2 {
			y = y[table*inner*columns:]
		}
		for r := range rows {
			for c := range columns {
				var sum float64
				for k := range inner {
					sum += x[r*inner+k] * y[k*columns+c]
				}
				out.numbers = append(out.numbers, sum)
			}
		}
	}
	return out
}
