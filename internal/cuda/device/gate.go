//go:build linux

package device

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// gate is where the device waits for factors. What adds gradients times factors is started before these
// are known, behind a wait for a number in this program's memory: so nothing is left to be started once
// the other program has made factors of norms, which is when the device has nothing else to do.
type gate struct {
	number  *uint32   // it waits until this is turn
	factors []float32 // of this turn and of the one before, which the device may not have read yet
	at      uintptr   // where the device finds both; 0: there is no gate
	turn    uint32
	waiting int // for the factors of so many examples; 0: it is open
}

// gateBytes is room for the number, and for the factors of two chunks behind it.
func gateBytes(chunk int) int { return 64 + 2*64*tiles(4*chunk, 64) }

// gateIn lies in memory, which the device finds at an address, unless that is 0.
func gateIn(memory []byte, at uintptr, chunk int) gate {
	return gate{number: (*uint32)(unsafe.Pointer(&memory[0])), factors: unsafe.Slice((*float32)(unsafe.Pointer(&memory[64])), 2*16*tiles(4*chunk, 64)), at: at}
}

// closed is held for reading by every closed gate of this program. Some of what the driver does for others
// waits for all that was started, and has everybody wait for that: who asks for such a thing holds it alone.
var closed sync.RWMutex

// addEarly starts what adds the gradients of the rows that went back last to the first sum, behind the
// gate, once norms are asked for: noise is on its way then. It does so only where nothing has to be
// made for that, or loaded: on a network whose sums were made before.
func (s *server) addEarly(side int) {
	n, w, g := s.n, &s.gate, s.unasked
	if s.unasked = 0; g == 0 || w.waiting > 0 {
		return
	}
	r := recorded{recordAdd, 0, g, 0, side}
	if n.texts == nil || !n.ready(r) || w.at == 0 || n.d.failed != nil || !closed.TryRLock() {
		return
	}
	if n.d.waitValue(w.turn+1, w.at) != 0 { // not here
		w.at = 0
		closed.RUnlock()
		return
	}
	w.turn, w.waiting = w.turn+1, g
	n.call("take_rows", along(g, 4*256), 256, n.factors[0], w.at+64+uintptr(4*w.half()), g)
	n.together(r, func() { n.add(0, g) })
}

// open has a closed gate open, with factors, or none: then gradients count for nothing. So it may open at
// any time, and does so before this program sleeps: whoever does not ask on holds up nobody else. What is
// asked for later is added as if there had been no gate.
func (s *server) open(factors []float32) {
	w := &s.gate
	if w.waiting == 0 {
		return
	}
	own := w.factors[w.half():][:w.waiting]
	clear(own[copy(own, factors):])
	atomic.StoreUint32(w.number, w.turn)
	w.waiting = 0
	closed.RUnlock()
}

// half is where a turn's factors begin.
func (w *gate) half() int { return int(w.turn%2) * len(w.factors) / 2 }
