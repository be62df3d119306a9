package participant

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// hostileServer asks what it likes and writes down all that it can see: which calls
// come in which order, how long they are, and every public word in them.
type hostileServer struct {
	wire.FederationHandler // what it does not serve is not called
	plan                   plan.Plan
	text                   []byte
	sum                    [32]byte
	broadcasts             [][]byte // one a round; nil: the round is not asked for
	next                   int
	offered                []byte
	key                    ed25519.PrivateKey
	seen                   []string
}

func (h *hostileServer) note(format string, args ...any) {
	h.seen = append(h.seen, fmt.Sprintf(format, args...))
}

func (h *hostileServer) Join(context.Context, *wire.JoinRequest) (*wire.JoinReply, error) {
	h.note("join")
	return &wire.JoinReply{Plan: h.text}, nil
}

func (h *hostileServer) Next(context.Context, *wire.NextRequest) (*wire.NextReply, error) {
	h.note("next")
	if h.next == len(h.broadcasts) {
		return nil, connect.NewError(connect.CodePermissionDenied, errors.New("that was all"))
	}
	round, b := h.next, h.broadcasts[h.next]
	h.next++
	return &wire.NextReply{What: &wire.NextReply_Work{Work: &wire.Work{
		Slot: &wire.Slot{Run: h.plan.Run, PlanSha256: h.sum[:], Round: int64(round)}, Broadcast: contentOf(b), MillisecondsLeft: 60_000, Cohort: 1,
	}}}, nil
}

func contentOf(b []byte) *wire.Content {
	sum := sha256.Sum256(b)
	return &wire.Content{Size: int64(len(b)), Sha256: sum[:]}
}

func (h *hostileServer) Broadcast(_ context.Context, q *wire.BroadcastRequest, out *connect.ServerStream[wire.Part]) error {
	h.note("broadcast from %d", q.GetOffset())
	b := h.broadcasts[h.next-1]
	return out.Send(&wire.Part{Data: b, Crc32C: crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))})
}

// Offer writes down the statement but for its hashes, which say nothing but that the
// noised bytes differ.
func (h *hostileServer) Offer(_ context.Context, q *wire.OfferRequest) (*wire.OfferReply, error) {
	h.offered = q.GetStatement()
	r, err := ledger.ParseReceipt(h.offered)
	if err != nil {
		return nil, err
	}
	r.Content, r.Head = ledger.Hash{}, ledger.Hash{}
	words, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	h.note("offer of round %d: %d bytes, a statement of %d: %s", q.GetSlot().GetRound(), q.GetContent().GetSize(), len(h.offered), words)
	return &wire.OfferReply{}, nil
}

func (h *hostileServer) Upload(_ context.Context, in *connect.ClientStream[wire.UploadPart]) (*wire.UploadReply, error) {
	for in.Receive() {
		h.note("part of %d bytes", len(in.Msg().GetPart().GetData()))
	}
	r, err := ledger.ParseReceipt(h.offered)
	if err != nil {
		return nil, err
	}
	signed, err := ledger.Sign(r, h.key)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(signed)
	return &wire.UploadReply{Receipt: text}, err
}

func (h *hostileServer) Decline(_ context.Context, q *wire.DeclineRequest) (*wire.DeclineReply, error) {
	h.note("decline of round %d, of the run %v: %s", q.GetSlot().GetRound(), q.GetWholeRun(), q.GetCode())
	return &wire.DeclineReply{}, nil
}

// hostileWorld is a hostile server on loopback and a participant's folders in memory.
type hostileWorld struct {
	t       *testing.T
	handler *hostileServer
	client  wire.FederationClient
	dir     string
	trial   int
	blank   int // releases of the last participant that say nothing of its data
}

func newHostileWorld(t *testing.T) *hostileWorld {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "hostile") // nothing has to survive here
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &hostileWorld{t: t, dir: dir}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &plain, Handler: http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		_, service := wire.NewFederationHandler(w.handler)
		service.ServeHTTP(out, q)
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	transport := &http.Transport{Protocols: &plain}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = wire.NewFederationClient(&http.Client{Transport: transport}, "http://"+listener.Addr().String())
	return w
}

const hostilePolicy = `ceilings:
  - {unit: example, relation: add-remove, claim: proved, epsilon: 1000, delta: 1.0e-4}
  - {unit: example, relation: replace-one, claim: proved, epsilon: 1000, delta: 1.0e-4}
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 1.0e+9, epsilon_switch: 1.0e+18}
`

// observe lets a participant with some rows meet the server, and returns what the
// server saw.
func (w *hostileWorld) observe(h *hostileServer, rows *data.Client) []string {
	w.t.Helper()
	w.trial++
	w.handler = h
	h.next, h.seen, h.offered = 0, nil, nil
	policy, err := plan.LoadPolicy([]byte(hostilePolicy))
	if err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.dir, fmt.Sprint(w.trial))
	book, err := ledger.Open(filepath.Join(dir, "ledger"), policy.Budget())
	if err != nil {
		w.t.Fatal(err)
	}
	file := plan.JoinFile{Data: plan.Source{Kind: "csv"}}
	p := New(Options{
		Client: w.client, Name: "north", Federation: h.plan.Federation, Signer: h.key.Public().(ed25519.PublicKey),
		Ledger: book, Policy: policy, Half: HalfOf(file, rows, nil),
		Memory: func(run string) (Memory, error) { return OpenMemory(dir, run) },
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	report, err := p.Run(ctx)
	w.blank = report.Blank
	if ctx.Err() != nil {
		w.t.Fatalf("the participant does not come to an end: %v; the server saw %v", err, h.seen)
	}
	if err := book.Close(); err != nil {
		w.t.Fatal(err)
	}
	os.RemoveAll(dir)
	return h.seen
}

// ask makes a server of a run file for rows of some features.
func (w *hostileWorld) ask(text string, features int) (*hostileServer, *fl.Algorithm, bool) {
	w.t.Helper()
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		return nil, nil, false // a server can send it, and it is refused before anything else
	}
	resolved, err := run.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	h := &hostileServer{key: key, plan: plan.Plan{
		Version: plan.Version, Federation: "f", Run: "r", RunFile: string(resolved), Participants: 3,
		Shape: data.Shape{Features: features}, Quorum: 1, Minimum: 1, DeadlineSeconds: 60,
	}}
	if h.text, h.sum, err = h.plan.Encode(); err != nil {
		w.t.Fatal(err)
	}
	m, err := model.Of(run, h.plan.Shape)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := fl.New(run, m, 3)
	if err != nil {
		return nil, nil, false
	}
	return h, a, true
}

// fuzzer draws plans, broadcasts and records that an attacker might choose.
type fuzzer struct{ *rand.Rand }

func pick[T any](f fuzzer, of ...T) T { return of[f.IntN(len(of))] }

// magnitude is of any size that a float64 can have, small ones and round ones often.
func (f fuzzer) magnitude() float64 {
	switch f.IntN(4) {
	case 0:
		return pick(f, 0, 1, 1e3, 1e9, 1e150, 1e160, 1e305, math.MaxFloat64, math.SmallestNonzeroFloat64)
	case 1:
		return math.Exp(f.NormFloat64() * 5)
	case 2:
		return math.Pow(10, f.Float64()*600-300)
	}
	return f.Float64()
}

func (f fuzzer) value() float64 { return f.magnitude() * pick(f, -1.0, 1.0) }

// plan is a run file, and how many features its rows have.
func (f fuzzer) plan() (text string, features int, group bool) {
	step := pick(f, 0.01, 0.5, 10, 1e6)
	if f.IntN(3) == 0 {
		return fmt.Sprintf(`seed: %d
data: {kind: synthetic, users: 3, samples: 5}
algorithm: {kind: group-private, mode: sound, hypotheses: %d, rounds: %d, clients_per_round: 3, local: {epochs: %d, step: %v}}
privacy: {noise_multiplier: %v, radius: %v, radius_decay: %v, noise: exact}
`, f.IntN(100), 1+f.IntN(4), 1+f.IntN(3), 1+f.IntN(4), step, pick(f, 1.0, 5, 50), pick(f, 1e-6, 0.3, 1e3), pick(f, 1, 0.9)), 2, true
	}
	kind := pick(f, "fedavg", "ifca", "mr-mtl", "ditto", "mocha", "finetune", "mr-mtl", "fedavg")
	features, standardise := 3, "none"
	if f.IntN(3) == 0 {
		features, standardise = 28, "paid"
	}
	relation := pick(f, "relation: add-remove, public_size: 20", "relation: replace-one")
	extra := ""
	switch {
	case kind == "ifca":
		extra = ", hypotheses: 3"
	case kind == "mr-mtl":
		extra = ", lambda: " + pick(f, "0.1", "auto", "1") + ", prox: " + pick(f, "outside", "inside", "server")
		step = pick(f, 0.01, 0.5)
	case kind == "ditto" || kind == "mocha":
		extra, step = ", lambda: 0.5", pick(f, 0.01, 0.5)
	}
	return fmt.Sprintf(`seed: %d
data: {kind: school, standardise: %s}
algorithm: {kind: %s, mode: sound, rounds: %d, weights: equal%s, local: {epochs: 1, step: %v, batch: %d}}
privacy: {%s, epsilon: %v, delta: 1.0e-4, clip: %v, noise: exact}
`, f.IntN(100), standardise, kind, 1+f.IntN(2), extra, step, pick(f, 5, 20), relation, pick(f, 0.5, 3, 100), pick(f, 1e-3, 1, 1e3)), features, false
}

// rows are ordinary ones, or some that an attacker might hope for.
func (f fuzzer) rows(n, features int, odd bool) *data.Client {
	r := data.Rows{Features: features}
	for range n {
		for range features {
			if odd {
				r.X = append(r.X, f.value())
			} else {
				r.X = append(r.X, f.NormFloat64())
			}
		}
		if odd {
			r.Y = append(r.Y, f.value())
		} else {
			r.Y = append(r.Y, f.Float64())
		}
	}
	return &data.Client{Rows: r}
}

// neighbours are two datasets between which the plan's claim must hide: one record
// more or replaced by another, or, where updates are protected, any two at all.
func (f fuzzer) neighbours(text string, features int, group bool) (a, b *data.Client) {
	if group {
		return f.rows(5+f.IntN(5), features, true), f.rows(5+f.IntN(5), features, true)
	}
	a = f.rows(22, features, f.IntN(3) == 0)
	one := f.rows(1, features, true)
	b = &data.Client{Rows: data.Rows{Features: features, X: append([]float64(nil), a.X...), Y: append([]float64(nil), a.Y...)}}
	if strings.Contains(text, "add-remove") {
		b.X, b.Y = append(b.X, one.X...), append(b.Y, one.Y...)
	} else {
		copy(b.X[7*features:], one.X)
		b.Y[7] = one.Y[0]
	}
	return a, b
}

// broadcasts are what the rounds begin with: mostly what a participant would accept,
// with values as the attacker likes them; sometimes not.
func (f fuzzer) broadcasts(a *fl.Algorithm, rounds int) [][]byte {
	var out [][]byte
	for round := range rounds {
		st := a.Start()
		st.Round = round
		small := f.IntN(4) > 0
		for i := range st.Hypotheses {
			v := f.value()
			if small { // within what participants take
				v = math.Remainder(v, 1e9)
			}
			if f.IntN(3) > 0 {
				st.Hypotheses[i] = v
			}
		}
		b, err := a.Broadcast(st) // rounded to the lattice, as an honest server does
		if err != nil {
			b = fl.Broadcast{Round: round, Hypotheses: st.Hypotheses, Memory: st.Memory}
		}
		for i := range b.Memory {
			if f.IntN(4) == 0 {
				b.Memory[i] = f.value()
			}
		}
		switch f.IntN(30) {
		case 0:
			b.Radius = f.magnitude()
		case 1:
			b.Hypotheses = b.Hypotheses[1:]
		case 2:
			b.Memory = append(b.Memory, f.value())
		case 3:
			b.Hypotheses[0] = math.NaN()
		case 4:
			b.Round += 1 - f.IntN(3)
		}
		out = append(out, transfer.EncodeBroadcast(b))
	}
	return out
}

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
		h, algorithm, ok := w.ask(text, features)
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
		second := strings.Join(w.observe(h, b), "\n")
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
	h, a, ok := w.ask(run, 3)
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
	h, a, _ := w.ask(run, 3)
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
	h, _, ok := w.ask(run, 2)
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
			Ledger: book, Policy: policy, Memory: func(run string) (Memory, error) { return OpenMemory(dir, run) },
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
		err := policy.Allows(plan.Plan{Participants: 1 << 40, Minimum: 1}, run, 29)
		if (err != nil) != refused || refused && !errors.Is(err, fl.ErrRefused) {
			t.Errorf("%s among 2^40 participants: %v", kind, err)
		}
		if err := policy.Allows(plan.Plan{Participants: 1000, Minimum: 1}, run, 29); err != nil {
			t.Errorf("%s among 1000 participants: %v", kind, err)
		}
	}
}
