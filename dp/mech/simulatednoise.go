package mech

import (
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// manyNormals is from where on vector arithmetic pays.
const manyNormals = 64

// addNormals adds independent normal values of a standard deviation to dst, from
// a keyed source: float noise, for simulation only. Many of them are drawn in
// single precision, in half the time.
func addNormals[F float32 | float64](dst []F, deviation float64, src rand.Source) {
	if len(dst) < manyNormals {
		for i := range dst {
			dst[i] += F(deviation * rng.Normal(src))
		}
		return
	}
	var words [1024]uint32
	var values [1024]float32
	for len(dst) > 0 {
		n := min(len(dst), len(values))
		need := kernel.NormalWords32(n)
		for i := 0; i < need; i += 2 {
			w := src.Uint64()
			words[i], words[i+1] = uint32(w), uint32(w>>32)
		}
		kernel.Normals32(values[:n], float32(deviation), words[:need])
		for i, v := range values[:n] {
			dst[i] += F(v)
		}
		dst = dst[n:]
	}
}
