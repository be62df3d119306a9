package federation_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
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
	store   func(store.Store) store.Store           // the server's, perhaps with a planted bug
	ledger  func(*ledger.Ledger) participant.Ledger // a participant's

	afterOffer func(round int) // called when the server has taken an offer

	mu        sync.Mutex
	kill      func()         // ends the server's present life
	states    map[int][]byte // after every closed round, as stored
	sent      map[sentSlot][32]byte
	anomalies []string
	crashes   int
	finished  *server.Finished
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
func (w *world) plan() plan.Plan {
	asked := w.asked()
	p := plan.Plan{
		Version: plan.Version, Federation: "simulated", Run: fmt.Sprintf("run-%d", w.seed), RunFile: w.runFile(),
		Participants: w.members, Shape: data.Shape{Features: w.size},
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
		if ctx.Err() != nil || err != nil && !errors.Is(err, transfer.ErrInterrupted) {
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
	c, err := server.NewCoordinator(life, server.Terms{
		Plan: w.plan(), Names: names, Start: w.members, Store: w.store(tapped{s, w}), Signer: federationtest.Signer(w.signer), Log: federationtest.Quiet(),
	})
	if err != nil {
		return err
	}
	_, handler := wire.NewFederationHandler(server.NewHandlers(c, nil, 8),
		connect.WithReadMaxBytes(transfer.PartBytes+transfer.Overhead), connect.WithCompression("gzip", nil, nil))
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
		err = transfer.ErrInterrupted
	}
	w.net.mu.Lock()
	w.net.server = nil
	w.net.mu.Unlock()
	server.calls.Wait()
	return err
}
