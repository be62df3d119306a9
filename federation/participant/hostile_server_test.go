package participant

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

const hostilePolicy = `ceilings:
  - {unit: example, relation: add-remove, claim: proved, epsilon: 1000, delta: 1.0e-4}
  - {unit: example, relation: replace-one, claim: proved, epsilon: 1000, delta: 1.0e-4}
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 1.0e+9, epsilon_switch: 1.0e+18}
`

// TestHostileServerSeesTheSame: against pairs of neighbouring data, whatever plan and
// broadcasts a server chooses, the calls that it gets, their order, their lengths and
// every public word in them are the same. At least a third of the trials must end in a
// release, or the test would show nothing.
func TestHostileServerSeesTheSame(t *testing.T) {
	trials := 1000
	switch {
	case *federationtest.Soak:
		trials = 20_000
	case testing.Short():
		trials = 50
	}
	w := newHostileWorld(t)
	released, declined, differences, left := 0, 0, 0, 0
	for trial, made := 0, 0; made < trials; trial++ {
		f := fuzzer{rand.New(rand.NewPCG(uint64(trial), 77))}
		text, features, group := f.plan()
		h, algorithm, ok := w.ask(text, data.Shape{Features: features})
		if !ok { // a plan that nobody would read any further: it does not count
			left++
			continue
		}
		made++
		run, err := config.Resolve([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		h.broadcasts = f.broadcasts(algorithm, run.Algorithm.Rounds)
		a, b := f.neighbours(text, features, group)
		first := strings.Join(w.observe(h, a), "\n")
		failed := w.failed
		second := strings.Join(w.observe(h, b), "\n")
		if !group && w.failed != failed { // nobody sees it, but all other examples are gone
			t.Errorf("trial %d: training fails %d times with one dataset and %d with its neighbour\n%s", trial, failed, w.failed, text)
		}
		if strings.Contains(first, "offer") {
			released++
		}
		if strings.Contains(first, "decline") {
			declined++
		}
		if first != second {
			if differences++; differences < 4 {
				t.Errorf("trial %d: the server can tell two neighbours apart\n%s\n--- one dataset\n%s\n--- the other\n%s", trial, text, first, second)
			}
		}
	}
	t.Logf("%d trials (%d more were no plans): %d with a release, %d with a decline, %d differences", trials, left, released, declined, differences)
	if released < trials/3 || declined == 0 {
		t.Errorf("of %d trials %d end in a release and %d in a decline: the test shows too little", trials, released, declined)
	}
}

// TestOverflowIsNoOracle is the attack that read a row's square to nine digits: a
// broadcast at which a gradient overflows only if a certain record is there. Whether it
// is there, the participant releases the same number of bytes.
func TestOverflowIsNoOracle(t *testing.T) {
	const run = `seed: 3
data: {kind: school, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: 1, weights: equal, local: {epochs: 1, step: 0.01, batch: 20}}
privacy: {relation: add-remove, public_size: 20, epsilon: 2, delta: 1.0e-4, clip: 1, noise: exact}
`
	w := newHostileWorld(t)
	h, a, ok := w.ask(run, data.Shape{Features: 3})
	if !ok {
		t.Fatal("the plan is refused")
	}
	st := a.Start()
	for i := range st.Hypotheses {
		st.Hypotheses[i] = 9e8
	}
	b, err := a.Broadcast(st)
	if err != nil {
		t.Fatal(err)
	}
	h.broadcasts = [][]byte{transfer.EncodeBroadcast(b)}
	f := fuzzer{rand.New(rand.NewPCG(1, 2))}
	rows := f.rows(22, 3, false)
	without := w.observe(h, rows)
	rows.X[5] = 1e303 // its output times itself is infinite
	with := w.observe(h, rows)
	if got, want := strings.Join(with, "\n"), strings.Join(without, "\n"); got != want || !strings.Contains(got, "part of") {
		t.Errorf("with the record:\n%s\nwithout it:\n%s", got, want)
	}
	// Beyond the participant's own bound nothing is trained from at all.
	for i := range b.Hypotheses {
		b.Hypotheses[i] = 5.8e306
	}
	h.broadcasts = [][]byte{transfer.EncodeBroadcast(b)}
	if seen := strings.Join(w.observe(h, rows), "\n"); !strings.Contains(seen, "decline of round 0, of the run true: policy") || strings.Contains(seen, "offer") {
		t.Errorf("a broadcast of 5.8e306: %s", seen)
	}
}

// TestPanicsAndErrorsEndInARelease: training that breaks, for whatever reason, is not
// seen by the server; what it gets is noise, and paid for.
func TestPanicsAndErrorsEndInARelease(t *testing.T) {
	w := newHostileWorld(t)
	const run = `seed: 3
data: {kind: school, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: 2, weights: equal, local: {epochs: 1, step: 0.01, batch: 20}}
privacy: {relation: add-remove, public_size: 20, epsilon: 2, delta: 1.0e-4, clip: 1, noise: exact}
`
	h, a, _ := w.ask(run, data.Shape{Features: 3})
	for round := range 2 {
		st := a.Start()
		st.Round = round
		b, err := a.Broadcast(st)
		if err != nil {
			t.Fatal(err)
		}
		h.broadcasts = append(h.broadcasts, transfer.EncodeBroadcast(b))
	}
	f := fuzzer{rand.New(rand.NewPCG(1, 2))}
	rows := f.rows(30, 3, false)
	want := strings.Join(w.observe(h, rows), "\n")
	if w.blank != 0 {
		t.Errorf("%d releases count as blank", w.blank)
	}
	// Rows whose features are cut off: what reads them panics or fails.
	broken := &data.Client{Rows: data.Rows{Features: 3, X: rows.X[:10], Y: rows.Y}}
	if got := strings.Join(w.observe(h, broken), "\n"); got != want || !strings.Contains(got, "part of") {
		t.Errorf("training that fails is seen:\n%s\nwant:\n%s", got, want)
	}
	if w.blank != 2 {
		t.Errorf("the owner is told of %d blank releases, not of 2", w.blank)
	}
}

// TestAnswersWaitForTheirTime: nothing is sent before answer_seconds, however fast
// training was, and an answer time beyond the plan's deadline is refused.
func TestAnswersWaitForTheirTime(t *testing.T) {
	p := &Participant{o: Options{AnswerAfter: 300 * time.Millisecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.sendAfter(ctx, nil, ledger.Slot{}, time.Now()); !errors.Is(err, transfer.ErrInterrupted) {
		t.Errorf("an interrupted wait: %v", err)
	}
	var log bytes.Buffer
	p.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	func() {
		defer func() { recover() }() // there is no session to send for: it is the wait that is tested
		began := time.Now()
		defer func() {
			if took := time.Since(began); took < 300*time.Millisecond {
				t.Errorf("an answer went out after %v", took)
			}
		}()
		p.sendAfter(t.Context(), nil, ledger.Slot{}, began)
	}()
	func() {
		defer func() { recover() }()
		p.sendAfter(t.Context(), nil, ledger.Slot{}, time.Now().Add(-time.Second))
	}()
	if !strings.Contains(log.String(), "longer than answer_seconds") {
		t.Errorf("the owner is not told that training took too long: %s", &log)
	}
	s := &session{plan: plan.Plan{DeadlineSeconds: 0.2, Participants: 1}}
	if err := p.agree(s); !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "answer_seconds") {
		t.Errorf("an answer time beyond the deadline: %v", err)
	}
}

// TestWhatIsDrawnAtHomeIsSecret: what a participant draws by a seed (the order of its
// rows, its first model) follows from a seed of its own, which the plan does not tell,
// and which lasts over a crash.
func TestWhatIsDrawnAtHomeIsSecret(t *testing.T) {
	w := newHostileWorld(t)
	const run = `seed: 3
data: {kind: synthetic, users: 3, samples: 5}
algorithm: {kind: group-private, mode: sound, hypotheses: 1, rounds: 1, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact}
`
	h, _, ok := w.ask(run, data.Shape{Features: 2})
	if !ok {
		t.Fatal("the plan is refused")
	}
	w.handler = h
	policy, err := plan.LoadPolicy([]byte(hostilePolicy))
	if err != nil {
		t.Fatal(err)
	}
	var seeds []uint64
	for _, folder := range []string{"one", "other", "one"} {
		dir := filepath.Join(w.dir, folder)
		book, err := ledger.Open(filepath.Join(dir, "ledger"), policy.Budget())
		if err != nil {
			t.Fatal(err)
		}
		stop := errors.New("that is enough")
		p := New(Options{
			Client: w.client, Name: "north", Federation: h.plan.Federation, Signer: h.key.Public().(ed25519.PublicKey),
			Ledger: book, Policy: policy,
			Memory: func(run string, plan ledger.Hash) (Memory, error) {
				m, err := OpenMemory(dir, run, plan)
				if err == nil {
					_, err = m.Seed()
				}
				if err == nil {
					err = m.Begin() // as once something is paid for
				}
				return m, err
			},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Half: func(_ context.Context, _ plan.Plan, run, private config.Run, _ int) (*Half, error) {
				if run.Seed != 3 {
					t.Errorf("the plan's seed is %d", run.Seed)
				}
				seeds = append(seeds, private.Seed)
				return nil, stop
			},
		})
		if _, err := p.Run(t.Context()); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if seeds[0] == 3 || seeds[1] == 3 || seeds[0] == seeds[1] || seeds[0] != seeds[2] {
		t.Errorf("the private seeds are %v; the plan's is 3", seeds)
	}
}

// sized is a model of so many parameters, of which nothing else is asked.
func sized(n int) model.Model { return sizedModel{n: n} }

type sizedModel struct {
	model.Model
	n int
}

func (m sizedModel) Parameters() int { return m.n }

// TestPlansThatAskForMemory: a number of participants is the server's word; methods that
// keep a model of each would take all memory before the first round.
func TestPlansThatAskForMemory(t *testing.T) {
	policy, err := plan.LoadPolicy([]byte(hostilePolicy))
	if err != nil {
		t.Fatal(err)
	}
	for kind, refused := range map[string]bool{"mocha": true, "fedavg": false, "mr-mtl": true} {
		run := config.Default("school", kind, "sound")
		if kind == "mr-mtl" {
			run.Algorithm.Lambda = config.LambdaAuto
		}
		err := policy.Allows(plan.Plan{Participants: 1 << 40, Minimum: 1}, run, sized(29))
		if (err != nil) != refused || refused && !errors.Is(err, fl.ErrRefused) {
			t.Errorf("%s among 2^40 participants: %v", kind, err)
		}
		if err := policy.Allows(plan.Plan{Participants: 1000, Minimum: 1}, run, sized(29)); err != nil {
			t.Errorf("%s among 1000 participants: %v", kind, err)
		}
	}
}

// TestFewParametersAskForMuchMemory: a model of a dozen parameters whose layers are large is refused before a
// learner of it is made.
func TestFewParametersAskForMuchMemory(t *testing.T) {
	policy, err := plan.LoadPolicy([]byte(hostilePolicy))
	if err != nil {
		t.Fatal(err)
	}
	for stride, refused := range map[int]bool{15: false, 11000: true} {
		run := config.Default("mnist", "fedavg", "sound")
		run.Model = config.Model{Kind: "network", Layers: []config.Layer{
			{Kind: "transposed-conv", Channels: 1, Kernel: 2}, {Kind: "transposed-conv", Channels: 1, Kernel: 1, Stride: stride},
			{Kind: "max-pool", Kernel: stride}, {Kind: "linear", Units: 2},
		}}
		m, err := model.Of(run, data.Shape{Height: 1, Width: 1, Classes: 2})
		if err != nil {
			t.Fatal(err)
		}
		err = policy.Allows(plan.Plan{Participants: 3, Minimum: 1}, run, m)
		if (err != nil) != refused || refused && (!errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "maximum_megabytes")) {
			t.Errorf("stride %d, %d parameters, %.0f MB: %v", stride, m.Parameters(), model.Room(m)/1e6, err)
		}
	}
}
