package model

import (
	"math"
	"testing"
)

// TestRowsThatWaitAreAddedOnce: chunk by chunk, rows go to one of two sums or to none, and
// wait for those of later chunks where the layer before has laid them, or where they were
// copied to: both sums are those of the rows' own gradients. There are more chunks than
// there is room for; a layer that writes over its input is between.
func TestRowsThatWaitAreAddedOnce(t *testing.T) {
	const in, chunk, chunks = 6, 4, 3*leastWaiting/4 + 1
	layers := []Layer{{Kind: "linear", Units: 10}, {Kind: "leaky-relu"}, {Kind: "linear", Units: 9}, {Kind: "linear", Units: 8}}
	n, err := Build[float64](Shape{1, 1, in}, layers)
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, n.Parameters())
	n.Initialise(theta, stream("theta"))
	cell, alone := n.chain.newCell(chunk), n.chain.newCell(1)
	x, d, r := normals[float64]("inputs", chunks*chunk*in, 1), normals[float64]("slopes", chunks*chunk*8, 1), stream("sums")
	var got, want [2][]float64
	for k := range got {
		got[k], want[k] = make([]float64, len(theta)), make([]float64, len(theta))
	}
	for c := range chunks {
		from := c * chunk
		cell.forward(theta, x[from*in:(from+chunk)*in], chunk)
		for _, i := range []int{2, 3} {
			one := cell.cells[i].(*denseCell[float64])
			if w := &one.waiting; c > 0 && &cell.values[i][0] != &w.in[w.at*one.in] {
				t.Fatalf("chunk %d: the inputs of layer %d are not where they can wait", c, i)
			}
		}
		cell.backward(theta, append([]float64(nil), d[from*8:(from+chunk)*8]...), nil, make([]float64, chunk), chunk, false)
		var weights [2][chunk]float64
		for i := range chunk {
			k := r.Below(3)
			if k == 2 {
				continue
			}
			weights[k][i] = 0.5 + float64(k)
			alone.forward(theta, x[(from+i)*in:(from+i+1)*in], 1)
			own := append([]float64(nil), d[(from+i)*8:(from+i+1)*8]...)
			for j := range own {
				own[j] *= weights[k][i]
			}
			alone.backward(theta, own, want[k], nil, 1, false)
		}
		for k := range got {
			cell.add(got[k], weights[k][:], chunk)
		}
	}
	cell.settle()
	for k := range got {
		for j, v := range want[k] {
			if math.Abs(got[k][j]-v) > 1e-9*(1+math.Abs(v)) {
				t.Fatalf("sum %d, coordinate %d: %v, want %v", k, j, got[k][j], v)
			}
		}
	}
}
