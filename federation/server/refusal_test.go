package server

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/ledger"
)

// bench is a coordinator without a network, and ledgers whose releases it is given.
type bench struct {
	t       *testing.T
	c       *Coordinator
	signer  ed25519.PrivateKey
	plan    plan.Plan
	dir     string
	store   store.Store
	ledgers map[string]*ledger.Ledger
	stop    func()
	log     *slog.Logger

	small    int64 // as Terms has it
	enclosed bool  // releases go with their offers
	tracer   trace.Tracer
}

func newBench(t *testing.T, change func(*plan.Plan)) *bench {
	t.Helper()
	_, signer, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, signer: signer, dir: t.TempDir(), log: federationtest.Quiet(), ledgers: map[string]*ledger.Ledger{}, plan: federationtest.Plan(t)}
	if change != nil {
		change(&b.plan)
	}
	if b.store, err = store.Open(t.Context(), filepath.Join(b.dir, "state.db"), store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.store.Close() })
	b.begin()
	return b
}

// begin starts a coordinator and waits until it asks everybody.
func (b *bench) begin() {
	b.t.Helper()
	var err error
	if b.c, err = NewCoordinator(b.t.Context(), Terms{
		Plan: b.plan, Names: federationtest.Names, Store: b.store, Signer: federationtest.Signer(b.signer), Log: b.log, small: b.small, Tracer: b.tracer,
	}); err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	b.stop = func() { stop(); <-ended }
	go func() {
		_, _ = b.c.Run(ctx) // interrupted
		close(ended)
	}()
	b.t.Cleanup(b.stop)
	for _, name := range federationtest.Names {
		if _, _, _, err := b.c.join(ctx, name); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) slot(round int64) slotKey {
	return slotKey{Run: b.plan.Run, Plan: b.c.sum[:], Round: round}
}

// work waits until a participant is asked.
func (b *bench) work(name string) *work {
	b.t.Helper()
	w, _, err := b.c.next(b.t.Context(), name, b.plan.Run, b.c.sum[:], 10*time.Second)
	if err != nil || w == nil {
		b.t.Fatalf("%s gets no work: %v", name, err)
	}
	return w
}

// offer is a paid release of two values, as a participant announces it.
func (b *bench) offer(name string, round int64, values ...float64) (offered, []byte) {
	b.t.Helper()
	l := b.ledgers[name]
	if l == nil {
		policy, err := plan.LoadPolicy([]byte(federationtest.Policy))
		if err != nil {
			b.t.Fatal(err)
		}
		if l, err = ledger.Open(filepath.Join(b.dir, name), policy.Budget()); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { l.Close() })
		b.ledgers[name] = l
		key := ledger.Key(b.signer.Public().(ed25519.PublicKey))
		if err := l.Reconcile(ledger.Membership{Federation: "f", Participant: name, Key: key}, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	slot := ledger.Slot{Federation: "f", Run: b.plan.Run, Round: int(round)}
	raw := transfer.AppendVector(nil, values)
	if e, known := l.Entry(slot); !known || e.Status == ledger.Reserved {
		err := l.Reserve(ledger.Charge{Slot: slot, Plan: ledger.Hash(b.c.sum), Enforcement: ledger.Enforced, Release: event.Release{
			Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Trust: event.TrustLocal,
			What: event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.3},
		}})
		if err != nil {
			b.t.Fatal(err)
		}
		if err := l.Store(slot, raw); err != nil {
			b.t.Fatal(err)
		}
	}
	draft, err := l.Draft(slot)
	if err != nil {
		b.t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	draft.Content, draft.Size = ledger.Hash(sum), int64(len(raw)) // as a cheat would say it
	statement, err := json.Marshal(draft)
	if err != nil {
		b.t.Fatal(err)
	}
	return offered{Slot: b.slot(round), Size: int64(len(raw)), SHA256: sum[:], Statement: statement}, raw
}

// send offers and uploads, and returns the receipt.
func (b *bench) send(name string, round int64, values ...float64) ([]byte, error) {
	b.t.Helper()
	o, raw := b.offer(name, round, values...)
	if b.enclosed {
		o.Release = raw
	}
	s, err := b.c.offer(b.t.Context(), name, o)
	if err != nil || s.Receipt != nil {
		return s.Receipt, err
	}
	r, err := b.c.receive(b.t.Context(), name, o.Slot)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Write(s.Offset, raw[s.Offset:]); err != nil {
		return nil, err
	}
	return r.Accept(b.t.Context())
}

func (b *bench) mustSend(name string, round int64, values ...float64) []byte {
	b.t.Helper()
	receipt, err := b.send(name, round, values...)
	if err != nil {
		b.t.Fatalf("%s, round %d: %v", name, round+1, err)
	}
	return receipt
}

func (b *bench) wantReason(err error, want transfer.Reason) {
	b.t.Helper()
	if transfer.ReasonOf(err) != want {
		b.t.Errorf("refused with %q (%v), want %q", transfer.ReasonOf(err), err, want)
	}
}

func TestWhatIsRefused(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	ctx := t.Context()

	_, err := b.c.offer(ctx, "nobody", offered{Slot: b.slot(0)})
	b.wantReason(err, transfer.ReasonForeign)
	_, _, _, err = b.c.join(ctx, "nobody")
	b.wantReason(err, transfer.ReasonForeign)

	good, raw := b.offer("north", 0, 1, 2)
	for name, change := range map[string]func(*offered){
		"another run":       func(o *offered) { o.Slot.Run = "older" },
		"another plan":      func(o *offered) { o.Slot.Plan = make([]byte, 32) },
		"no plan":           func(o *offered) { o.Slot.Plan = nil },
		"a round to come":   func(o *offered) { o.Slot.Round = 3 },
		"a round below 0":   func(o *offered) { o.Slot.Round = -1 },
		"a round too far":   func(o *offered) { o.Slot.Round = 1 << 40 },
		"too short":         func(o *offered) { o.Size = 8 },
		"too long":          func(o *offered) { o.Size = 1 << 50 },
		"no size":           func(o *offered) { o.Size = 0 },
		"no hash":           func(o *offered) { o.SHA256 = nil },
		"half a hash":       func(o *offered) { o.SHA256 = o.SHA256[:16] },
		"another hash":      func(o *offered) { o.SHA256 = make([]byte, 32) },
		"no statement":      func(o *offered) { o.Statement = nil },
		"broken statement":  func(o *offered) { o.Statement = o.Statement[:len(o.Statement)-2] },
		"another's name":    func(o *offered) { o.Statement = replace(o.Statement, `"participant":"north"`, `"participant":"south"`) },
		"another's slot":    func(o *offered) { o.Statement = replace(o.Statement, `"round":0`, `"round":1`) },
		"other federation":  func(o *offered) { o.Statement = replace(o.Statement, `"federation":"f"`, `"federation":"g"`) },
		"what is not there": func(o *offered) { o.Statement = replace(o.Statement, `"version"`, `"vorsicht"`) },
	} {
		o := good
		change(&o)
		if _, err := b.c.offer(ctx, "north", o); transfer.ReasonOf(err) != transfer.ReasonStale && transfer.ReasonOf(err) != transfer.ReasonMalformed {
			t.Errorf("%s: %v; want stale or malformed", name, err)
		}
	}

	_, err = b.c.receive(ctx, "north", b.slot(0))
	b.wantReason(err, transfer.ReasonNotOffered)
	if _, err := b.c.offer(ctx, "north", good); err != nil {
		t.Fatal(err)
	}
	r, err := b.c.receive(ctx, "north", b.slot(0))
	if err != nil {
		t.Fatal(err)
	}
	infinite := transfer.AppendVector(nil, []float64{1 / zero})
	for name, part := range map[string]struct {
		at   int64
		data []byte
	}{
		"a gap": {8, raw[8:]}, "too much": {0, append(raw, raw...)}, "half a value": {0, raw[:4]},
		"infinity": {0, infinite}, "not a number": {0, transfer.AppendVector(nil, []float64{zero / zero})},
	} {
		if err := r.Write(part.at, part.data); transfer.ReasonOf(err) != transfer.ReasonMalformed {
			t.Errorf("%s: %v; want malformed", name, err)
		}
	}
	if _, err := r.Accept(ctx); transfer.ReasonOf(err) != transfer.ReasonMalformed {
		t.Errorf("nothing was sent, and it is %v; want malformed", err)
	}
	r.Close()
	if w, _, _ := b.c.next(ctx, "north", b.plan.Run, b.c.sum[:], time.Millisecond); w == nil {
		t.Error("after bad uploads the round does not wait for north any more")
	}
}

var zero float64 // hides divisions by it from the compiler

func replace(text []byte, from, to string) []byte {
	out := string(text)
	for i := 0; i+len(from) <= len(out); i++ {
		if out[i:i+len(from)] == from {
			return []byte(out[:i] + to + out[i+len(from):])
		}
	}
	panic("the statement has no " + from)
}

// TestSameBytesAgainOtherBytesNever: a retry is acknowledged with the same receipt,
// during the round and after it; other bytes are equivocation.
func TestSameBytesAgainOtherBytesNever(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	first := b.mustSend("north", 0, 1, 2)
	if again := b.mustSend("north", 0, 1, 2); string(again) != string(first) {
		t.Errorf("the same bytes are acknowledged with another receipt:\n%s\n%s", again, first)
	}
	_, err := b.send("north", 0, 1, 3)
	b.wantReason(err, transfer.ReasonEquivocation)
	if err := b.c.decline(t.Context(), "north", b.slot(0), false, "failure"); transfer.ReasonOf(err) != transfer.ReasonAnswered {
		t.Errorf("declining after a release: %v; want answered", err)
	}
	b.mustSend("south", 0, 3, 4)
	b.mustSend("west", 0, 5, 6)
	b.work("north") // the next round
	if again := b.mustSend("north", 0, 1, 2); string(again) != string(first) {
		t.Errorf("after the round, the same bytes have another receipt")
	}
	_, err = b.send("north", 0, 1, 4)
	b.wantReason(err, transfer.ReasonEquivocation)
	kept, err := b.store.Equivocations(t.Context(), b.plan.Run)
	if err != nil || len(kept) != 2 {
		t.Errorf("%d equivocations are recorded (%v), want one during the round and one after it", len(kept), err)
	}
}

// TestDeadlineAndMinimum: at the deadline a round closes with enough releases, is
// abandoned with fewer, and what comes later is late.
func TestDeadlineAndMinimum(t *testing.T) {
	b := newBench(t, func(p *plan.Plan) { p.DeadlineSeconds = 0.5 })
	b.work("north")
	before := append([]float64(nil), b.c.before.Hypotheses...)
	b.mustSend("north", 0, 1, 2)
	for b.work("west").Round == 0 { // until the second round
		time.Sleep(10 * time.Millisecond)
	}
	r, err := b.store.Round(t.Context(), b.plan.Run, 0)
	if err != nil || r.Status != store.RoundAbandoned {
		t.Errorf("with one release of a minimum of two, round 1 is %q (%v); want abandoned", r.Status, err)
	}
	b.c.gate.RLock()
	for i, v := range b.c.before.Hypotheses {
		if v != before[i] && b.c.round != nil && b.c.round.number == 1 {
			t.Errorf("an abandoned round changed hypothesis value %d from %v to %v", i, before[i], v)
		}
	}
	b.c.gate.RUnlock()
	_, err = b.send("south", 0, 3, 4)
	b.wantReason(err, transfer.ReasonLate)
}

// TestResumeInTheSameRound: another coordinator on the same store goes on with what
// had come in.
func TestResumeInTheSameRound(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	first := b.mustSend("north", 0, 1, 2)
	b.stop()
	b.begin()
	if w, _, _ := b.c.next(t.Context(), "north", b.plan.Run, b.c.sum[:], 10*time.Millisecond); w != nil {
		t.Error("north is asked again for what was accepted")
	}
	if again := b.mustSend("north", 0, 1, 2); string(again) != string(first) {
		t.Error("the receipt changed when the server was started anew")
	}
	b.work("south")
	b.mustSend("south", 0, 3, 4)
	b.mustSend("west", 0, 5, 6)
	if w := b.work("north"); w.Round != 1 {
		t.Errorf("after round 1 comes round %d, want 2", w.Round+1)
	}
}
