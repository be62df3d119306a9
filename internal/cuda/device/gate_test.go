//go:build linux

package device

import (
	"fmt"
	"syscall"
	"testing"
	"unsafe"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// bytesOf are those of what belongs to a message.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// TestGate: sums that were started before their factors were known are those that are started after, for
// batches that are recorded and for such that are not; if nobody asks for them, nothing is added, and no
// more are started.
func TestGate(t *testing.T) {
	const texts = 2
	train := func(t *testing.T, processors int32, gated bool) (all []float32, early int) {
		n := textNetwork(t, 1, 128, texts)
		n.d.processors = processors
		if !gated {
			n.d.streamWaitValue = nil
		}
		s := &server{d: n.d, n: n, layout: cuda.LayoutOf(n.plan)}
		var err error
		if s.shared, err = syscall.Mmap(-1, 0, s.layout.Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON); err != nil {
			t.Fatal(err)
		}
		if err := s.readyMemory(); err != nil {
			t.Fatal(err)
		}
		size := n.plan.Parameters
		n.d.clear(n.vectorOf(cuda.VectorTheta), 8*size)
		do := func(a cuda.Ask, payload []byte) {
			t.Helper()
			if err := s.do(a, payload); err != nil {
				t.Fatal(err)
			}
		}
		words := unsafe.Slice((*int32)(unsafe.Pointer(&s.shared[s.layout.Rows])), texts*textPlaces)
		norms := unsafe.Slice((*float64)(unsafe.Pointer(&s.shared[s.layout.Norms])), texts)
		add := func(slot int, by float64) {
			factors := unsafe.Slice((*float32)(unsafe.Pointer(&s.shared[s.layout.Factors+4*slot*n.chunk])), texts)
			for e := range factors {
				factors[e] = float32(by / (1 + norms[e]))
			}
			do(cuda.Ask{What: cuda.AskAdd, A: uint32(slot), B: texts}, nil)
			clear(factors) // which the other program may use again
		}
		for step := range 7 {
			for i := range words {
				words[i] = int32((i*i + 7*step) % 128)
			}
			do(cuda.Ask{What: cuda.AskBack, B: texts, D: cuda.Sided(0, 1)}, nil)
			noise := cuda.NoiseOrder{Deviation: 0.1}
			do(cuda.Ask{What: cuda.AskDraw}, bytesOf(&noise))
			do(cuda.Ask{What: cuda.AskNorms}, nil)
			if s.gate.waiting > 0 {
				early++
			}
			switch {
			case step == 5 && processors == 1: // nobody adds anything
			case step == 5:
				add(1, 0.5)
				add(0, 0.25)
			default:
				add(0, 1)
			}
			noise.From = cuda.FromDrawn
			do(cuda.Ask{What: cuda.AskNoise}, bytesOf(&noise))
			do(cuda.Ask{What: cuda.AskMove}, bytesOf(&cuda.MoveOrder{Factor: 1, Step: 0.01}))
			all = append(all, get(t, n, n.sums, 2*size)...)
		}
		return append(all, get(t, n, n.theta, size)...), early
	}
	for _, processors := range []int32{1, 1000} {
		inTurn(t, fmt.Sprint(processors), func(t *testing.T) {
			want, none := train(t, processors, false)
			got, early := train(t, processors, true)
			if none != 0 || early < 3 || early > 5 { // not after step 5, where nobody asked for it
				t.Errorf("%d and %d sums were started early", none, early)
			}
			if !same(got, want) {
				t.Error("early sums are others")
			}
		})
	}
}
