package model

// leastWaiting is how many rows at least may wait for a product; a whole chunk always may.
const leastWaiting = 32

// waitingRows are inputs of a linear layer, and gradients at its output, that are to be
// added to two sums. Where the layer before writes them to their place (denseCell.inputs),
// inputs are never copied.
type waitingRows[F Float] struct {
	in, out []F
	at      int // row that the present chunk begins at, where it is laid by the layer before
	end     int // behind the last row that waits
	sums    [2]waitingSum[F]
}

type waitingSum[F Float] struct {
	acc  []F
	rows []int
}

// chunk is how many examples the cell takes at most.
func (d *denseCell[F]) chunk() int { return len(d.kept) / d.out }

// inputs is where the next chunk's inputs are to be laid: not over those that wait. Nil:
// wherever the caller likes, for none has ever waited.
func (d *denseCell[F]) inputs() []F {
	w := &d.waiting
	if w.in == nil {
		return nil
	}
	if w.end > w.at {
		w.at += d.chunk()
	}
	if (w.at+d.chunk())*d.in > len(w.in) {
		d.settle()
	}
	return w.in[w.at*d.in:][:d.chunk()*d.in]
}

// wait has row i of the present chunk wait with others of the same sum.
func (d *denseCell[F]) wait(acc, in []F, i int) {
	w := &d.waiting
	if w.in == nil {
		all := max(leastWaiting, d.chunk())
		w.in, w.out = make([]F, all*d.in), make([]F, all*d.out)
	}
	row := w.at + i
	if &in[0] != &w.in[w.at*d.in] { // the caller's own: the first layer's, and once others'
		if w.end*d.in == len(w.in) {
			d.settle()
		}
		row = w.end
		copy(w.in[row*d.in:], in[i*d.in:(i+1)*d.in])
	}
	copy(w.out[row*d.out:], d.kept[i*d.out:(i+1)*d.out])
	w.end = max(w.end, row+1)
	s := &w.sums[0]
	if len(s.rows) > 0 && &s.acc[0] != &acc[0] {
		if s = &w.sums[1]; len(s.rows) > 0 && &s.acc[0] != &acc[0] {
			d.flush(s)
		}
	}
	s.acc, s.rows = acc, append(s.rows, row)
}

func (d *denseCell[F]) flush(s *waitingSum[F]) {
	if len(s.rows) > 0 {
		d.accumulateSome(s.acc, d.waiting.in, d.waiting.out, s.rows)
		s.rows = s.rows[:0]
	}
}

// settle adds what waits.
func (d *denseCell[F]) settle() {
	d.flush(&d.waiting.sums[0])
	d.flush(&d.waiting.sums[1])
	d.waiting.at, d.waiting.end = 0, 0
}
