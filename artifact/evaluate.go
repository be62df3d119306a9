package artifact

import (
	"context"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/data/source"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

// Evaluation is how models answer labelled rows. Its keys are stable: docs/json.md.
type Evaluation struct {
	Rows    int `json:"rows"`     // that were judged
	LeftOut int `json:"left_out"` // rows without a target
	// Unjudged are clients with a single row, which cannot both choose and judge a
	// cluster's model.
	Unjudged []string        `json:"unjudged"`
	Metrics  metrics.Figures `json:"metrics"` // of all rows, with intervals over clients
	Clients  []Judged        `json:"clients"`
	// NotCovered says what publishing these figures means.
	NotCovered []string `json:"not_covered"`
}

// Judged is how one client's rows were answered.
type Judged struct {
	Used
	Metrics metrics.Figures `json:"metrics"` // with intervals over its rows
}

// uncovered is what nobody pays for where figures are computed from examples as they are.
const uncovered = "these figures: they are computed from the examples as they are, and publishing them is a release of its own that no privacy accounting covers"

// EvaluateTable judges the models on the rows of a table that have the target. A client
// that was not there, of a method with clusters, has every row judged by the cluster's
// model that fits its other rows best: a choice by the judged row would flatter it.
func (m *Model) EvaluateTable(ctx context.Context, t Table) (Evaluation, error) {
	if err := m.reads(&t); err != nil {
		return Evaluation{}, err
	}
	e := &evaluating{m: m, t: &t, cluster: t.Cluster, place: map[string]int{}}
	t.Keep = nil
	r := m.reading(&t)
	r.NoTarget, r.LeaveOut = m.projects(), !m.projects() // a projection asks for no target
	tally, err := r.Each(ctx, e.take)
	if err != nil {
		return Evaluation{}, err
	}
	out, err := e.figures()
	out.LeftOut = tally.LeftOut
	return out, err
}

// evaluating gathers answers by client.
type evaluating struct {
	m       *Model
	t       *Table // nil: pictures or texts
	cluster *int   // of clients that were not there; nil: each finds its own
	place   map[string]int
	clients []*answered
}

// answered is one client's rows, as one model or, by cluster, as all of them answer.
type answered struct {
	used    Used
	models  []Choice
	outputs [][]float64 // by model
	losses  [][]float64 // by model, where there are several
	each    int
	targets []float64

	x, y []float64 // of the batch at hand
}

// client is the one of a name, new if it is not there.
func (e *evaluating) client(name string) (*answered, error) {
	if at, ok := e.place[name]; ok {
		return e.clients[at], nil
	}
	a := &answered{used: Used{Client: name}}
	c, err := e.m.Choose(name)
	switch {
	case err == nil:
		a.models = []Choice{c}
	case e.m.Newcomer != RoleCluster:
		return nil, err
	case e.cluster != nil:
		if c, err = e.m.Cluster(*e.cluster); err != nil {
			return nil, err
		}
		a.models = []Choice{c}
	default:
		for k := range e.m.Clusters() {
			c, err := e.m.Cluster(k)
			if err != nil {
				return nil, err
			}
			a.models = append(a.models, c)
		}
	}
	a.used.Model, a.used.Why = a.models[0].String(), a.models[0].Why
	a.outputs, a.losses = make([][]float64, len(a.models)), make([][]float64, len(a.models))
	e.place[name] = len(e.clients)
	e.clients = append(e.clients, a)
	return a, nil
}

// take has a batch's rows answered, client by client on all cores.
func (e *evaluating) take(b *source.Batch) error {
	features := e.m.Shape.Features
	var here []*answered
	for i := range b.Rows {
		a, err := e.client(e.t.client(b, i))
		if err != nil {
			return err
		}
		if len(a.y) == 0 {
			here = append(here, a)
		}
		a.x = append(a.x, b.X[i*features:(i+1)*features]...)
		if e.m.projects() {
			a.y = append(a.y, 0) // until answer knows the row's squared length
		} else {
			a.y = append(a.y, b.Y[i])
		}
	}
	err := e.m.each(len(here), func(w *worker, i int) error { return here[i].answer(w) })
	for _, a := range here {
		a.targets = append(a.targets, a.y...)
		a.x, a.y = a.x[:0], a.y[:0]
	}
	return err
}

// answer runs the batch's rows through the models.
func (a *answered) answer(w *worker) error {
	features := w.m.Shape.Features
	for k := range a.models {
		for from := 0; from < len(a.y); from += chunkRows {
			to := min(from+chunkRows, len(a.y))
			w.lay(a.x[from*features:to*features], a.y[from:to], &a.models[k])
			if w.m.projects() {
				kept, whole, err := model.Captured(w.learner, a.models[k].theta, &w.client)
				if err != nil {
					return err
				}
				copy(a.y[from:to], whole)
				a.outputs[k], a.each = append(a.outputs[k], kept...), 1
				continue
			}
			if w.m.Shape.Vocabulary > 0 { // a row's loss is all that is kept of its scores
				at := len(a.outputs[k])
				a.outputs[k], a.each = slices.Grow(a.outputs[k], to-from)[:at+to-from], 1
				if err := w.losses(a.outputs[k][at:], &a.models[k]); err != nil {
					return err
				}
				a.losses[k] = a.outputs[k]
				continue
			}
			outputs, each, err := w.raw(&a.models[k])
			if err != nil {
				return err
			}
			a.outputs[k], a.each = append(a.outputs[k], outputs...), each
			if len(a.models) > 1 {
				at := len(a.losses[k])
				a.losses[k] = slices.Grow(a.losses[k], to-from)[:at+to-from]
				if err := w.losses(a.losses[k][at:], &a.models[k]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// figures are those of everybody and of each.
func (e *evaluating) figures() (Evaluation, error) {
	out := Evaluation{Unjudged: []string{}, Clients: []Judged{}, NotCovered: []string{uncovered}}
	task := metrics.Task{Classes: e.m.Shape.Classes, Loss: e.m.loss, Projection: e.m.projects(), Words: e.m.Shape.Vocabulary > 0}
	if task.Projection {
		task.Classes = 0
	}
	if e.m.Encoding != nil {
		task.Unit = e.m.Encoding.Unit()
	}
	var all []metrics.Answers
	for _, a := range e.clients {
		if len(a.models) > 1 && len(a.targets) < 2 {
			out.Unjudged = append(out.Unjudged, a.used.Client)
			continue
		}
		own := metrics.Answers{Outputs: a.honest(), Each: a.each, Targets: a.targets}
		figures, err := metrics.OfClient(task, own)
		if err != nil {
			return out, fmt.Errorf("client %q: %w", a.used.Client, err)
		}
		a.used.Rows = len(a.targets)
		out.Rows += len(a.targets)
		out.Clients = append(out.Clients, Judged{Used: a.used, Metrics: figures})
		all = append(all, own)
	}
	switch {
	case len(all) == 0 && (e.t == nil || len(out.Unjudged) > 0):
		return out, fmt.Errorf("nothing is left to judge the models by: clients that were not there (%s) have one example each, which cannot both choose and judge a cluster's model; give more of them, or name the cluster (--cluster)", few(out.Unjudged))
	case len(all) == 0:
		return out, fmt.Errorf("no row has a target in the column %s: there is nothing to judge the models by", e.m.Encoding.Target)
	}
	var err error
	out.Metrics, err = metrics.Overall(task, all)
	return out, err
}

// honest are the outputs that the rows are judged by: of several models those of the one
// that fits the client's other rows best.
func (a *answered) honest() []float64 {
	if len(a.models) == 1 {
		return a.outputs[0]
	}
	totals := make([]float64, len(a.models))
	for k := range a.models {
		for _, l := range a.losses[k] {
			totals[k] += l
		}
	}
	count := make([]int, len(a.models))
	out := make([]float64, 0, len(a.outputs[0]))
	for i := range a.targets {
		best := 0
		for k := range totals {
			if totals[k]-a.losses[k][i] < totals[best]-a.losses[best][i] {
				best = k
			}
		}
		count[best]++
		out = append(out, a.outputs[best][i*a.each:(i+1)*a.each]...)
	}
	most := slices.Index(count, slices.Max(count))
	a.used.Model = a.models[most].String()
	a.used.Why = fmt.Sprintf("of %d clusters each example is judged with the one that fits the client's other examples best", len(a.models))
	return out
}
