package onnx_test

import (
	"fmt"
	"math"
	"slices"
)

// evaluate runs the graph of a table or of rows, of [N, width] values all the way: it
// knows no convolutions. It needs nothing that is not in this repository.
func evaluate(f file, inputs map[string]tensor) (map[string]tensor, error) {
	values := map[string]array{}
	for name, t := range f.tensors {
		values[name] = t
	}
	for name, t := range inputs {
		a := array{kind: 1, dims: t.Dims}
		for _, v := range t.Values {
			if s, ok := v.(string); ok {
				a.kind, a.texts = 8, append(a.texts, s)
			} else if n, ok := asNumber(v); ok {
				a.numbers = append(a.numbers, n)
			} else {
				a.numbers = append(a.numbers, math.NaN())
			}
		}
		values[name] = a
	}
	for _, n := range f.nodes {
		var in []array
		for _, name := range n.inputs {
			in = append(in, values[name])
		}
		out, err := operate(n, in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.output[0], err)
		}
		values[n.output[0]] = out
	}
	out := map[string]tensor{}
	for _, p := range f.outputs {
		a := values[p.name]
		t := tensor{Type: map[int]string{1: "float32", 7: "int64", 8: "string"}[a.kind], Dims: a.dims}
		for i := range max(len(a.numbers), len(a.texts)) {
			switch {
			case a.kind == 8:
				t.Values = append(t.Values, a.texts[i])
			case math.IsNaN(a.numbers[i]):
				t.Values = append(t.Values, nil)
			default:
				t.Values = append(t.Values, a.numbers[i])
			}
		}
		out[p.name] = t
	}
	return out, nil
}

// size is an array's as a table.
func (a array) size() (rows, columns int) {
	switch len(a.dims) {
	case 0:
		return 1, 1
	case 1:
		return 1, a.dims[0]
	}
	return a.dims[0], a.dims[1]
}

// at is where an element lies; an array of one row or column has it in all of them.
func (a array) at(row, column int) int {
	rows, columns := a.size()
	return min(row, rows-1)*columns + min(column, columns-1)
}

// spread makes an array of all inputs' common size, element by element: shapes are laid
// side by side from their last axis on, and an axis of one is that of all.
func spread(kind int, in []array, f func(at []int) (float64, string)) array {
	out := array{kind: kind}
	for _, a := range in {
		for len(out.dims) < len(a.dims) {
			out.dims = append([]int{1}, out.dims...)
		}
		for i, d := range a.dims {
			at := len(out.dims) - len(a.dims) + i
			out.dims[at] = max(out.dims[at], d)
		}
	}
	places := make([]int, len(in))
	for flat := range product(out.dims) {
		for i, a := range in {
			left, step := flat, 1
			places[i] = 0
			for axis := len(out.dims) - 1; axis >= 0; axis-- {
				index := left % out.dims[axis]
				left /= out.dims[axis]
				if own := axis - len(out.dims) + len(a.dims); own >= 0 {
					places[i] += min(index, a.dims[own]-1) * step
					step *= a.dims[own]
				}
			}
		}
		number, text := f(places)
		if kind == 8 {
			out.texts = append(out.texts, text)
		} else {
			out.numbers = append(out.numbers, number)
		}
	}
	return out
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func operate(n node, in []array) (array, error) {
	x := in[0]
	numbers := func(f func(v []float64) float64) (array, error) {
		v := make([]float64, len(in))
		return spread(1, in, func(at []int) (float64, string) {
			for i, a := range in {
				v[i] = a.numbers[at[i]]
			}
			return f(v), ""
		}), nil
	}
	switch n.operation {
	case "Identity":
		return x, nil
	case "IsNaN":
		return numbers(func(v []float64) float64 { return truth(math.IsNaN(v[0])) })
	case "Clip":
		return numbers(func(v []float64) float64 { return min(max(v[0], v[1]), v[2]) })
	case "Add":
		return numbers(func(v []float64) float64 { return v[0] + v[1] })
	case "Sub":
		return numbers(func(v []float64) float64 { return v[0] - v[1] })
	case "Mul":
		return numbers(func(v []float64) float64 { return v[0] * v[1] })
	case "Div":
		return numbers(func(v []float64) float64 { return v[0] / v[1] })
	case "Or":
		return numbers(func(v []float64) float64 { return max(v[0], v[1]) })
	case "Not":
		return numbers(func(v []float64) float64 { return 1 - v[0] })
	case "Greater":
		return numbers(func(v []float64) float64 { return truth(v[0] > v[1]) })
	case "Relu":
		return numbers(func(v []float64) float64 { return max(v[0], 0) })
	case "LeakyRelu":
		return numbers(func(v []float64) float64 { return max(v[0], n.attributes["alpha"][0]*v[0]) })
	case "Tanh":
		return numbers(func(v []float64) float64 { return math.Tanh(v[0]) })
	case "Sigmoid":
		return numbers(func(v []float64) float64 { return 1 / (1 + math.Exp(-v[0])) })
	case "Cast":
		out, err := numbers(func(v []float64) float64 { return v[0] })
		out.kind = int(n.attributes["to"][0])
		return out, err
	case "Equal":
		return spread(9, in, func(at []int) (float64, string) {
			if x.kind == 8 {
				return truth(x.texts[at[0]] == in[1].texts[at[1]]), ""
			}
			return truth(x.numbers[at[0]] == in[1].numbers[at[1]]), ""
		}), nil
	case "Where":
		return spread(in[1].kind, in, func(at []int) (float64, string) {
			from := 2
			if x.numbers[at[0]] != 0 {
				from = 1
			}
			if in[1].kind == 8 {
				return 0, in[from].texts[at[from]]
			}
			return in[from].numbers[at[from]], ""
		}), nil
	case "Squeeze":
		x.dims = slices.Delete(slices.Clone(x.dims), int(in[1].numbers[0]), int(in[1].numbers[0])+1)
		return x, nil
	case "Transpose":
		return transpose(x, n.attributes["perm"]), nil
	case "MatMul":
		return matMul(x, in[1]), nil
	case "Gather":
		out := array{kind: x.kind, dims: append(slices.Clone(in[1].dims), x.dims[1:]...)}
		for _, i := range in[1].numbers {
			if x.kind == 8 {
				out.texts = append(out.texts, x.texts[int(i)])
				continue
			}
			columns := product(x.dims[1:])
			out.numbers = append(out.numbers, x.numbers[int(i)*columns:(int(i)+1)*columns]...)
		}
		return out, nil
	case "Reshape":
		out := array{kind: x.kind, numbers: x.numbers}
		for i, d := range in[1].numbers {
			if d == 0 {
				d = float64(x.dims[i])
			}
			out.dims = append(out.dims, int(d))
		}
		return out, nil
	case "LayerNormalization":
		return layerNorm(n, in), nil
	case "Gemm":
		return gemm(n, in), nil
	case "Concat":
		return concat(in), nil
	case "ReduceMax", "ArgMax", "Softmax":
		return byRow(n.operation, x), nil
	}
	return x, fmt.Errorf("operation %s is not known here", n.operation)
}

// layerNorm is over the last axis.
func layerNorm(n node, in []array) array {
	out, each := array{kind: 1, dims: in[0].dims}, len(in[1].numbers)
	for from := 0; from < len(in[0].numbers); from += each {
		v := in[0].numbers[from : from+each]
		var mean, variance float64
		for _, x := range v {
			mean += x / float64(each)
		}
		for _, x := range v {
			variance += (x - mean) * (x - mean) / float64(each)
		}
		for j, x := range v {
			out.numbers = append(out.numbers, (x-mean)/math.Sqrt(variance+n.attributes["epsilon"][0])*in[1].numbers[j]+in[2].numbers[j])
		}
	}
	return out
}

func gemm(n node, in []array) array {
	rows, inner := in[0].size()
	_, columns := in[1].size()
	turned := n.attributes["transB"] != nil
	if turned {
		columns, _ = in[1].size()
	}
	out := array{kind: 1, dims: []int{rows, columns}}
	for r := range rows {
		for c := range columns {
			var sum float64
			if len(in) > 2 {
				sum = in[2].numbers[c]
			}
			for k := range inner {
				at := in[1].at(k, c)
				if turned {
					at = in[1].at(c, k)
				}
				sum += in[0].numbers[in[0].at(r, k)] * in[1].numbers[at]
			}
			out.numbers = append(out.numbers, sum)
		}
	}
	return out
}

func concat(in []array) array {
	rows, _ := in[0].size()
	out := array{kind: 1, dims: []int{rows, 0}}
	for r := range rows {
		for _, a := range in {
			_, columns := a.size()
			out.numbers = append(out.numbers, a.numbers[r*columns:(r+1)*columns]...)
		}
	}
	out.dims[1] = len(out.numbers) / rows
	return out
}

func byRow(operation string, x array) array {
	columns := x.dims[len(x.dims)-1]
	rows := len(x.numbers) / columns
	out := array{kind: 1, dims: []int{rows, 1}}
	for r := range rows {
		v := x.numbers[r*columns : (r+1)*columns]
		switch operation {
		case "ReduceMax":
			out.numbers = append(out.numbers, slices.Max(v))
		case "ArgMax":
			out.kind, out.dims = 7, []int{rows}
			out.numbers = append(out.numbers, float64(max(0, slices.Index(v, slices.Max(v))))) // NaN is nowhere
		case "Softmax":
			out.dims = x.dims
			var sum float64
			for _, e := range v {
				sum += math.Exp(e)
			}
			for _, e := range v {
				out.numbers = append(out.numbers, math.Exp(e)/sum)
			}
		}
	}
	return out
}
