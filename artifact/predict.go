package artifact

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// chunkRows is how many rows a worker takes at a time: few enough for a core's cache.
const chunkRows = 1024

// Predict answers encoded rows, one after another in x, with the client's model: dst
// gets every class's probability for each of them, or the number in the target's unit
// (Outputs values a row). It says which model was chosen, and why.
func (m *Model) Predict(dst, x []float64, client string) (Choice, error) {
	c, err := m.Choose(client)
	if err != nil {
		return c, err
	}
	return c, m.PredictBy(dst, x, c)
}

// PredictBy is Predict with a model that was chosen before. It uses every core.
func (m *Model) PredictBy(dst, x []float64, c Choice) error {
	rows := len(x) / max(1, m.Shape.Features)
	switch {
	case m.Shape.Pictures():
		return fmt.Errorf("%s: its models take pictures, not rows", m.Path)
	case len(x) != rows*m.Shape.Features:
		return fmt.Errorf("%d values are not rows of %d inputs", len(x), m.Shape.Features)
	case len(dst) != rows*m.Outputs():
		return fmt.Errorf("room for %d answers; %d rows have %d", len(dst), rows, rows*m.Outputs())
	}
	chunks := (rows + chunkRows - 1) / chunkRows
	return m.each(chunks, func(w *worker, i int) error {
		from, to := i*chunkRows, min((i+1)*chunkRows, rows)
		return w.predict(dst[from*m.Outputs():to*m.Outputs()], x[from*m.Shape.Features:to*m.Shape.Features], &c)
	})
}

// each does jobs on all cores, every one by a worker with memory of its own.
func (m *Model) each(jobs int, do func(w *worker, i int) error) error {
	workers := min(jobs, runtime.GOMAXPROCS(0))
	if workers < 1 {
		return nil
	}
	var next atomic.Int64
	faults := make([]error, workers)
	var busy sync.WaitGroup
	for k := range workers {
		busy.Go(func() {
			w, err := m.worker()
			if err != nil {
				faults[k] = err
				return
			}
			defer m.workers.Put(w)
			for i := int(next.Add(1)) - 1; i < jobs; i = int(next.Add(1)) - 1 {
				if faults[k] = do(w, i); faults[k] != nil {
					return
				}
			}
		})
	}
	busy.Wait()
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// worker is one goroutine's memory.
type worker struct {
	m       *Model
	learner model.Learner
	client  data.Client
	nothing []float64 // targets of rows that have none
	scaled  []float64
	outputs []float64
	places  []int // of pictures in their batch

	answers  []float64 // of a chunk of a table: see table.go
	gathered []float64
	loose    []float64
}

// worker is one that is free, or a new one.
func (m *Model) worker() (*worker, error) {
	if w, ok := m.workers.Get().(*worker); ok {
		return w, nil
	}
	l, err := m.model.Learner()
	if err != nil {
		return nil, err
	}
	return &worker{m: m, learner: l, nothing: make([]float64, chunkRows)}, nil
}

// lay readies at most chunkRows rows for the learner, scaled as the model wants them.
func (w *worker) lay(x, y []float64, c *Choice) {
	if c.scale != nil {
		w.scaled = append(w.scaled[:0], x...)
		features := len(c.scale)
		for from := 0; from < len(w.scaled); from += features {
			row := w.scaled[from : from+features]
			for j := range row {
				row[j] = (row[j] - c.centre[j]) / c.scale[j]
			}
		}
		x = w.scaled
	}
	w.client = data.Client{Rows: data.Rows{X: x, Y: y, Features: w.m.Shape.Features}}
}

// show readies some pictures of a batch for the learner.
func (w *worker) show(im *data.Images, from, to int) {
	w.places = w.places[:0]
	for i := from; i < to; i++ {
		w.places = append(w.places, i)
	}
	w.client = data.Client{Pictures: data.Pictures{Images: im, Index: w.places}}
}

// raw are the model's own outputs for what was laid or shown; valid until the next call.
func (w *worker) raw(c *Choice) (outputs []float64, each int, err error) {
	w.outputs, each, err = w.learner.Outputs(w.outputs[:0], c.theta, &w.client)
	return w.outputs, each, err
}

// losses sets dst to the loss of every example that was laid or shown.
func (w *worker) losses(dst []float64, c *Choice) error {
	return w.learner.Losses(dst, c.theta, &w.client)
}

// predict sets dst to the answers for at most chunkRows rows.
func (w *worker) predict(dst, x []float64, c *Choice) error {
	w.lay(x, w.nothing[:len(x)/w.m.Shape.Features], c)
	return w.answer(dst, c)
}

// answer sets dst to the answers for what was laid or shown.
func (w *worker) answer(dst []float64, c *Choice) error {
	outputs, each, err := w.raw(c)
	if err != nil {
		return err
	}
	m := w.m
	classes := m.Shape.Classes
	switch {
	case m.projects():
		copy(dst, outputs)
	case classes == 0:
		low, width := 0.0, 1.0
		if m.Encoding != nil {
			unit := m.Encoding.Unit()
			low, width = unit[0], unit[1]-unit[0]
		}
		for i, out := range outputs {
			dst[i] = out*width + low
		}
	case each > 1:
		for i := 0; i*each < len(outputs); i++ {
			softmax(dst[i*each:(i+1)*each], outputs[i*each:(i+1)*each])
		}
	default:
		for i, out := range outputs {
			dst[2*i], dst[2*i+1] = m.probabilities(out)
		}
	}
	return nil
}

// probabilities are those of class 0 and class 1, from the one output of a model of two
// classes: a logit, but under squared errors the probability itself. The hinge loss
// gives a decision and no probability.
func (m *Model) probabilities(out float64) (no, yes float64) {
	switch m.loss {
	case model.SquaredError, model.HalfSquaredError, model.RMSE:
		yes = min(max(out, 0), 1)
		return 1 - yes, yes
	case model.Hinge:
		if out > 0 {
			return 0, 1
		}
		return 1, 0
	}
	// Of both signs by one exponential, so that neither loses digits near 0.
	e := math.Exp(-math.Abs(out))
	less, more := e/(1+e), 1/(1+e)
	if out > 0 {
		return less, more
	}
	return more, less
}

func softmax(p, outputs []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, v := range outputs {
		top = max(top, v)
	}
	for k, v := range outputs {
		p[k] = math.Exp(v - top)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
}

// largestAt is where the largest value is, the first of equals: the chosen class.
func largestAt(p []float64) int {
	best := 0
	for k, v := range p {
		if v > p[best] {
			best = k
		}
	}
	return best
}
