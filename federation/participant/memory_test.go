package participant

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// aloneRun ends in rounds in which everybody trains alone, without noise and for nothing.
const aloneRun = `seed: 3
data: {kind: school, standardise: none}
algorithm: {kind: finetune, mode: sound, rounds: 2, weights: equal, federated_share: 0.5, local: {epochs: 200, step: 0.1}}
privacy: {protects: update, noise_multiplier: 1.0e+6, radius: 1.0e-3, noise: exact}
`

// personalRun releases own models that are noised in every step, and hardly moves them.
const personalRun = `seed: 3
data: {kind: school, standardise: none}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, weights: equal, lambda: 0, local: {epochs: 1, step: 1.0e-12, batch: 20}}
privacy: {protects: example, relation: add-remove, public_size: 20, epsilon: 0.1, delta: 1.0e-4, clip: 1, noise: exact}
`

// asked makes a server of a run file that asks for one of its rounds.
func (w *hostileWorld) asked(text string, round int) *hostileServer {
	w.t.Helper()
	h, a, ok := w.ask(text, data.Shape{Features: 3})
	if !ok {
		w.t.Fatal("the plan is refused")
	}
	for r := range round + 1 {
		state := a.Start()
		state.Round = r
		b, err := a.Broadcast(state)
		if err != nil {
			w.t.Fatal(err)
		}
		h.broadcasts = append(h.broadcasts, transfer.EncodeBroadcast(b))
	}
	h.order = []int{round}
	return h
}

// TestMemoryIsOfOnePlan: what a plan has a participant keep is not what another one begins from. A server
// that gives both the name of one run is refused; under another name, or another federation's, it finds a
// participant that remembers nothing: its release is where the plan begins, and the row that decides the raw
// model decides nothing.
func TestMemoryIsOfOnePlan(t *testing.T) {
	w := newHostileWorld(t)
	w.policy = `ceilings:
  - {unit: example, relation: add-remove, claim: proved, epsilon: 0.2, delta: 1.0e-4}
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 1.0e-2, epsilon_switch: 1.0e-2}
`
	rows := fuzzer{rand.New(rand.NewPCG(1, 2))}.rows(22, 3, false)
	for name, change := range map[string]func(h *hostileServer){
		"the same run":  func(*hostileServer) {},
		"another run":   func(h *hostileServer) { h.plan.Run = "other" },
		"another place": func(h *hostileServer) { h.plan.Federation = "g" },
	} {
		first, second := w.asked(aloneRun, 1), w.asked(personalRun, 2)
		w.stays = false
		w.observe(first, rows)
		if len(first.uploads) != 1 {
			t.Fatalf("%s: %v", name, w.err)
		}
		second.key = first.key
		change(second)
		var err error
		if second.text, second.sum, err = second.plan.Encode(); err != nil {
			t.Fatal(err)
		}
		w.stays = true
		w.observe(second, rows)
		if name == "the same run" {
			if len(second.uploads) > 0 || !errors.Is(w.err, fl.ErrRefused) || !strings.Contains(w.err.Error(), "another plan is another run") {
				t.Errorf("%s: %d releases, %v", name, len(second.uploads), w.err)
			}
			continue
		}
		if len(second.uploads) != 1 {
			t.Fatalf("%s: %v", name, w.err)
		}
		far := 0.0 // steps are 1e-12
		for at := 0; at < len(second.uploads[0]); at += 8 {
			far = max(far, math.Abs(math.Float64frombits(binary.LittleEndian.Uint64(second.uploads[0][at:]))))
		}
		if far > 1e-6 {
			t.Errorf("%s: the release is %v away from where the plan begins", name, far)
		}
	}
}

// TestMemoryBelongsToItsPlan: a file that comes into another plan's folder is not read, and a run that an
// earlier version began is not gone on with.
func TestMemoryBelongsToItsPlan(t *testing.T) {
	dir := t.TempDir()
	one, err := OpenMemory(dir, "r", ledger.Hash{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Save(0, &fl.Participant{Kept: fl.Kept{Personal: []float64{5}}}); err != nil {
		t.Fatal(err)
	}
	other, err := OpenMemory(dir, "r", ledger.Hash{2})
	if err != nil {
		t.Fatal(err)
	}
	var p fl.Participant
	if err := other.Recall(1, &p); err != nil || p.Personal != nil {
		t.Errorf("another plan remembers %v (%v)", p.Personal, err)
	}
	if err := other.Begin(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(one.file(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other.file(0), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Recall(1, &p); err == nil || !strings.Contains(err.Error(), "which is that of run r") {
		t.Errorf("another plan's file is read: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "memory", "454349e422f05297"), 0o700); err != nil { // sha256("r")
		t.Fatal(err)
	}
	if _, err := OpenMemory(dir, "r", ledger.Hash{3}); err != nil {
		t.Errorf("a folder of an earlier version without a round: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory", "454349e422f05297", "round-0000000000"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMemory(dir, "r", ledger.Hash{3}); err == nil || !strings.Contains(err.Error(), "written by another version") {
		t.Errorf("an earlier version's run is gone on with: %v", err)
	}
}

// TestSeedIsKeptOnceSomethingIsPaidFor: until then a plan leaves nothing; then the seed stays.
func TestSeedIsKeptOnceSomethingIsPaidFor(t *testing.T) {
	dir := t.TempDir()
	var seeds []uint64
	for range 3 {
		m, err := OpenMemory(dir, "r", ledger.Hash{1})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			seed, err := m.Seed()
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, seed)
		}
		if _, err := os.Stat(m.dir); len(seeds) == 2 && err == nil {
			t.Error("a plan that nothing came of has a folder")
		} else if len(seeds) == 2 {
			continue
		}
		if err := m.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if seeds[0] != seeds[1] || seeds[2] != seeds[3] || seeds[2] != seeds[4] || seeds[0] == seeds[2] {
		t.Errorf("seeds %v; want two alike, and four others", seeds)
	}
}

// TestAnotherPlanAtEveryTurn: a server that has one more plan whenever it is asked neither keeps a
// participant busy nor fills its disk.
func TestAnotherPlanAtEveryTurn(t *testing.T) {
	w := newHostileWorld(t)
	h := w.asked(personalRun, 0)
	h.stale = 5
	began := time.Now()
	w.observe(h, fuzzer{rand.New(rand.NewPCG(1, 2))}.rows(22, 3, false))
	if took := time.Since(began); took < firstWait/2*(1+2+4+8+16) {
		t.Errorf("six plans in %v", took)
	}
	if len(h.uploads) != 1 {
		t.Errorf("%d releases under the last plan: %v", len(h.uploads), w.err)
	}
	left, err := os.ReadDir(filepath.Join(w.dir, "1", "memory"))
	if err != nil || len(left) != 1 {
		t.Errorf("%d folders of six plans, of which one was worked on (%v)", len(left), err)
	}
}
