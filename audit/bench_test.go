package audit

import "testing"

// BenchmarkMatching is one evaluation of DLG's matching loss with its gradient: a
// parameter gradient and two input gradients.
func BenchmarkMatching(b *testing.B) {
	for _, n := range []Network{LeNet(62), Papers(62), Untouched(62)} {
		b.Run(n.Name, func(b *testing.B) {
			v, err := NewVictim(n, "cross-entropy", 0.1, 1)
			if err != nil {
				b.Fatal(err)
			}
			r, err := v.Send(drawn(n, 0), 3, Sanitiser{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			g, err := r.Gradient()
			if err != nil {
				b.Fatal(err)
			}
			m, err := newMatcher(n, "cross-entropy", r.Before, g)
			if err != nil {
				b.Fatal(err)
			}
			at := normals(1, m.inputs+m.outputs)
			gradient := make([]float64, len(at))
			for b.Loop() {
				if _, err := m.joint(at, gradient); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
