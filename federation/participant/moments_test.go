package participant

import (
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// stumbling memory cannot save what holds after a round.
type stumbling struct {
	*FileMemory
	round int
}

func (m *stumbling) Save(round int, p *fl.Participant) error {
	if round == m.round {
		return errors.New("killed")
	}
	return m.FileMemory.Save(round, p)
}

// TestMomentsSurviveACrash: a silo that is killed in its first round uses the moments
// that it has kept, whether it makes the round again or the next one. If it was
// killed before it could keep them, they were of no use to anyone: it draws others,
// and the next round pays anew.
func TestMomentsSurviveACrash(t *testing.T) {
	folder := federationtest.Folder(t)
	text := strings.Replace(federationtest.PaidRun, "exact-seeded", "exact", 1) // another draw would differ
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := plan.LoadPolicy([]byte(federationtest.SiloPolicy))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fails, next   int // the memory that is not saved; the round that is made afterwards
		kept, charged bool
	}{{0, 0, true, true}, {0, 1, true, false}, {-1, 0, false, true}, {-1, 1, false, true}} {
		next, dir := c.next, t.TempDir()
		book, err := ledger.Open(filepath.Join(dir, "ledger"), policy.Budget())
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		public, _, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		p := New(Options{
			Name: "a", Federation: "f", Signer: public, Ledger: book, Policy: policy, Log: federationtest.Quiet(),
			Half: HalfOf(plan.JoinFile{Data: plan.Source{Kind: "run", Client: -1}}, nil, folder),
			Memory: func(run string, plan ledger.Hash) (Memory, error) {
				m, err := OpenMemory(dir, run, plan)
				return &stumbling{m, c.fails}, err
			},
		})
		if err := p.reconcile(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		life := func() *session {
			s := &session{plan: plan.Plan{Federation: "f", Run: "r", Participants: 3, Shape: data.Shape{Features: 28}}, run: run, sum: [32]byte{1}}
			if err := p.prepare(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		constants := func(s *session, round int, kept bool) []float64 {
			me, err := s.recall(round)
			if err != nil {
				t.Fatal(err)
			}
			centre, scale, ok := me.Moments()
			if ok != kept {
				t.Fatalf("%+v: before round %d there are moments: %v", c, round+1, ok)
			}
			return slices.Concat(centre, scale)
		}
		slot := func(round int) ledger.Slot { return ledger.Slot{Federation: "f", Run: "r", Round: round} }
		begin := func(s *session, round int) fl.Broadcast {
			b, err := s.half.Algorithm.Broadcast(s.half.Algorithm.Start())
			if err != nil {
				t.Fatal(err)
			}
			b.Round = round
			return b
		}
		first := life()
		if _, err := p.respond(first, slot(0), begin(first, 0)); !errors.Is(err, errPersist) {
			t.Fatalf("the first round ended with %v", err)
		}
		drawn := constants(first, 0, c.kept)
		second := life()
		second.memory.(*stumbling).round = -2
		if next > 0 {
			if err := book.Abandon(slot(0), "killed"); err != nil {
				t.Fatal(err)
			}
		}
		if released, err := p.respond(second, slot(next), begin(second, next)); err != nil || !released {
			t.Fatal(err)
		}
		if now := constants(second, next+1, true); slices.Equal(drawn, now) != c.kept {
			t.Errorf("%+v: the moments were %v, now %v", c, drawn, now)
		}
		e, ok := book.Entry(slot(next))
		if !ok || (len(federationtest.MomentNoises(e)) == 1) != c.charged {
			t.Errorf("%+v: the round is charged %+v", c, e.Release)
		}
	}
}
