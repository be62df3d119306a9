package federation

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/fl"
)

// checkBounds refuses encoded values that a release may not have: no finite numbers,
// and numbers with which the server could not go on. The first of them stands at byte
// offset of its release. Bounds are in ascending order.
func checkBounds(raw []byte, offset int64, bounds []fl.Bound) error {
	first := int(offset / 8)
	for _, b := range bounds {
		least, most := math.Float64bits(b.Least), math.Float64bits(b.Most)
		for i := max(b.From, first); i < min(b.To, first+len(raw)/8); i++ {
			bits := binary.LittleEndian.Uint64(raw[8*(i-first):])
			// Without their sign, floats are in the order of their bits; what is not
			// finite comes last.
			if size := bits &^ (1 << 63); size > most || size < least && size != 0 {
				return refuse(ReasonMalformed, "value %d is %v; this run's releases have magnitudes from %v to %v there, or 0",
					i, math.Float64frombits(bits), b.Least, b.Most)
			}
		}
	}
	return nil
}

// checkOpens says why a state cannot begin another round, if that is so: it is asked
// before the state is made durable. The state is left as it is.
func (c *Coordinator) checkOpens(s *fl.State) error {
	b, err := c.algorithm.Broadcast(cloneState(s))
	if err != nil {
		return err
	}
	most := fl.LargestValue(c.run)
	for _, part := range []struct {
		what   string
		values []float64
		most   float64
	}{
		{"a hypothesis", b.Hypotheses, most},
		{"what is sent beside the hypotheses", b.Memory, math.MaxFloat64},
		{"the radius or the spread", []float64{b.Radius, b.Spread}, math.MaxFloat64},
	} {
		for _, v := range part.values {
			if !(math.Abs(v) <= part.most) {
				return fmt.Errorf("%s has the value %v; participants take magnitudes up to %v", part.what, v, part.most)
			}
		}
	}
	return nil
}

// cloneState is a state that shares nothing with the other one.
func cloneState(s *fl.State) *fl.State {
	out := *s
	out.Hypotheses, out.Memory, out.Idle = slices.Clone(s.Hypotheses), slices.Clone(s.Memory), slices.Clone(s.Idle)
	return &out
}
