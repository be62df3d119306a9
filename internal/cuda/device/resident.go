//go:build linux

package device

import (
	"fmt"
	"unsafe"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// stay does what is asked of parameters that stay on the device from step to step.
func (s *server) stay(a cuda.Ask, payload []byte) error {
	n, l := s.n, s.layout
	size := n.plan.Parameters
	switch a.What {
	case cuda.AskPut, cuda.AskGet:
		if a.A >= cuda.Vectors {
			return fmt.Errorf("asked for vector %d, which is not known", a.A)
		}
		return s.vector(int(a.A), a.What == cuda.AskPut, s.shared[l.Vector:][:cuda.VectorBytes(int(a.A))*size])
	case cuda.AskClear:
		n.d.clear(n.sums, 8*size)
		return nil
	case cuda.AskStep:
		set, g := n.setOf(int(a.A)), int(a.B)
		n.toSide(0)
		if a.C == cuda.ThetaNew {
			n.parameters(s.shared[l.Theta:][:4*size])
		}
		n.chosen = s.copied(n.rows, s.shared[l.Rows:][:4*g*n.rowLength()])
		n.takeFactors(0, s.factors(0, g))
		n.parted.plain = true
		n.gradientsOf(recorded{what: recordStep, set: int(a.A), count: g, which: int(a.D)}, set, func() { n.add(0, g) })
		n.parted.plain = false
		return nil
	case cuda.AskDraw, cuda.AskNoise:
		o, by := (*cuda.NoiseOrder)(unsafe.Pointer(&payload[0])), float32(1)
		if a.What == cuda.AskDraw && n.staying[cuda.VectorGradient] == 0 {
			n.vectorOf(cuda.VectorGradient)
			n.d.part() // what is written beside comes after what memory holds at first
		}
		values := n.vectorOf(cuda.VectorGradient) // which steps without Turn have no other use for
		draw := func() { n.call("normals", along(tiles(size, 16)*2, 256), 256, values, o.Keys, size) }
		if a.What == cuda.AskDraw {
			n.d.since(n.d.departed[s.landing.side^1], draw) // when the batch's rows had left
			return nil
		}
		n.d.rejoin() // of what was drawn
		if o.From == cuda.FromHost {
			s.values = append(s.values[:0], s.shared[l.Vector:][:4*size]...)
			n.d.toDevice(values, s.values)
		} else {
			by = o.Deviation
		}
		if o.From == cuda.FromKeys {
			draw()
		}
		n.call("added", along(size, 256), 256, n.sums, values, by, size)
		return nil
	case cuda.AskTurn:
		o := (*cuda.TurnOrder)(unsafe.Pointer(&payload[0]))
		if n.products == 0 {
			n.products = n.d.alloc(8 * 5 * cuda.ProductParts(size))
		}
		n.call("directions", along(size, 16*256), 256, n.sums, n.sums+uintptr(4*size), n.vectorOf(cuda.VectorGradient), n.vectorOf(cuda.VectorDirection),
			turning{o.Bound, o.Deviation, o.Taken, int32(o.Last)}, o.Keys, o.Before, n.products, size)
		n.d.toHost(s.shared[l.Product:][:8*5*cuda.ProductParts(size)], n.products)
		return n.d.wait()
	case cuda.AskMove:
		o := (*cuda.MoveOrder)(unsafe.Pointer(&payload[0]))
		n.call("moved", along(size, 256), 256, n.vectorOf(cuda.VectorTheta), n.theta, n.sums, n.staying[cuda.VectorOffset], n.staying[cuda.VectorFirst], n.staying[cuda.VectorSecond], *o, size)
		n.turnFilters()
		return nil
	}
	return fmt.Errorf("asked for %d, which is not known", a.What)
}

// vectorOf is where a vector that stays lies.
func (n *Network) vectorOf(which int) uintptr {
	if n.staying[which] == 0 {
		n.staying[which] = n.d.alloc(cuda.VectorBytes(which) * n.plan.Parameters)
	}
	return n.staying[which]
}

// vector puts one there, or brings it home.
func (s *server) vector(which int, put bool, room []byte) error {
	n := s.n
	if !put {
		n.d.toHost(room, n.vectorOf(which))
		return n.d.wait()
	}
	n.d.toDevice(n.vectorOf(which), room)
	if which == cuda.VectorTheta {
		n.call("narrowed", along(n.plan.Parameters, 256), 256, n.vectorOf(which), n.theta, n.plan.Parameters)
		n.turnFilters()
	}
	return n.d.wait()
}
