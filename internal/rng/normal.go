package rng

import (
	"math"
	"math/rand/v2"
)

// Float64 is uniform on [0, 1), a multiple of 2^-53.
func Float64(src rand.Source) float64 { return float64(src.Uint64()>>11) * 0x1p-53 }

// positive is uniform on (0, 1]: safe under a logarithm.
func positive(src rand.Source) float64 { return float64(src.Uint64()>>11+1) * 0x1p-53 }

// The ziggurat of Marsaglia and Tsang (2000) with 256 layers of equal area.
// layerR, where the tail begins, is their published constant; the area follows.
const (
	layers = 256
	layerR = 3.6541528853610088
)

var zig = buildZiggurat()

type ziggurat struct {
	edge    [layers + 1]float64 // right edges, descending; edge[0] is the base's virtual width
	density [layers + 1]float64
}

func buildZiggurat() *ziggurat {
	f := func(x float64) float64 { return math.Exp(-x * x / 2) }
	area := layerR*f(layerR) + math.Sqrt(math.Pi/2)*math.Erfc(layerR/math.Sqrt2)
	var z ziggurat
	z.edge[0] = area / f(layerR)
	z.edge[1] = layerR
	for i := 2; i < layers; i++ {
		z.edge[i] = math.Sqrt(-2 * math.Log(area/z.edge[i-1]+f(z.edge[i-1])))
	}
	for i := range z.density {
		z.density[i] = f(z.edge[i])
	}
	return &z
}

// Normal is a standard normal value with 53 random bits. It is a float sampler:
// for simulation only.
func Normal(src rand.Source) float64 {
	for {
		bits := src.Uint64()
		i := bits & (layers - 1) // bits 0..7; the value uses 11..63
		u := float64(int64(bits)>>11) * 0x1p-52
		x := u * zig.edge[i]
		if math.Abs(x) < zig.edge[i+1] {
			return x
		}
		if i == 0 {
			return tail(src, u < 0)
		}
		if zig.density[i]+Float64(src)*(zig.density[i+1]-zig.density[i]) < math.Exp(-x*x/2) {
			return x
		}
	}
}

// tail draws beyond layerR (Marsaglia 1964).
func tail(src rand.Source, negative bool) float64 {
	for {
		x := -math.Log(positive(src)) / layerR
		y := -math.Log(positive(src))
		if y+y >= x*x {
			if negative {
				return -(layerR + x)
			}
			return layerR + x
		}
	}
}

// Gamma has the given shape (at least 1) and scale 1 (Marsaglia and Tsang 2000).
func Gamma(src rand.Source, shape float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := Normal(src)
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := positive(src)
		if u < 1-0.0331*x*x*x*x || math.Log(u) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}
