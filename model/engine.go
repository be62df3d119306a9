package model

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Runner spreads independent jobs over workers.
type Runner = mech.Runner

// serial does all jobs itself, in order.
type serial struct{}

func (serial) Workers() int { return 1 }

func (serial) Each(n int, job func(worker, i int)) {
	for i := range n {
		job(0, i)
	}
}

// Examples are rows in memory, one after another: Labels for classes, Targets for
// values.
type Examples[F Float] struct {
	X       []F
	Labels  []int
	Targets []F
}

// lanes is how many partial sums a batch is added up in. It is fixed: results
// must not depend on the number of workers.
const lanes = 8

// chunkValues is how many activations a chunk of examples may have: about what a
// core's second-level cache holds, so that a layer finds its input there.
const chunkValues = 1 << 19

// Engine computes losses and gradients of one network. Batches are cut into
// chunks of a fixed size; chunk c goes to lane c modulo lanes; lanes are added in
// order. It is not safe for concurrent use.
type Engine[F Float] struct {
	network   *Network[F]
	objective Objective[F]
	runner    Runner
	chunk     int
	work      []*workspace[F]
	sums      [][]F // lanes but the first
	gradient  []F   // of a step in several chunks
	used      [][]F
	losses    []float64   // of every example in the batch
	faults    []error     // by lane
	stopped   func() bool // nil: nobody stops it
	noise     *chunkNoise // on what Outputs reads; nil: none
	least     int         // rows that a chunk is filled up to; see WholeSum
	weights   [][]float64 // by worker, for WholeSum
}

// workspace is one worker's memory.
type workspace[F Float] struct {
	cell    *chainCell[F]
	x, d    []F
	norms   []float64
	factors []F
	noise   []F // on words' vectors
	worker  int // whose it is
	filled  []int
}

// NewEngine prepares a network for training with an objective. A nil runner does one
// job after another.
func NewEngine[F Float](n *Network[F], o Objective[F], r Runner) (*Engine[F], error) {
	if r == nil {
		r = serial{}
	}
	if err := o.check(n.Output().Len()); err != nil {
		return nil, err
	}
	e := &Engine[F]{network: n, objective: o, runner: r, chunk: chunkSize(n), faults: make([]error, lanes)}
	for worker := range r.Workers() {
		e.work = append(e.work, &workspace[F]{
			worker: worker,
			cell:   n.chain.newCell(e.chunk),
			x:      make([]F, e.chunk*n.Input().Len()), d: make([]F, e.chunk*n.Output().Len()),
			norms: make([]float64, e.chunk), factors: make([]F, e.chunk),
		})
	}
	return e, nil
}

// maxChunk is how many rows a chunk has at most: more would leave lanes empty.
const maxChunk = 256

// chunkSize is a power of two between 16 and maxChunk: fewer would waste products. Where
// an example has many places, products are large enough without others.
func chunkSize[F Float](n *Network[F]) int {
	values, size, least := n.chain.values(), maxChunk, 16
	if n.chain.ofWords() {
		least = max(1, 256/n.Input().Len())
	}
	for size > least && size*values > chunkValues {
		size /= 2
	}
	return size
}

// check refuses a batch that does not fit, before anything is computed.
func (e *Engine[F]) check(theta []F, ex Examples[F], order []int) error {
	in, out := e.network.Input().Len(), e.network.Output().Len()
	if len(theta) != e.network.Parameters() {
		return fmt.Errorf("%d parameters for a network of %d", len(theta), e.network.Parameters())
	}
	rows := len(ex.X) / in
	targets := e.targets()
	switch {
	case len(ex.X)%in != 0:
		return fmt.Errorf("%d values are not rows of %d", len(ex.X), in)
	case e.objective.labelled() && len(ex.Labels) != rows:
		return fmt.Errorf("%d labels for %d rows", len(ex.Labels), rows)
	case !e.objective.labelled() && len(ex.Targets) != rows*targets:
		return fmt.Errorf("%d targets for %d rows of %d", len(ex.Targets), rows, targets)
	}
	for _, i := range order {
		if i < 0 || i >= rows {
			return fmt.Errorf("row %d of %d", i, rows)
		}
		if e.objective.labelled() && (ex.Labels[i] < 0 || ex.Labels[i] > mostLabel(out)) {
			return fmt.Errorf("row %d has the label %d; allowed: 0 to %d", i, ex.Labels[i], mostLabel(out))
		}
		if err := e.network.chain.check(ex.X[i*in : (i+1)*in]); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// targets is how many a row has, where there are no labels: one for every output, but of
// rows whose targets are words.
func (e *Engine[F]) targets() int {
	out := e.network.Output().Len()
	if o, ok := e.objective.(interface{ targets(outputs int) int }); ok {
		return o.targets(out)
	}
	return out
}

// each runs the batch forward, lane by lane, and hands every chunk to use, with its
// rows and the gradient at the output in w.d. Complete, which may be nil, hears of every
// lane that nothing more is added to.
func (e *Engine[F]) each(theta []F, ex Examples[F], order []int, use func(w *workspace[F], lane int, rows []int) error, complete func(lane int)) error {
	if err := e.check(theta, ex, order); err != nil {
		return err
	}
	e.network.chain.prepare(theta, len(order))
	e.losses = append(e.losses[:0], make([]float64, len(order))...)
	chunks := (len(order) + e.chunk - 1) / e.chunk
	used := min(lanes, chunks)
	e.runner.Each(used, func(worker, i int) {
		w, lane := e.work[worker], inTurn(i, used, len(e.work))
		e.faults[lane] = nil
		for c := lane; c < chunks && e.faults[lane] == nil; c += lanes {
			if e.stopped != nil && e.stopped() {
				e.faults[lane] = ErrStopped
				break
			}
			from := c * e.chunk
			g := min(e.chunk, len(order)-from)
			e.forward(w, theta, ex, order[from:from+g], e.losses[from:from+g])
			e.faults[lane] = use(w, lane, order[from:from+g])
		}
		w.cell.settle()
		if complete != nil {
			complete(lane)
		}
	})
	for _, err := range e.faults[:used] {
		if err != nil {
			return err
		}
	}
	return nil
}

// inTurn has workers, which begin with equal shares of n jobs, take lanes in turn: then
// early lanes are complete early, and what adds them up needs no memory for all.
func inTurn(i, n, workers int) int {
	if n%workers != 0 {
		return i
	}
	share := n / workers
	return i%share*workers + i/share
}

func (e *Engine[F]) forward(w *workspace[F], theta []F, ex Examples[F], order []int, losses []float64) {
	out, targets := e.network.Output().Len(), e.targets()
	rows := order
	if len(rows) < e.least {
		rows = w.fill(rows, e.least)
	}
	y := w.cell.forward(theta, e.gather(w, ex, rows), len(rows))
	for k, i := range rows {
		label := 0
		var target []F
		if e.objective.labelled() {
			label = ex.Labels[i]
		} else {
			target = ex.Targets[i*targets : (i+1)*targets]
		}
		loss := e.objective.loss(y[k*out:(k+1)*out], label, target, w.d[k*out:(k+1)*out])
		if k < len(losses) {
			losses[k] = loss
		}
	}
	dropTiny(w.d[:len(rows)*out])
}

// fill repeats the first row until there are enough.
func (w *workspace[F]) fill(rows []int, least int) []int {
	w.filled = append(w.filled[:0], rows...)
	for len(w.filled) < least {
		w.filled = append(w.filled, rows[0])
	}
	return w.filled
}

// tiny is the slope of a loss below which nothing is learned from it. On its way back it
// would soon be smaller than the smallest normal number, and processors take a hundred
// times as long for such: of a network that is sure of most examples, they are most of the
// work.
const tiny = 0x1p-80

// dropTiny makes tiny slopes 0.
func dropTiny[F Float](d []F) {
	for i, v := range d {
		if v < tiny && v > -tiny {
			d[i] = 0
		}
	}
}

// gather lays the rows of a chunk one after another; rows that lie so already are
// read where they are.
func (e *Engine[F]) gather(w *workspace[F], ex Examples[F], order []int) []F {
	in := e.network.Input().Len()
	run := 1
	for run < len(order) && order[run] == order[0]+run {
		run++
	}
	if run == len(order) {
		return ex.X[order[0]*in : (order[0]+run)*in]
	}
	for k, i := range order {
		copy(w.x[k*in:(k+1)*in], ex.X[i*in:])
	}
	return w.x[:len(order)*in]
}

// Losses sets dst to the loss of every row in order.
func (e *Engine[F]) Losses(dst []float64, theta []F, ex Examples[F], order []int) error {
	err := e.each(theta, ex, order, func(*workspace[F], int, []int) error { return nil }, nil)
	copy(dst, e.losses)
	return err
}

// Outputs sets dst to the network's outputs of every row in order, one after
// another: those of a row follow from it and the parameters alone, to the last bit, unless noise is
// added.
func (e *Engine[F]) Outputs(dst, theta []F, ex Examples[F], order []int) error {
	out := e.network.Output().Len()
	if len(dst) != len(order)*out {
		return fmt.Errorf("%d outputs do not fit %d values", len(order)*out, len(dst))
	}
	e.network.chain.prepare(theta, len(order))
	chunks := (len(order) + e.chunk - 1) / e.chunk
	var stopped atomic.Bool
	e.runner.Each(chunks, func(worker, c int) {
		if stopped.Load() || e.stopped != nil && e.stopped() {
			stopped.Store(true)
			return
		}
		from := c * e.chunk
		g, w := min(e.chunk, len(order)-from), e.work[worker]
		rows := order[from : from+g]
		if least := min(len(w.norms), e.leastAlike()); e.noise == nil && g < least {
			rows = w.fill(rows, least) // what a row gets must not follow from how many stand beside it
		}
		x := e.gather(w, ex, rows)
		if e.noise != nil {
			x = e.noised(w, x, rows)
		}
		copy(dst[from*out:(from+g)*out], w.cell.forward(theta, x, len(rows)))
	})
	if stopped.Load() {
		return ErrStopped
	}
	return nil
}

// Gradient sets dst to the gradient of the mean loss and returns that loss. For
// the root mean squared error the mean is taken below the root, over all rows and
// outputs: equation 14 of paper 000.
func (e *Engine[F]) Gradient(dst, theta []F, ex Examples[F], order []int) (float64, error) {
	if len(order) == 0 {
		return 0, fmt.Errorf("a gradient of no rows")
	}
	objective := e.objective
	_, root := objective.(rootSquaredError[F])
	if root {
		e.objective = squaredError[F]{}
		defer func() { e.objective = objective }()
	}
	chunks := (len(order) + e.chunk - 1) / e.chunk
	sums := e.laneSums(dst, min(lanes, chunks))
	out, share := e.network.Output().Len(), F(1/float64(len(order)))
	err := e.each(theta, ex, order, func(w *workspace[F], lane int, rows []int) error {
		d := w.d[:len(rows)*out]
		kernel.Scale(d, share, d) // of few values, instead of all parameters afterwards
		w.cell.backward(theta, d, sums[lane], nil, len(rows), false)
		return nil
	}, nil)
	if err != nil {
		return 0, err
	}
	for _, s := range sums[1:] {
		kernel.Axpy(1, s, dst)
	}
	loss := mean(e.losses)
	if root {
		loss = math.Sqrt(loss)
		kernel.Scale(dst, F(rootShare(loss)), dst)
	}
	return loss, nil
}

// laneSums are empty sums, the first of them the result's own memory.
func (e *Engine[F]) laneSums(dst []F, n int) [][]F {
	for len(e.sums) < n-1 {
		e.sums = append(e.sums, make([]F, e.network.Parameters()))
	}
	sums := append(e.used[:0], dst)
	sums = append(sums, e.sums[:n-1]...)
	for _, s := range sums {
		clear(s)
	}
	e.used = sums
	return sums
}

// ClippedSum adds every row's gradient, clipped to the sum's bound, to sum, and
// returns the mean loss, which is as private as the data. No row's gradient of a
// large layer is ever formed. A row whose gradient is not finite counts as zero.
func (e *Engine[F]) ClippedSum(sum *mech.LaneSum[F], theta []F, ex Examples[F], order []int) (float64, error) {
	if chunks := (len(order) + e.chunk - 1) / e.chunk; min(lanes, chunks)%len(e.work) == 0 { // see inTurn
		sum.InTurn(len(e.work))
	} else {
		sum.InTurn(0)
	}
	sum.AtOnce(e.addsAtOnce(len(order)))
	err := e.each(theta, ex, order, func(w *workspace[F], lane int, rows []int) error {
		if rows = e.finiteRows(w, theta, ex, rows); len(rows) == 0 {
			return nil
		}
		return sum.AddWeighted(lane, w.norms[:len(rows)], w.factors, func(dst, factors []F) { w.cell.add(dst, factors, len(rows)) })
	}, sum.Complete)
	return mean(e.losses), err
}

// finiteRows are those of a chunk that has gone forwards whose gradients are finite, back from
// there, with their norms in w.norms. Others' activations would spoil the sums over the chunk,
// whatever factor they are given: it is run again without them.
func (e *Engine[F]) finiteRows(w *workspace[F], theta []F, ex Examples[F], rows []int) []int {
	finite := e.rowNorms(w, theta, rows)
	if n := len(finite); n > 0 && n < len(rows) {
		var losses [maxChunk]float64
		e.forward(w, theta, ex, finite, losses[:n])
		e.rowNorms(w, theta, finite)
	}
	return finite
}

// addsAtOnce says whether the only worker adds a single chunk to each lane, by layers that
// add every value as one number. They are told.
func (e *Engine[F]) addsAtOnce(rows int) bool {
	once := len(e.work) == 1 && rows <= lanes*e.chunk && e.network.chain.canAddAtOnce()
	for _, w := range e.work {
		w.cell.addAtOnce(once)
	}
	return once
}

// rowNorms runs a chunk back and sets w.norms to the norms of its rows' gradients.
// It returns the rows whose norm is finite.
func (e *Engine[F]) rowNorms(w *workspace[F], theta []F, rows []int) []int {
	g := max(len(rows), e.least)
	clear(w.norms[:g])
	w.cell.backward(theta, w.d[:g*e.network.Output().Len()], nil, w.norms[:g], g, false)
	norms, whole := w.norms[:len(rows)], true
	for i, n := range norms {
		norms[i] = math.Sqrt(n)
		whole = whole && norms[i] <= math.MaxFloat64
	}
	if whole {
		return rows
	}
	var finite []int
	for i, n := range norms {
		if n <= math.MaxFloat64 {
			finite = append(finite, rows[i])
		}
	}
	return finite
}

// InputGradient sets dst to the gradient of one row's loss with respect to the
// row, which inversion attacks follow.
func (e *Engine[F]) InputGradient(dst, theta []F, ex Examples[F], row int) (float64, error) {
	err := e.each(theta, ex, []int{row}, func(w *workspace[F], _ int, rows []int) error {
		copy(dst, w.cell.backward(theta, w.d[:len(rows)*e.network.Output().Len()], nil, nil, len(rows), true))
		return nil
	}, nil)
	return mean(e.losses), err
}

// mean adds in order. Of nothing it is 0: a Poisson batch may be empty.
func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
