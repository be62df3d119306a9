//go:build linux

package device

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFiltersTogether: filters lie by eights of what is computed, what is read, and taps, also
// where there are more of them than a launch takes.
func TestFiltersTogether(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 9))
	var all []filterPlace
	var wants [][]float32
	for i := range 8 {
		w := window{kernelH: int32(2 + i%4), kernelW: int32(2 + i%4), inC: int32(1 + 5*i%7), outC: int32(3 + 9*i), back: int32(i % 2)}
		taps, inC, outC := int(w.kernelH*w.kernelW), int(w.inC), int(w.outC)
		filter, want := drawn(src, taps*inC*outC), make([]float32, taps*inC*tiles(outC, 8)*8)
		for o := range outC {
			for from := range inC {
				for tap := range taps {
					value := filter[(tap*inC+from)*outC+o]
					if w.back == 1 {
						value = filter[((taps-1-tap)*outC+o)*inC+from]
					}
					want[((o/8*inC+from)*taps+tap)*8+o%8] = value
				}
			}
		}
		all, wants = append(all, filterOf(w, put(n, filter), n.d.alloc(4*len(want)))), append(wants, want)
	}
	n.arrangeAll(all)
	for i, want := range wants {
		if !slices.Equal(get(t, n, all[i].to, len(want)), want) {
			t.Errorf("filter %d lies elsewhere", i)
		}
	}
}
