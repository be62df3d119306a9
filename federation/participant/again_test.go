package participant

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// repeatedRun has three rounds, whose noise comes from the system's entropy.
var repeatedRun = strings.Replace(strings.Replace(evaluatedRun, "rounds: 1", "rounds: 3", 1), "epsilon: 2,", "epsilon: 1,", 1)

// repeatedWorld is a hostile server of repeatedRun, whose broadcasts are those of a state
// that is moved by shift, and rows.
func repeatedWorld(t *testing.T) (w *hostileWorld, h *hostileServer, rows *data.Client, shifted func(round int, by float64) []byte) {
	t.Helper()
	w = newHostileWorld(t)
	w.policy, w.keep = evaluatingPolicy, 1<<20
	h, a, ok := w.ask(repeatedRun, data.Shape{Features: 3})
	if !ok {
		t.Fatal("the plan is refused")
	}
	shifted = func(round int, by float64) []byte {
		st := a.Start()
		st.Round = round
		for i := range st.Hypotheses {
			st.Hypotheses[i] += by
		}
		b, err := a.Broadcast(st)
		if err != nil {
			t.Fatal(err)
		}
		return transfer.EncodeBroadcast(b)
	}
	for round := range 4 {
		h.broadcasts = append(h.broadcasts, shifted(round, 0))
	}
	st := a.Start()
	models, err := transfer.ModelFile(st.Hypotheses, len(st.Hypotheses))
	if err != nil {
		t.Fatal(err)
	}
	h.end = [][]byte{h.broadcasts[3], models}
	rows = fuzzer{rand.New(rand.NewPCG(1, 2))}.rows(22, 3, false)
	rows.Held = fuzzer{rand.New(rand.NewPCG(3, 2))}.rows(9, 3, false)
	return w, h, rows, shifted
}

func (w *hostileWorld) releases() int {
	n := 0
	for _, b := range w.spent.Budgets {
		n += b.Releases
	}
	return n
}

// TestServerAsksAgain: whatever a server asks for again, and whatever the round begins with
// then, it gets the bytes that it had or nothing: never a second draw, never a second
// charge, and nothing is trained for a round that lies behind.
func TestServerAsksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		order   []int
		other   int   // place in order at which the round begins with something else; -1: nowhere
		keep    int64 // bytes
		charged int
		same    [][2]int // uploads that are equal; no others are
		uploads int
		sees    string
	}{
		"once":                     {[]int{0, 1, 2, 3}, -1, 1 << 20, 4, nil, 4, ""},
		"as after a restore":       {[]int{0, 1, 2, 1, 2, 3}, -1, 1 << 20, 4, [][2]int{{1, 3}, {2, 4}}, 6, ""},
		"with another broadcast":   {[]int{0, 1, 2, 1, 2, 3}, 3, 1 << 20, 4, [][2]int{{1, 3}, {2, 4}}, 6, ""},
		"many times":               {[]int{0, 0, 0, 0, 1}, 1, 1 << 20, 2, [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, 5, ""},
		"the evaluation":           {[]int{0, 1, 2, 3, 3, 1}, 4, 1 << 20, 4, [][2]int{{3, 4}, {1, 5}}, 6, ""},
		"nothing is kept":          {[]int{0, 1, 0, 1, 2}, 2, 0, 3, nil, 3, "decline of round 0, of the run false: past"},
		"the last one is kept":     {[]int{0, 1, 0, 1, 2}, 2, 4096, 3, [][2]int{{1, 2}}, 4, "decline of round 0, of the run false: past"},
		"a round that was missed":  {[]int{0, 2, 1, 2, 3}, -1, 1 << 20, 3, [][2]int{{1, 2}}, 4, "decline of round 1, of the run false: past"},
		"and after the evaluation": {[]int{0, 3, 2, 1, 3}, -1, 1 << 20, 2, [][2]int{{1, 2}}, 3, "decline of round 2, of the run false: past"},
	} {
		t.Run(name, func(t *testing.T) {
			w, h, rows, shifted := repeatedWorld(t)
			w.keep, h.order = c.keep, c.order
			if c.other >= 0 {
				h.instead = make([][]byte, len(c.order))
				h.instead[c.other] = shifted(c.order[c.other], 1)
			}
			seen := strings.Join(w.observe(h, rows), "\n")
			if w.err != nil || w.releases() != c.charged || len(h.uploads) != c.uploads || !strings.Contains(seen, c.sees) {
				t.Errorf("%v, %d charged, %d uploads, want %d and %d and %q; the server sees\n%s", w.err, w.releases(), len(h.uploads), c.charged, c.uploads, c.sees, seen)
			}
			if w.report.Released != c.charged {
				t.Errorf("%d are reported as released, %d were", w.report.Released, c.charged)
			}
			equal := map[[2]int]bool{}
			for _, pair := range c.same {
				equal[pair] = true
			}
			for i := range h.uploads {
				for j := i + 1; j < len(h.uploads); j++ {
					if bytes.Equal(h.uploads[i], h.uploads[j]) != equal[[2]int{i, j}] {
						t.Errorf("uploads %d and %d are equal: %v", i, j, !equal[[2]int{i, j}])
					}
				}
			}
			// The run has ended: nobody will ask again.
			if left, err := os.ReadDir(filepath.Join(w.dir, fmt.Sprint(w.trial), "ledger", "releases")); err != nil || len(left) > 0 {
				t.Errorf("%d releases are kept after the end: %v", len(left), err)
			}
			if err := statements(seen); err != "" {
				t.Error(err)
			}
		})
	}
}

// statements says whether a round was ever offered with two statements.
func statements(seen string) string {
	first := map[string]string{}
	for _, line := range strings.Split(seen, "\n") {
		round, words, ok := strings.Cut(line, ": ")
		if !ok || !strings.HasPrefix(round, "offer of") {
			continue
		}
		if before, again := first[round]; again && before != words {
			return "the " + round + " has the statements\n" + before + "\n" + words
		}
		first[round] = words
	}
	return ""
}

// refusing refuses the n-th offer of a round, counted from 1.
func refusing(round, n int, reason transfer.Reason) func(int) transfer.Reason {
	return func(offered int) transfer.Reason {
		if offered == round {
			if n--; n == 0 {
				return reason
			}
		}
		return ""
	}
}

// TestServerThatIsBehind: a release that a server has not come to is kept, not given up,
// and sent when it is asked for; one that it refuses for good stays given up.
func TestServerThatIsBehind(t *testing.T) {
	for reason, want := range map[transfer.Reason]struct {
		committed, abandoned, uploads int
		sees                          string
	}{
		transfer.ReasonEarly: {4, 0, 6, "refused round 2 as early"},
		transfer.ReasonLate:  {3, 1, 5, "decline of round 2, of the run false: past"},
	} {
		w, h, rows, _ := repeatedWorld(t)
		h.order, h.refuses = []int{0, 1, 2, 0, 1, 2, 3}, refusing(2, 1, reason)
		seen := strings.Join(w.observe(h, rows), "\n")
		var committed, abandoned int
		for _, b := range w.spent.Budgets {
			committed, abandoned = committed+b.Committed, abandoned+b.Abandoned
		}
		if w.err != nil || committed != want.committed || abandoned != want.abandoned || len(h.uploads) != want.uploads || !strings.Contains(seen, want.sees) {
			t.Errorf("%s: %v, %d committed, %d given up, %d uploads, want %+v; the server sees\n%s", reason, w.err, committed, abandoned, len(h.uploads), want, seen)
		}
	}
}

// TestAskedAgainAndRefused: a participant that is asked again, and whose bytes are then not
// taken, goes on, with its ledger as it was.
func TestAskedAgainAndRefused(t *testing.T) {
	w, h, rows, _ := repeatedWorld(t)
	h.order = []int{0, 0, 1}
	for _, reason := range []transfer.Reason{transfer.ReasonLate, transfer.ReasonNotAsked, transfer.ReasonAnswered, transfer.ReasonEarly} {
		h.refuses = refusing(0, 2, reason)
		w.observe(h, rows)
		if w.err != nil || w.releases() != 2 || w.spent.Budgets[0].Committed != 2 || len(h.uploads) != 2 {
			t.Errorf("%s: %v, %d charged, %d uploads", reason, w.err, w.releases(), len(h.uploads))
		}
	}
}

// TestFalseReceiptForARepetition: a server that signs with another key than it did stops its
// participant.
func TestFalseReceiptForARepetition(t *testing.T) {
	w, h, rows, _ := repeatedWorld(t)
	h.order = []int{0, 0, 1}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := h.key
	offers := 0
	h.refuses = func(int) transfer.Reason {
		if offers++; offers == 2 {
			h.key = other
		}
		return ""
	}
	w.observe(h, rows)
	h.key = key
	if !errors.Is(w.err, ledger.ErrReceipt) || w.releases() != 1 {
		t.Errorf("%v, %d charged", w.err, w.releases())
	}
}

// TestRetiredParticipantRepeats: one whose budget has ended still gives a restored server
// what it had, also after a restart, and declines the rest of the run when it is asked for
// more.
func TestRetiredParticipantRepeats(t *testing.T) {
	w := newHostileWorld(t)
	w.keep = 1 << 20
	h, a, ok := w.ask(`seed: 7
data: {kind: synthetic, users: 3, samples: 20}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 4, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact}
`, data.Shape{Features: 2})
	if !ok {
		t.Fatal("the plan is refused")
	}
	for round := range 4 {
		st := a.Start()
		st.Round = round
		if round == 2 {
			st.Hypotheses[0] += 1e4 // dearer than what is left
		}
		b, err := a.Broadcast(st)
		if err != nil {
			t.Fatal(err)
		}
		h.broadcasts = append(h.broadcasts, transfer.EncodeBroadcast(b))
	}
	ceiling := func(most float64) string {
		return fmt.Sprintf("ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: %v}\n", most)
	}
	rows := fuzzer{rand.New(rand.NewPCG(1, 2))}.rows(20, 2, false)
	w.policy, h.order = ceiling(1e6), []int{0, 1}
	w.observe(h, rows)
	// What two rounds cost, and a little: less than two more, wherever hypotheses are.
	w.policy, h.order = ceiling(float64(*w.spent.Budgets[0].EpsilonSwitch)+1), []int{0, 1, 2, 0, 1, 2}
	first := w.observe(h, rows)
	sent := slices.Clone(h.uploads)
	w.stays, h.order = true, []int{0, 1, 2}
	again := w.observe(h, rows)
	for name, seen := range map[string][]string{"at once": first[slices.Index(first, "decline of round 2, of the run true: budget"):], "after a restart": again} {
		text := strings.Join(seen, "\n")
		_, last, _ := strings.Cut(text, "offer of round 1")
		if strings.Count(text, "offer of round 0") != 1 || strings.Count(text, "offer of round 1") != 1 || !strings.Contains(last, "decline of round 2, of the run true: budget") {
			t.Errorf("%s: the server sees\n%s", name, text)
		}
	}
	all := append(sent, h.uploads...)
	if len(all) != 6 || w.releases() != 2 {
		t.Fatalf("%d uploads, %d charged", len(all), w.releases())
	}
	for i := 2; i < 6; i++ {
		if !bytes.Equal(all[i], all[i%2]) {
			t.Errorf("upload %d is another than upload %d", i, i%2)
		}
	}
	if before, _, _ := strings.Cut(strings.Join(again, "\n"), "offer of"); strings.Contains(before, "decline") {
		t.Errorf("it declines before it is asked:\n%s", before)
	}
}

// declined is a server that is only ever declined to.
type declined struct {
	wire.FederationClient
	codes []string
}

func (d *declined) Decline(_ context.Context, q *wire.DeclineRequest) (*wire.DeclineReply, error) {
	d.codes = append(d.codes, q.GetCode())
	return &wire.DeclineReply{}, nil
}

// TestAnotherPlanGetsNothing: a server that gives another plan the name of a run gets nothing
// that was released under the first one. The ledger is not even asked.
func TestAnotherPlanGetsNothing(t *testing.T) {
	server := &declined{}
	p := New(Options{Client: server, Log: federationtest.Quiet()})
	e := ledger.Entry{Charge: ledger.Charge{Slot: ledger.Slot{Federation: "f", Run: "r", Round: 1}, Plan: ledger.Hash{1}}, Status: ledger.Committed}
	if err := p.sendAgain(t.Context(), &session{sum: [32]byte{2}}, e); err != nil || len(server.codes) != 1 || server.codes[0] != pastCode {
		t.Errorf("%v, %v", err, server.codes)
	}
}
