package federation

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// world is a whole federation in one process: the real coordinator, store,
// handlers, participants and ledgers over a bad network.
type world struct {
	t       *testing.T
	seed    uint64
	dir     string
	members int
	rounds  int
	size    int // values of a release, at least members
	signer  ed25519.PrivateKey
	net     *network
	store   func(store.Store) store.Store // the server's, perhaps with a planted bug
	ledger  func(*ledger.Ledger) Ledger   // a participant's

	afterOffer func(round int) // called when the server has taken an offer

	mu        sync.Mutex
	kill      func()         // ends the server's present life
	states    map[int][]byte // after every closed round, as stored
	sent      map[sentSlot][32]byte
	anomalies []string
	crashes   int
	finished  *Finished
}

type sentSlot struct{ member, round int }

// ramDisk is a folder where syncing costs nothing, if there is one: thousands of
// syncs would be all that is measured.
func ramDisk(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "coterie-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.anomalies = append(w.anomalies, fmt.Sprintf(format, args...))
}

// random is a stream for one purpose.
func (w *world) random(purpose, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, purpose<<32|n))
}

func (w *world) name(i int) string { return fmt.Sprintf("p%02d", i) }

// runFile asks for most of the members in every round; every value of a release has
// its owner's place, so that the mean names who is in it.
func (w *world) runFile() string {
	asked := w.asked()
	sampling := "uniform"
	if w.seed%2 == 0 {
		sampling = "balanced"
	}
	return fmt.Sprintf(`name: simulated
seed: %d
data: {kind: synthetic, users: %d, dimension: %d, groups: 1}
algorithm:
  kind: fedavg
  mode: sound
  rounds: %d
  clients_per_round: %d
  sampling: %s
`, w.seed, w.members, min(w.size, 1000), w.rounds, asked, sampling)
}

// asked is how many members a round asks.
func (w *world) asked() int {
	if w.seed%3 == 0 {
		return max(1, w.members*3/4)
	}
	return w.members
}

// plan of every fourth seed wants nearly all releases, so that many rounds are
// abandoned.
func (w *world) plan() Plan {
	asked := w.asked()
	p := Plan{
		Version: planVersion, Federation: "simulated", Run: fmt.Sprintf("run-%d", w.seed), RunFile: w.runFile(),
		Participants: w.members, Shape: Shape{Features: w.size},
		Quorum: max(1, asked*9/10), Minimum: max(1, asked/2), DeadlineSeconds: 120,
	}
	if w.seed%4 == 1 {
		p.Quorum, p.Minimum = asked, asked-asked/20
	}
	return p
}

// tapped is a store that notes what every round ended with.
type tapped struct {
	store.Store
	w *world
}

func (s tapped) CloseRound(ctx context.Context, run string, number int, state []byte, at time.Time) error {
	err := s.Store.CloseRound(ctx, run, number, state, at)
	if err == nil {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		if _, twice := s.w.states[number]; twice {
			s.w.anomalies = append(s.w.anomalies, fmt.Sprintf("round %d was closed twice", number))
		}
		s.w.states[number] = append([]byte(nil), state...)
	}
	return err
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (w *world) openStore(ctx context.Context) (store.Store, error) {
	return store.Open(ctx, filepath.Join(w.dir, "server.db"), store.Options{})
}

// serve lives through the server's lives until the run has ended, and then until
// ctx does.
func (w *world) serve(ctx context.Context) error {
	rng := w.random(1, 0)
	for {
		life, kill := context.WithCancel(ctx)
		if w.net.isFaulty() {
			doom := time.AfterFunc(time.Duration(rng.ExpFloat64()*float64(10*time.Minute)), kill)
			defer doom.Stop()
		}
		w.mu.Lock()
		w.kill = kill
		w.mu.Unlock()
		err := w.serveOnce(ctx, life)
		kill()
		if ctx.Err() != nil || err != nil && !errors.Is(err, ErrInterrupted) {
			return err
		}
		w.mu.Lock()
		w.crashes++
		over := w.finished != nil
		w.mu.Unlock()
		if over {
			w.net.calm() // those who come late must be able to hear of the end
		}
		if pause(ctx, time.Duration(rng.IntN(60))*time.Second) != nil {
			return nil
		}
	}
}

// serveOnce is one life of the server. When life ends it is as if it were killed: no
// reply gets out any more.
func (w *world) serveOnce(ctx, life context.Context) error {
	s, err := w.openStore(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	names := make([]string, w.members)
	for i := range names {
		names[i] = w.name(i)
	}
	c, err := NewCoordinator(life, Terms{
		Plan: w.plan(), Names: names, Start: w.members, Store: w.store(tapped{s, w}), Signer: w.signer, Log: quiet(),
	})
	if err != nil {
		return err
	}
	_, handler := wire.NewFederationHandler(&handlers{c: c, uploads: make(chan struct{}, 8)},
		connect.WithReadMaxBytes(PartBytes+overhead), connect.WithCompression("gzip", nil, nil))
	server := &simulatedServer{handler: handler, life: life}
	w.net.mu.Lock()
	w.net.server = server
	w.net.mu.Unlock()
	end, err := c.Run(life)
	if err == nil {
		w.mu.Lock()
		w.finished = &end
		w.mu.Unlock()
		<-life.Done()
		err = ErrInterrupted
	}
	w.net.mu.Lock()
	w.net.server = nil
	w.net.mu.Unlock()
	server.calls.Wait()
	return err
}

var simulatedRelease = event.Release{
	Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustLocal,
	What: event.Gaussian{Noise: 1000},
}

func simulatedPolicy() Policy {
	return Policy{Ceilings: []Ceiling{{Unit: "client", Relation: "replace-one", Claim: "proved", Epsilon: 8, Delta: 1e-6, Filter: "zcdp"}}}
}

// member lives through one participant's lives until its part in the run is over.
func (w *world) member(ctx context.Context, i int) error {
	rng := w.random(2, uint64(i))
	for life := uint64(0); ; life++ {
		alive, kill := context.WithCancel(ctx)
		if w.net.isFaulty() && rng.IntN(3) == 0 {
			doom := time.AfterFunc(time.Duration(rng.ExpFloat64()*float64(15*time.Minute)), kill)
			defer doom.Stop()
		}
		_, err := w.memberOnce(alive, i, life)
		dead := alive.Err() != nil
		kill()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !dead {
			return err
		}
		w.mu.Lock()
		w.crashes++
		w.mu.Unlock()
		if err := pause(ctx, time.Duration(rng.IntN(120))*time.Second); err != nil {
			return err
		}
	}
}

func (w *world) memberOnce(alive context.Context, i int, life uint64) (Report, error) {
	book, err := ledger.Open(filepath.Join(w.dir, w.name(i)), simulatedPolicy().Budget())
	if err != nil {
		return Report{}, err
	}
	defer book.Close()
	l := &link{net: w.net, name: w.name(i), life: alive, rng: w.random(3, uint64(i)<<16|life)}
	client := wire.NewFederationClient(l, "http://server", connect.WithReadMaxBytes(PartBytes+overhead))
	p := NewParticipant(ParticipantOptions{
		Client: &witness{FederationClient: client, w: w, member: i, book: book}, Name: w.name(i), Federation: "simulated",
		Signer: w.signer.Public().(ed25519.PublicKey), Ledger: w.ledger(book), Policy: simulatedPolicy(), Log: quiet(),
		Memory: func(string) (Memory, error) { return forgetful{}, nil },
		Half:   w.half(i, w.random(4, uint64(i)<<16|life)),
	})
	return p.Run(alive)
}

// forgetful is the memory of a method that keeps nothing.
type forgetful struct{}

func (forgetful) Save(string, int, *fl.Participant) error   { return nil }
func (forgetful) Recall(string, int, *fl.Participant) error { return nil }
func (forgetful) Seed() (uint64, error)                     { return 1, nil }

// half answers every round with a vector that names its sender and the round. Now
// and then it takes its time or fails.
func (w *world) half(i int, rng *rand.Rand) func(context.Context, Plan, config.Run, config.Run, int) (*Half, error) {
	return func(_ context.Context, plan Plan, run, _ config.Run, index int) (*Half, error) {
		if index != i {
			return nil, fmt.Errorf("%s was given place %d", w.name(i), index)
		}
		m, err := newModel(run, plan.Shape)
		if err != nil {
			return nil, err
		}
		a, err := fl.New(run, m, plan.Participants)
		if err != nil {
			return nil, err
		}
		respond := func(b fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
			if w.net.isFaulty() && rng.IntN(50) == 0 {
				return false, errors.New("the trainer is broken today")
			}
			time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
			if w.net.isFaulty() && rng.IntN(40) == 0 {
				time.Sleep(time.Duration(rng.IntN(240)) * time.Second) // a straggler
			}
			if err := p.Purse.Reserve(b.Round, simulatedRelease); err != nil {
				return false, err
			}
			clear(out)
			out[i] = float64(b.Round + 1)
			return true, nil
		}
		return &Half{Algorithm: a, Parameters: m.Parameters(), Data: &data.Client{}, Respond: respond, Enforcement: ledger.Enforced}, nil
	}
}

// witness sees everything that leaves a participant: nothing may that its ledger has
// not stored, and never other bytes for the same slot.
type witness struct {
	wire.FederationClient
	w      *world
	member int
	book   *ledger.Ledger
}

func (s *witness) Offer(ctx context.Context, q *wire.OfferRequest) (*wire.OfferReply, error) {
	round := int(q.GetSlot().GetRound())
	e, known := s.book.Entry(ledger.Slot{Federation: "simulated", Run: q.GetSlot().GetRun(), Round: round})
	if !known || e.Status == ledger.Reserved {
		s.w.complain("%s offers round %d, which its ledger has not stored: %v", s.w.name(s.member), round, e.Status)
	}
	sum := [32]byte(q.GetContent().GetSha256())
	s.w.mu.Lock()
	before, again := s.w.sent[sentSlot{s.member, round}]
	s.w.sent[sentSlot{s.member, round}] = sum
	s.w.mu.Unlock()
	if again && before != sum {
		s.w.complain("%s offers other bytes for round %d", s.w.name(s.member), round)
	}
	reply, err := s.FederationClient.Offer(ctx, q)
	if err == nil && s.w.afterOffer != nil {
		s.w.afterOffer(round)
	}
	return reply, err
}
