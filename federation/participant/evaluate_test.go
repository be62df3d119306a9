package participant

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/ledger"
)

// evaluatedRun has one round of training, and then an evaluation.
const evaluatedRun = `seed: 3
data: {kind: school, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: 1, weights: equal, local: {epochs: 1, step: 0.01, batch: 20}}
privacy: {relation: add-remove, public_size: 20, epsilon: 2, delta: 1.0e-4, clip: 1, noise: exact}
judge: {evaluate: {epsilon: 1}}
`

const evaluatingPolicy = `evaluation: true
ceilings:
  - {unit: example, relation: add-remove, claim: proved, epsilon: 4, delta: 1.0e-4}
`

// evaluatedWorld is a hostile server of evaluatedRun, its broadcasts, and rows.
func evaluatedWorld(t *testing.T, run string) (*hostileWorld, *hostileServer, *data.Client) {
	t.Helper()
	w := newHostileWorld(t)
	w.policy = evaluatingPolicy
	h, a, ok := w.ask(run, data.Shape{Features: 3})
	if !ok {
		t.Fatal("the plan is refused")
	}
	st := a.Start()
	for round := range 2 {
		st.Round = round
		b, err := a.Broadcast(st)
		if err != nil {
			t.Fatal(err)
		}
		h.broadcasts = append(h.broadcasts, transfer.EncodeBroadcast(b))
	}
	models, err := transfer.ModelFile(st.Hypotheses, len(st.Hypotheses))
	if err != nil {
		t.Fatal(err)
	}
	h.end = [][]byte{h.broadcasts[1], models}
	rows := fuzzer{rand.New(rand.NewPCG(1, 2))}.rows(22, 3, false)
	rows.Held = fuzzer{rand.New(rand.NewPCG(3, 2))}.rows(9, 3, false)
	return w, h, rows
}

// TestEvaluationLooksTheSame: whatever a participant holds out, and whether it holds out
// anything, a server sees the same calls, lengths and words; and the local figures, which
// do tell, are with the participant.
func TestEvaluationLooksTheSame(t *testing.T) {
	w, h, rows := evaluatedWorld(t, evaluatedRun)
	want := strings.Join(w.observe(h, rows), "\n")
	if w.err != nil || w.report.Released != 2 || w.report.Local == nil || w.report.Local.Examples != 9 || w.report.Local.RMSE == nil {
		t.Fatalf("%v: %+v", w.err, w.report)
	}
	if !strings.Contains(want, "offer of round 1: 40 bytes") || !strings.Contains(want, "part of 40 bytes") {
		t.Fatalf("no counts were released:\n%s", want)
	}
	held := rows.Held
	for name, change := range map[string]func() *data.Client{
		"a row less":    func() *data.Client { c := held.Pick([]int{0, 1, 2, 3, 4, 5, 6, 7}); return &c },
		"an empty part": func() *data.Client { return &data.Client{Rows: data.Rows{Features: 3}} },
		"none":          func() *data.Client { return nil },
		"wild rows": func() *data.Client {
			c := held.Pick([]int{0, 1, 2})
			c.X[0], c.X[3], c.Y[2] = math.NaN(), 1e308, math.Inf(-1)
			return &c
		},
		"rows that do not fit": func() *data.Client {
			return &data.Client{Rows: data.Rows{Features: 2, X: []float64{1, 2}, Y: []float64{1}}}
		},
		"a torn row": func() *data.Client {
			return &data.Client{Rows: data.Rows{Features: 3, X: []float64{1}, Y: []float64{1}}}
		},
	} {
		other := *rows
		other.Held = change()
		if got := strings.Join(w.observe(h, &other), "\n"); got != want || w.err != nil {
			t.Errorf("%s: %v, the server sees\n%s\nnot\n%s", name, w.err, got, want)
		}
	}
}

// TestEvaluationNeedsThePolicy: without evaluation: true, or without a ceiling that covers
// it, the one round is declined before anything of it is fetched, and training is as ever.
func TestEvaluationNeedsThePolicy(t *testing.T) {
	w, h, rows := evaluatedWorld(t, evaluatedRun)
	for policy, code := range map[string]string{
		strings.Replace(evaluatingPolicy, "evaluation: true", "evaluation: false", 1): "policy",
		strings.Replace(evaluatingPolicy, "evaluation: true\n", "", 1):                "policy",
		strings.Replace(evaluatingPolicy, "epsilon: 4", "epsilon: 2.3", 1):            "budget",
		evaluatingPolicy + "minimum_noise: 1000\n":                                    "",
	} {
		w.policy = policy
		seen := strings.Join(w.observe(h, rows), "\n")
		if code == "" { // not even training is allowed
			if !errors.Is(w.err, fl.ErrRefused) || strings.Contains(seen, "offer") {
				t.Errorf("%s: %v\n%s", policy, w.err, seen)
			}
			continue
		}
		_, after, asked := strings.Cut(seen, "part of") // of round 0
		if !asked || !strings.Contains(after, "decline of round 1, of the run false: "+code) || strings.Contains(after, "offer") {
			t.Errorf("%s: the server sees\n%s", policy, seen)
		}
		if w.err != nil || w.report.Released != 1 || w.report.Declined != 1 || w.report.Local == nil || strings.Count(after, "broadcast from") != 2 { // the models at the end
			t.Errorf("%s: %v, %+v\n%s", policy, w.err, w.report, seen)
		}
	}
}

// TestServerCannotEvaluateAsItLikes: not without the plan, not twice, not before it goes on
// training, and not other models than it gives out.
func TestServerCannotEvaluateAsItLikes(t *testing.T) {
	for name, c := range map[string]struct {
		run    string
		order  []int
		end    func(h *hostileServer)
		offers int
		says   string // the participant ends with; empty: well
		sees   string
	}{
		"as planned":              {evaluatedRun, []int{0, 1}, nil, 2, "", ""},
		"not in the plan":         {strings.Replace(evaluatedRun, "judge: {evaluate: {epsilon: 1}}", "", 1), []int{0, 1}, nil, 1, "the plan has 1 rounds", ""},
		"twice":                   {evaluatedRun, []int{0, 1, 1, 1}, nil, 2, "", "decline of round 1, of the run false: past"},
		"before the last round":   {evaluatedRun, []int{1, 0}, nil, 1, "", "decline of round 0, of the run false: past"},
		"with a further round":    {evaluatedRun, []int{0, 1, 2}, nil, 2, "the plan has 2 rounds", ""},
		"a broadcast of training": {evaluatedRun, []int{0, 1}, func(h *hostileServer) { h.broadcasts[1] = h.broadcasts[0] }, 1, "round 2 with", ""},
		"other models": {evaluatedRun, []int{0, 1}, func(h *hostileServer) {
			b, err := transfer.DecodeBroadcast(h.end[0])
			if err != nil {
				t.Fatal(err)
			}
			b.Hypotheses[0]++
			h.end = [][]byte{transfer.EncodeBroadcast(b), h.end[1]}
		}, 2, "other models evaluated", ""},
	} {
		w, h, rows := evaluatedWorld(t, c.run)
		h.order, h.broadcasts = c.order, append(h.broadcasts, h.broadcasts[1])
		if c.end != nil {
			c.end(h)
		}
		seen := strings.Join(w.observe(h, rows), "\n")
		if (w.err == nil) != (c.says == "") || w.err != nil && !strings.Contains(w.err.Error(), c.says) {
			t.Errorf("%s: the participant ends with %v, want %q", name, w.err, c.says)
		}
		if strings.Count(seen, "offer of") != c.offers || !strings.Contains(seen, c.sees) {
			t.Errorf("%s: want %d offers and %q; the server sees\n%s", name, c.offers, c.sees, seen)
		}
	}
}

// lateServer says of everything that it comes too late.
type lateServer struct{ wire.FederationClient }

func (lateServer) Offer(context.Context, *wire.OfferRequest) (*wire.OfferReply, error) {
	return nil, transfer.ToWire(transfer.Refuse(transfer.ReasonLate, "the round is over"))
}

// TestLateEvaluationIsSettled: counts that were stored when a participant was killed, and
// that the server does not want any more, are given up at the end; they stay paid for.
func TestLateEvaluationIsSettled(t *testing.T) {
	rows := someRows()
	c, err := newCustomer(t, strings.Replace(evaluatedRun, "batch: 20", "batch: 5", 1), evaluatingPolicy, plane, rows)
	if err != nil {
		t.Fatal(err)
	}
	s := c.session
	if s.half.Learner, err = s.half.Algorithm.Model().Learner(); err != nil {
		t.Fatal(err)
	}
	b, err := s.half.Algorithm.Broadcast(&fl.State{Round: 1, Hypotheses: make([]float64, s.parameters), Idle: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.count(s, s.evaluationSlot(), b); err != nil {
		t.Fatal(err)
	}
	before, err := c.book.Load(s.evaluationSlot())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.count(s, s.evaluationSlot(), b); err == nil {
		t.Error("counts that are stored were made again")
	}
	if after, err := c.book.Load(s.evaluationSlot()); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the stored counts changed: %v", err)
	}
	if !c.owes(s) {
		t.Error("stored counts are not owed")
	}
	c.o.Client = lateServer{}
	if err := c.takeHome(t.Context(), s, &wire.Finished{Stopped: "rounds"}); !errors.Is(err, transfer.ErrNothing) {
		t.Fatal(err)
	}
	if e, ok := c.book.Entry(s.evaluationSlot()); !ok || e.Status != ledger.Abandoned || c.report.Late != 1 {
		t.Errorf("the entry is %+v", e)
	}
}

// TestTrainersAreNotEvaluated: a trainer cannot be asked about held-out examples, so that
// its participant declines, whatever the policy says, and has no figures of its own.
func TestTrainersAreNotEvaluated(t *testing.T) {
	rows := someRows()
	rows.Held = someRows()
	c, err := newCustomer(t, strings.Replace(evaluatedRun, "batch: 20", "batch: 5", 1), evaluatingPolicy, plane, rows)
	if err != nil {
		t.Fatal(err)
	}
	half := c.session.half
	if half.Learner, err = half.Algorithm.Model().Learner(); err != nil {
		t.Fatal(err)
	}
	c.report.Personal = make([]float64, half.Parameters)
	if err := c.willEvaluate(c.session); err != nil || c.judge(c.session) == nil {
		t.Errorf("without a trainer the evaluation is declined: %v", err)
	}
	half.Trained = true
	if err := c.willEvaluate(c.session); err == nil || !strings.Contains(err.Error(), "trainer") || c.judge(c.session) != nil {
		t.Errorf("with a trainer: %v", err)
	}
}

// TestFiguresOfAnEarlierRunGo: local figures are their owner's alone, and of this run.
func TestFiguresOfAnEarlierRunGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	if err := writeFigures(path, &evaluate.Local{Examples: 3}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for range 2 {
		if err := writeFigures(path, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Error("an earlier run's figures stay")
		}
	}
}
