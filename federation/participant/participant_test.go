package participant

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// TestRoundsBeginFromEarlierMemory: a round that is made again after a crash starts
// from where it started before, whatever it had saved meanwhile.
func TestRoundsBeginFromEarlierMemory(t *testing.T) {
	dir := t.TempDir()
	m, err := OpenMemory(dir, "r", ledger.Hash{7})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := m.Seed()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 5 {
		for range 2 { // the second time after a crash
			p := fl.Participant{Kept: fl.Kept{Personal: []float64{-1}}}
			if err := m.Recall(round, &p); err != nil {
				t.Fatal(err)
			}
			if want := float64(round - 1); p.Personal[0] != want || (round > 0 && p.Switch != want) {
				t.Fatalf("round %d begins from %v and %v, want %v", round+1, p.Personal, p.Switch, want)
			}
			p.Personal, p.Switch = []float64{float64(round)}, float64(round)
			if err := m.Save(round, &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	again, err := OpenMemory(dir, "r", ledger.Hash{7})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := again.Seed(); err != nil || s != seed {
		t.Errorf("the seed changed from %d to %d (%v)", seed, s, err)
	}
	kept, err := again.rounds()
	if err != nil || len(kept) > 3 {
		t.Errorf("%v are kept (%v); want three at most", kept, err)
	}
	path := again.file(4)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		bad := append([]byte(nil), text...)
		bad[i] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := again.Recall(5, new(fl.Participant)); err == nil {
			t.Fatalf("a flipped bit at %d of %d goes unnoticed", i, len(text))
		}
	}
}

// TestMemoryOfAnotherVersion: it is not called damaged; the participant is told what
// becomes of its run, and releases nothing.
func TestMemoryOfAnotherVersion(t *testing.T) {
	m, err := OpenMemory(t.TempDir(), "r", ledger.Hash{7})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(0, new(fl.Participant)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(m.file(0))
	if err != nil {
		t.Fatal(err)
	}
	old := append([]byte("coterie memory 1\n"), text[len(memoryMagic):]...)
	if err := os.WriteFile(m.file(0), old, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &session{plan: plan.Plan{Run: "r"}, memory: m}
	_, err = s.recall(1)
	if !ledgerFailed(err) {
		t.Fatalf("an old memory ends with %v; want that nothing more is released", err)
	}
	for _, want := range []string{m.file(0), "another version of coterie", "cannot be gone on with", "the ledger keeps what was spent", "join a new run"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if err := os.WriteFile(m.file(0), []byte("cot"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = s.recall(1); !ledgerFailed(err) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a memory that was cut ends with %v; want that it is damaged", err)
	}
}

// TestWhatOneJoinsWithout: whoever joins is told what its claims leave out, whatever the
// method: that noise on updates does not cover the model that it keeps, and that what an
// update costs in paper mode follows from its length.
func TestWhatOneJoinsWithout(t *testing.T) {
	for text, want := range map[string][2]bool{ // own models, declining
		"algorithm: {kind: group-private, mode: sound}":                                           {false, false},
		"algorithm: {kind: group-private}":                                                        {false, true},
		"algorithm: {kind: mr-mtl, mode: sound}\nprivacy: {protects: update}":                     {true, false},
		"algorithm: {kind: ditto}\nprivacy: {protects: update}":                                   {true, true},
		"algorithm: {kind: ditto, clients_per_round: 0}\nprivacy: {protects: client, epsilon: 6}": {true, false},
		"algorithm: {kind: ditto}\nprivacy: {protects: example, epsilon: 6}":                      {false, false},
		"algorithm: {kind: group-private}\nprivacy: {protects: nothing}":                          {false, false},
	} {
		run, err := plan.Resolve([]byte("data: {kind: synthetic}\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Of(run, plane)
		if err != nil {
			t.Fatal(err)
		}
		a, err := fl.New(run, m, 3)
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join((&session{run: run, half: &Half{Algorithm: a}}).notCovered(), "\n")
		if got := [2]bool{strings.Contains(told, "own models"), strings.Contains(told, "declining")}; got != want {
			t.Errorf("%q: %v, want %v of: %s", text, got, want, told)
		}
	}
}

// TestServerCannotChangeTheTerms: a broadcast that does not follow from the plan is
// refused before anything is trained on it.
func TestServerCannotChangeTheTerms(t *testing.T) {
	asked, run, err := plan.Parse(mustEncode(t, federationtest.Plan(t)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Of(run, asked.Shape)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fl.New(run, m, 3)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{plan: asked, run: run, half: &Half{Algorithm: a}, began: a.Start()}
	good, err := a.Broadcast(a.Start())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.expects(good, 0); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*fl.Broadcast){
		"another radius":   func(b *fl.Broadcast) { b.Radius /= 2 },
		"another spread":   func(b *fl.Broadcast) { b.Spread *= 2 },
		"another round":    func(b *fl.Broadcast) { b.Round = 1 },
		"one value less":   func(b *fl.Broadcast) { b.Hypotheses = b.Hypotheses[1:] },
		"one more":         func(b *fl.Broadcast) { b.Hypotheses = append(b.Hypotheses, 0) },
		"off the lattice":  func(b *fl.Broadcast) { b.Hypotheses[0] += 1e-13 },
		"beyond the range": func(b *fl.Broadcast) { b.Hypotheses[0] = 1e300 },
	} {
		bad := good
		bad.Hypotheses = append([]float64(nil), good.Hypotheses...)
		change(&bad)
		if err := s.expects(bad, 0); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func mustEncode(t *testing.T, p plan.Plan) []byte {
	t.Helper()
	text, _, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// knownRounds is a ledger that knows some rounds.
type knownRounds struct {
	Ledger
	rounds []int
}

func (k knownRounds) Entry(s ledger.Slot) (ledger.Entry, bool) {
	return ledger.Entry{}, slices.Contains(k.rounds, s.Round)
}

// TestMissedRoundsArePricedOnce: a silo that missed a round and starts again is not
// asked to pay once more for the rounds that it made after it.
func TestMissedRoundsArePricedOnce(t *testing.T) {
	s := &session{run: config.Run{Algorithm: config.Algorithm{Rounds: 6}}}
	for want, rounds := range map[int][]int{0: nil, 2: {0, 1}, 5: {0, 1, 3, 4}, 6: {5}} {
		p := &Participant{o: Options{Ledger: knownRounds{rounds: rounds}}}
		if got := p.nextRound(s); got != want {
			t.Errorf("after rounds %v the next one is %d, want %d", rounds, got, want)
		}
	}
}

// TestOnlyAnEmptyBudgetIsWaitedWith: a participant waits for the models if its own budget
// has ended and it has released. From a server that breaks its plan it takes nothing.
func TestOnlyAnEmptyBudgetIsWaitedWith(t *testing.T) {
	run := federationtest.Plan(t)
	_, resolved, err := plan.Parse(mustEncode(t, run))
	if err != nil {
		t.Fatal(err)
	}
	empty := fmt.Errorf("%w: %w", errSpent, ledger.ErrRefused)
	for _, c := range []struct {
		released bool
		err      error
		want     bool
	}{
		{true, empty, true}, {false, empty, false},
		{true, fmt.Errorf("%w: round 3 begins off the plan's lattice", fl.ErrRefused), false},
		{true, errors.New("the server asks for round 9"), false},
	} {
		known := knownRounds{}
		if c.released {
			known.rounds = []int{1}
		}
		p := New(Options{Ledger: known, Log: federationtest.Quiet()})
		s := &session{plan: run, run: resolved}
		if got := p.retire(s, c.err); got != c.want || (s.over != nil) != c.want {
			t.Errorf("released %v, %v: it waits: %v, want %v", c.released, c.err, got, c.want)
		}
	}
}
