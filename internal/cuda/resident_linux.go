package cuda

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// staying is a device whose parameters stay there from step to step: model.Resident.
type staying struct {
	d        *Device
	fresh    bool          // nothing was added to the sums of this step
	expected *mech.Normals // noise that this step will end with; nil: nobody has said
	drawn    *mech.Normals // that the device has drawn; nil: none
}

// Stay is model.Device's. Nobody else uses the device until the parameters have left.
func (d *Device) Stay(start model.Start) (model.Resident, error) {
	d.mu.Lock()
	for which, v := range [][]float64{VectorTheta: start.Theta, VectorFirst: start.First, VectorSecond: start.Second, VectorOffset: start.Offset} {
		if v == nil {
			continue
		}
		if err := put(d, which, v); err != nil {
			d.mu.Unlock()
			return nil, err
		}
	}
	return &staying{d: d, fresh: true}, nil
}

// put has the device hold a vector.
func put[F float32 | float64](d *Device, which int, v []F) error {
	if len(v) != d.plan.Parameters {
		return fmt.Errorf("cuda: a vector of %d values for a network of %d", len(v), d.plan.Parameters)
	}
	if d.lost != nil {
		return d.lost
	}
	copy(view[F](d.shared, d.layout.Vector, len(v)), v)
	return d.ask(Ask{What: AskPut, A: uint32(which)})
}

// get brings a vector home.
func get[F float32 | float64](d *Device, which int, v []F) error {
	if len(v) != d.plan.Parameters {
		return fmt.Errorf("cuda: a vector of %d values for a network of %d", len(v), d.plan.Parameters)
	}
	if err := d.ask(Ask{What: AskGet, A: uint32(which)}); err != nil {
		return err
	}
	copy(v, view[F](d.shared, d.layout.Vector, len(v)))
	return nil
}

// Leave is model.Resident's.
func (s *staying) Leave(end model.Start) error {
	d := s.d
	if d == nil {
		return nil
	}
	s.d = nil
	defer d.mu.Unlock()
	for which, v := range [][]float64{VectorTheta: end.Theta, VectorFirst: end.First, VectorSecond: end.Second} {
		if v == nil {
			continue
		}
		if err := get(d, which, v); err != nil {
			return err
		}
	}
	return nil
}

// begins says, once a step, that sums begin.
func (s *staying) begins() uint32 {
	if s.fresh {
		s.fresh = false
		return 1
	}
	return 0
}

// begun empties the sums of a step without examples.
func (s *staying) begun() error {
	if s.begins() == 1 {
		return s.d.ask(Ask{What: AskClear})
	}
	return nil
}

// idle waits until the helper has read what lies in the shared memory.
func (d *Device) idle() error {
	if d.lost != nil {
		return d.lost
	}
	if err := d.mail.Idle(runtime.Gosched); err != nil {
		return d.gone(err)
	}
	return nil
}

// Norms is model.Resident's.
func (s *staying) Norms(c *data.Client, rows []int, use func(norms []float64) error) error {
	if err := s.d.addsFloats(); err != nil {
		return err
	}
	set, err := s.ready(c, rows)
	if err != nil {
		return err
	}
	back := func(_ int, count, side uint32) Ask {
		return Ask{AskBack, set, count, ThetaSame, Sided(side, s.begins())}
	}
	return s.d.inTurn(c, rows, back, s.draw, use)
}

// draw has the device draw the noise of the step's end: where it would wait for factors.
func (s *staying) draw() error {
	if s.expected == nil {
		return nil
	}
	s.drawn, s.expected = s.expected, nil
	return s.d.order(Ask{What: AskDraw}, bytesOf(&NoiseOrder{Keys: expand(&s.drawn.Key)}))
}

// Mean is model.Resident's.
func (s *staying) Mean(c *data.Client, rows []int) error {
	share := float32(1 / float64(max(1, len(rows))))
	set, err := s.ready(c, rows)
	if err != nil {
		return err
	}
	return s.d.inParts(c, rows, s.d.layout.Chunk, func(_ int, part []int) error {
		return s.d.step(Ask{What: AskStep, A: set, B: uint32(len(part)), D: s.begins()}, share)
	})
}

// ready has the device hold what rows are of.
func (s *staying) ready(c *data.Client, rows []int) (set uint32, err error) {
	if err := s.d.together(rows); err != nil {
		return 0, err
	}
	return s.d.setOf(c)
}

// Add is mech.Remote's.
func (s *staying) Add(sum int, factors []float32) error {
	return s.d.add(uint32(sum), factors)
}

// Ready is mech.Remote's.
func (s *staying) Ready(n mech.Normals) error {
	s.expected = &n
	return nil
}

// Noise is mech.Remote's.
func (s *staying) Noise(n mech.Normals) error {
	if err := s.begun(); err != nil {
		return err
	}
	drawn := s.drawn
	s.expected, s.drawn = nil, nil
	o := NoiseOrder{Deviation: float32(n.Deviation)}
	switch {
	case n.Values == nil && drawn != nil && drawn.Key == n.Key:
		o.From = FromDrawn
	case n.Values == nil:
		o.Keys = expand(&n.Key)
	default:
		o.From = FromHost
		if err := s.d.idle(); err != nil {
			return err
		}
		copy(view[float32](s.d.shared, s.d.layout.Vector, len(n.Values)), n.Values)
	}
	return s.d.order(Ask{What: AskNoise}, bytesOf(&o))
}

// Turn is mech.Remote's.
func (s *staying) Turn(bound float64, noise mech.Normals, last bool, taken *mech.Normals) (p mech.Products, err error) {
	if err := s.begun(); err != nil {
		return p, err
	}
	o := TurnOrder{Keys: expand(&noise.Key), Bound: float32(bound), Deviation: float32(noise.Deviation)}
	if last {
		o.Last = 1
	}
	if taken != nil {
		o.Before, o.Taken = expand(&taken.Key), float32(taken.Deviation)
	}
	if err := s.d.order(Ask{What: AskTurn}, bytesOf(&o)); err != nil {
		return p, err
	}
	parts := view[float64](s.d.shared, s.d.layout.Product, 5*ProductParts(s.d.plan.Parameters))
	for i, to := range []*float64{&p.Direction, &p.Gradient, &p.Square, &p.BareDirection, &p.BareGradient} {
		for k := i; k < len(parts); k += 5 {
			*to += parts[k]
		}
	}
	return p, nil
}

// Last is mech.Remote's.
func (s *staying) Last(gradient, direction []float32) error {
	if err := get(s.d, VectorGradient, gradient); err != nil {
		return err
	}
	return get(s.d, VectorDirection, direction)
}

// SetLast is mech.Remote's.
func (s *staying) SetLast(gradient, direction []float32) error {
	if err := put(s.d, VectorGradient, gradient); err != nil {
		return err
	}
	return put(s.d, VectorDirection, direction)
}

// Move is model.Resident's.
func (s *staying) Move(m model.Move) error {
	if err := s.begun(); err != nil {
		return err
	}
	s.fresh = true
	o := MoveOrder{Factor: m.Factor, Step: m.Step, Decay: m.Decay, Beta1: m.Beta1, Beta2: m.Beta2, Keep: m.Keep, Root: m.Root, Slope: m.Slope, Kind: int32(m.Kind)}
	if m.Pulled {
		o.Pulled = 1
	}
	return s.d.order(Ask{What: AskMove}, bytesOf(&o))
}

// bytesOf are those of a value in memory.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }
