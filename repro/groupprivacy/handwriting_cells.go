package groupprivacy

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// rows are finished cells of full runs, to be taken up before any is computed.
//
//go:embed rows
var rows embed.FS

// task is what a cell of the handwriting study is.
type task string

const (
	federated task = "federated"
	ceiling   task = "ceiling"    // HandwritingSet.ceiling
	strict    task = "few rounds" // for noise that leaves the finite numbers in more
)

// writing is everything that a cell, one run, depends on.
type writing struct {
	Set     string  `json:"set"` // HandwritingSet.Name
	Task    task    `json:"task"`
	Loss    string  `json:"loss"`
	Nu      float64 `json:"nu,omitempty"`
	Seed    uint64  `json:"seed"`
	Rounds  int     `json:"rounds"`
	Clients int     `json:"clients,omitempty"` // a round
	Changed string  `json:"changed,omitempty"` // by --set and by the scale
}

// String tells a cell in words: errors name it so.
func (w writing) String() string {
	if w.Task == ceiling {
		return fmt.Sprintf("%s, centrally, %d passes, seed %d", w.Set, w.Rounds, w.Seed)
	}
	return fmt.Sprintf("%s, %s, nu %v, %d rounds of %d clients, seed %d", w.Set, w.Loss, w.Nu, w.Rounds, w.Clients, w.Seed)
}

// written is what came of a cell. Accuracies are over all pictures of all held-out writers,
// each writer under the model whose loss is least.
type written struct {
	Accuracy event.Number `json:"accuracy"` // of the last models
	Curve    []judged     `json:"curve"`    // null in the first lines that were committed
}

// judged is how far a run has come: the held-out writers' cross entropy.
type judged struct {
	Round int          `json:"round"`
	Loss  event.Number `json:"loss"`
}

type writtenRecord = lab.Record[writing, written]

// handwritingStudy is the study at a scale.
type handwritingStudy struct {
	l          *lab.Lab
	paper      handwritingFigures
	sets       []HandwritingSet
	losses     []string
	large, all []float64 // noise of the papers' network, and of the small one
	strict     bool      // the small network is trained at epsilon 1 a release, too
}

func newHandwritingStudy(l *lab.Lab) (h handwritingStudy, err error) {
	h = handwritingStudy{l: l, sets: append(slices.Clone(HandwritingSets), SmallHandwriting), losses: []string{"cross-entropy"}}
	if err := lab.Expected("handwriting.json", &h.paper); err != nil {
		return h, err
	}
	if h.large, h.all, err = handwritingNoise(l, h.paper); err != nil {
		return h, err
	}
	h.strict = len(h.all) == len(h.paper.Rows) // the caller has set no noise
	switch l.Scale {
	case lab.Full:
		h.losses = append(h.losses, "rmse")
	case lab.Smoke:
		h.sets = h.sets[:1]
	}
	return h, nil
}

func (h handwritingStudy) noise(s HandwritingSet) []float64 {
	if s.Small {
		return h.all
	}
	return h.large
}

// run is the run file of a cell, but for what the caller sets.
func (h handwritingStudy) run(s HandwritingSet, of task, loss string, nu float64) config.Run {
	var r config.Run
	switch {
	case of == ceiling:
		return s.ceiling(h.l.Scale)
	case h.l.Scale == lab.Full:
		r = s.long(loss, nu)
	default:
		r = s.Run(h.l.Scale, loss, nu)
	}
	if of == strict {
		r.Algorithm.Rounds = 5
	}
	// The last models are returned, so that nobody has to pay for validation: it only shows.
	r.Algorithm.Stop.ValidationClients = 0
	r.Algorithm.Stop.Every = 10
	if r.Algorithm.Rounds <= 30 {
		r.Algorithm.Stop.Every = 5
	}
	return r
}

// changed are the settings that no cell of full scale has. The small network's runs are the
// same at quick scale.
func (h handwritingStudy) changed(s HandwritingSet) string {
	if h.l.Scale == lab.Full || h.l.Scale == lab.Quick && s.Small {
		return strings.Join(h.l.Set, " ")
	}
	return strings.Join(append([]string{h.l.Scale}, h.l.Set...), " ")
}

// cells are the keys of the scale, a seed after another and in each the long ones first:
// whoever stops early has whole tables. Ceilings of the papers' network are of full scale.
func (h handwritingStudy) cells() (keys []writing, runs map[writing]config.Run, err error) {
	runs = map[writing]config.Run{}
	add := func(s HandwritingSet, of task, loss string, nu float64) error {
		run, err := h.l.Resolve(h.run(s, of, loss, nu))
		if err != nil {
			return err
		}
		for seed := range h.l.Seeds {
			k := writing{Set: s.Name, Task: of, Loss: loss, Nu: nu, Seed: uint64(seed + 1), Rounds: run.Algorithm.Rounds, Changed: h.changed(s)}
			if of != ceiling {
				k.Clients = run.Algorithm.ClientsPerRound
			}
			run.Seed = k.Seed
			keys, runs[k] = append(keys, k), run
		}
		return nil
	}
	for _, s := range h.sets {
		if s.Small || h.l.Scale != lab.Quick {
			if err := add(s, ceiling, "cross-entropy", 0); err != nil {
				return nil, nil, err
			}
		}
		for _, loss := range h.losses {
			for _, nu := range h.noise(s) {
				if err := add(s, federated, loss, nu); err != nil {
					return nil, nil, err
				}
			}
		}
		if s.Small && h.strict {
			for _, nu := range []float64{0, smallParameters} {
				if err := add(s, strict, "cross-entropy", nu); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b writing) int { return int(a.Seed) - int(b.Seed) })
	return keys, runs, nil
}

func runHandwriting(l *lab.Lab) (study.Study, error) {
	h, err := newHandwritingStudy(l)
	if err != nil {
		return study.Study{}, err
	}
	keys, runs, err := h.cells()
	if err != nil {
		return study.Study{}, err
	}
	committed, err := rows.ReadFile("rows/handwriting.jsonl")
	if err != nil {
		return study.Study{}, fmt.Errorf("committed cells: %w", err)
	}
	finished, err := lab.Fill(l, "handwriting.jsonl", committed, keys, func(l *lab.Lab, k writing) (written, error) {
		run := runs[k]
		run.Run.Workers = l.Share()
		return writeOne(l, run)
	})
	if err != nil {
		return study.Study{}, err
	}
	network, err := papersParameters()
	if err != nil {
		return study.Study{}, err
	}
	return h.study(finished, keys, network), nil
}

// writeOne trains a cell.
func writeOne(l *lab.Lab, run config.Run) (w written, err error) {
	res, err := l.Result(run)
	if err != nil {
		return w, err
	}
	if res.Metrics.Accuracy == nil {
		return w, fmt.Errorf("the run has no accuracy")
	}
	w.Accuracy = digits(res.Metrics.Accuracy.Value)
	for _, r := range res.History.Rounds {
		if r.Round%run.Algorithm.Stop.Every == 0 || r.Round == run.Algorithm.Rounds { // between, the last judgement's is repeated
			w.Curve = append(w.Curve, judged{r.Round, digits(r.Loss)})
		}
	}
	return w, nil
}

// digits leaves what a committed line is worth: five of them.
func digits(v event.Number) event.Number {
	if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
		return v
	}
	return event.Number(math.Round(float64(v)*1e5) / 1e5)
}
