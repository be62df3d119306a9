package fl

import (
	"testing"
)

func BenchmarkSample(b *testing.B) {
	for name, balanced := range map[string]bool{"uniform": false, "balanced": true} {
		b.Run(name, func(b *testing.B) {
			s := NewSampler(1, "bench", 2000, 1000, balanced)
			for i := 0; b.Loop(); i++ {
				s.Sample(i)
			}
		})
	}
}
