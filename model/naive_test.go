package model

import (
	"math"
	"testing"
)

// TestMNISTLossAgainstNaive writes table 3.5 out in plain loops.
func TestMNISTLossAgainstNaive(t *testing.T) {
	n := named["mnist"]
	e, theta := newEngine[float32](t, n.Input, n.Layers, crossEntropy[float32]{}, 1)
	ex, order := examples(e, 3)
	got := make([]float64, len(order))
	if err := e.Losses(got, theta, ex, order); err != nil {
		t.Fatal(err)
	}
	for i, row := range order {
		want := naiveMNIST(e.network.Views(), theta, ex.X[row*784:(row+1)*784], ex.Labels[row])
		if math.Abs(got[i]-want) > 1e-4*want {
			t.Errorf("row %d: loss %v, written out %v", row, got[i], want)
		}
	}
}

func naiveMNIST(views []View, theta []float32, img []float32, label int) float64 {
	at := func(i int, index ...int) float64 {
		o := 0
		for k, x := range index {
			o = o*views[i].Shape[k] + x
		}
		return float64(theta[views[i].Offset+o])
	}
	var a [27][27][16]float64
	for y := range a {
		for x := range a[y] {
			for c := range a[y][x] {
				s := at(1, c)
				for ky := range 8 {
					for kx := range 8 {
						if r, q := y+ky-3, x+kx-3; r >= 0 && r < 28 && q >= 0 && q < 28 {
							s += float64(img[r*28+q]) * at(0, ky, kx, 0, c)
						}
					}
				}
				a[y][x][c] = max(s, 0)
			}
		}
	}
	var p [26][26][16]float64
	for y := range p {
		for x := range p[y] {
			for c := range p[y][x] {
				p[y][x][c] = max(a[y][x][c], a[y+1][x][c], a[y][x+1][c], a[y+1][x+1][c])
			}
		}
	}
	hidden := make([]float64, 32)
	for j := range hidden {
		hidden[j] = at(5, j)
	}
	for y := range 23 {
		for x := range 23 {
			for c := range 32 {
				s := at(3, c)
				for ky := range 4 {
					for kx := range 4 {
						for i := range 16 {
							s += p[y+ky][x+kx][i] * at(2, ky, kx, i, c)
						}
					}
				}
				for j := range hidden {
					hidden[j] += max(s, 0) * at(4, (y*23+x)*32+c, j)
				}
			}
		}
	}
	logits, sum := make([]float64, 10), 0.0
	for k := range logits {
		logits[k] = at(7, k)
		for j, h := range hidden {
			logits[k] += max(h, 0) * at(6, j, k)
		}
		sum += math.Exp(logits[k])
	}
	return math.Log(sum) - logits[label]
}
