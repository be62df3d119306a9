//go:build linux

package device

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFiltersTogether: filters that are laid in one launch lie as those of a launch each.
func TestFiltersTogether(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 9))
	var all []filterPlace
	var wants [][]float32
	for i := range 8 {
		w := window{kernelH: int32(2 + i%4), kernelW: int32(2 + i%4), inC: int32(1 + 5*i%7), outC: int32(3 + 9*i), back: int32(i % 2)}
		s := sliding{shape: direct{inC: w.inC, outC: w.outC}}
		count := s.arranged(int(w.kernelW))
		filter, one, other := put(n, drawn(src, int(w.kernelH*w.kernelW*w.inC*w.outC))), n.d.alloc(4*count), n.d.alloc(4*count)
		n.arrange(w, &s, filter, one)
		all = append(all, filterOf(w, filter, other))
		wants = append(wants, get(t, n, one, count))
	}
	n.arrangeAll(all)
	for i, want := range wants {
		if !slices.Equal(get(t, n, all[i].to, len(want)), want) {
			t.Errorf("filter %d lies elsewhere", i)
		}
	}
}
