package federation

import (
	"compress/gzip"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/ledger"
)

const paidRun = `name: paid
seed: 3
data: {kind: school, standardise: paid}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 1, local: {epochs: 1, step: 0.01, batch: 32}}
privacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}
`

// fewSchools are made-up ones.
func fewSchools(t *testing.T) *data.Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "school"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "school", "school.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := gzip.NewWriter(f)
	fmt.Fprint(text, "school")
	for j := range 28 {
		fmt.Fprintf(text, ",f%02d", j)
	}
	fmt.Fprintln(text, ",score")
	family := rng.NewFamily(8, "made-up schools")
	for school := range 3 {
		s := family.Stream(0, school)
		for range 60 {
			fmt.Fprint(text, school)
			for range 28 {
				fmt.Fprintf(text, ",%d", s.Below(2))
			}
			fmt.Fprintf(text, ",%d\n", 1+s.Below(70))
		}
	}
	if err := text.Close(); err != nil {
		t.Fatal(err)
	}
	return data.NewFolder(dir)
}

// momentsOf are the noises of a charge's moments.
func momentsOf(e ledger.Entry) (noises []float64) {
	for _, part := range e.Release.What.(event.Composed).Parts {
		if g, ok := part.(event.Gaussian); ok {
			noises = append(noises, g.Noise)
		}
	}
	return noises
}

// TestPaidMomentsOverTheNetwork: silos that pay for their moments have the models
// and constants of the simulation, bit for bit, and their ledgers the charge, once.
func TestPaidMomentsOverTheNetwork(t *testing.T) {
	dir := siloFederation(t, fewSchools(t), paidRun)
	for i := range 3 {
		book, err := ledger.Read(filepath.Join(dir, fmt.Sprintf("silo-%d", i), "ledger"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := book.Summary()
		if err != nil || len(s.Runs) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		for round := range 3 {
			e, ok := book.Entry(ledger.Slot{Federation: s.Federations[0].Federation, Run: s.Runs[0].Run, Round: round})
			if !ok || (len(momentsOf(e)) == 1) != (round == 0) {
				t.Errorf("silo %d, round %d is charged %+v", i, round+1, e.Release)
			}
		}
	}
}

// stumbling memory cannot save what holds after a round.
type stumbling struct {
	*FileMemory
	round int
}

func (m *stumbling) Save(run string, round int, p *fl.Participant) error {
	if round == m.round {
		return errors.New("killed")
	}
	return m.FileMemory.Save(run, round, p)
}

// TestMomentsSurviveACrash: a silo that is killed in its first round uses the moments
// that it has kept, whether it makes the round again or the next one. If it was
// killed before it could keep them, they were of no use to anyone: it draws others,
// and the next round pays anew.
func TestMomentsSurviveACrash(t *testing.T) {
	folder := fewSchools(t)
	text := strings.Replace(paidRun, "exact-seeded", "exact", 1) // another draw would differ
	run, err := config.Resolve([]byte(text), nil, checks()...)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := LoadPolicy([]byte(siloPolicy))
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
		p := NewParticipant(ParticipantOptions{
			Name: "a", Federation: "f", Signer: public, Ledger: book, Policy: policy, Log: quiet(),
			Half: halfOf(JoinFile{Data: Source{Kind: "run", Client: -1}}, nil, folder),
			Memory: func(run string) (Memory, error) {
				m, err := OpenMemory(dir, run)
				return &stumbling{m, c.fails}, err
			},
		})
		if err := p.reconcile(nil); err != nil {
			t.Fatal(err)
		}
		life := func() *session {
			s := &session{plan: Plan{Federation: "f", Run: "r", Participants: 3, Shape: data.Shape{Features: 28}}, run: run, sum: [32]byte{1}}
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
		if !ok || (len(momentsOf(e)) == 1) != c.charged {
			t.Errorf("%+v: the round is charged %+v", c, e.Release)
		}
	}
}
