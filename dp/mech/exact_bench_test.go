package mech

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// femnist is the number of parameters of the papers' FEMNIST network.
const femnist = 1_206_590

func BenchmarkExactNoise(b *testing.B) {
	dst := make([]int64, femnist)
	lattice := Lattice{Step: 0x1p-20}
	epsilon := 1098.5 // sqrt(n+1)/epsilon = 1, so sigma is about 2^20 and odd half of the time
	for _, source := range []struct {
		name    string
		entropy *Entropy
	}{
		{"system", SystemEntropy()},
		{"keyed", NewEntropy(rand.NewChaCha8([32]byte{1}))},
	} {
		b.Run("gaussian/"+source.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := source.entropy.DiscreteGaussian(dst, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("gaussian/"+source.name+"/workers", func(b *testing.B) { // as many as processors, of the system's alone
			s := spreadSum(runtime.GOMAXPROCS(0))
			for b.Loop() {
				if err := s.draw(source.entropy, dst, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("laplace/"+source.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := source.entropy.LatticeLaplace(dst, epsilon, lattice); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("gaussian/wide", func(b *testing.B) {
		e := SystemEntropy()
		for b.Loop() {
			if err := e.DiscreteGaussian(dst, 1<<50+1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("laplace/eleven-parameters", func(b *testing.B) {
		b.ReportAllocs()
		e, key := NewEntropy(nil), [32]byte{1}
		stream := rand.NewChaCha8(key)
		for b.Loop() {
			stream.Seed(key)
			e.Reset(stream)
			if err := e.LatticeLaplace(dst[:11], 3, lattice); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTruncate(b *testing.B) {
	v, q := make([]float64, femnist), make([]int64, femnist)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = source.Float64() - 0.5
	}
	lattice := Lattice{Step: 0x1p-20}
	for b.Loop() {
		if err := lattice.Truncate(q, v); err != nil {
			b.Fatal(err)
		}
		lattice.Within(q, 1e6)
	}
}
