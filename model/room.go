package model

import "unsafe"

// Room is about how many bytes a learner of a model takes beside parameters, as soon as it is made: what a
// chunk of examples has in all layers, both ways, and the gradients that are kept of each. It follows from
// the layers alone, and few parameters can ask for much of it.
func Room(m Model) float64 {
	switch m := m.(type) {
	case *network[float32]:
		return m.room()
	case *network[float64]:
		return m.room()
	}
	return 0
}

func (m *network[F]) room() float64 {
	var one F
	each := 2*float64(m.chain.values()) + float64(m.chain.kept())
	return float64(chunkSize(m.Network)) * each * float64(unsafe.Sizeof(one))
}

// kept is how many values of an example's own gradients convolutions keep until their weight is known.
// What others keep is no more than they compute.
func (c *chain[F]) kept() (values int) {
	for _, l := range c.layers {
		switch l := l.(type) {
		case *conv[F]:
			values += l.parameters()
		case *residual[F]:
			values += l.inner.kept()
			if l.shortcut != nil {
				values += l.shortcut.kept()
			}
		}
	}
	return values
}
