package federation_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

var simulatedRelease = event.Release{
	Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustLocal,
	What: event.Gaussian{Noise: 1000},
}

func simulatedPolicy() plan.Policy {
	return plan.Policy{Ceilings: []plan.Ceiling{{Unit: "client", Relation: "replace-one", Claim: "proved", Epsilon: 8, Delta: 1e-6, Filter: "zcdp"}}}
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

func (w *world) memberOnce(alive context.Context, i int, life uint64) (participant.Report, error) {
	book, err := ledger.Open(filepath.Join(w.dir, w.name(i)), simulatedPolicy().Budget())
	if err != nil {
		return participant.Report{}, err
	}
	defer book.Close()
	l := &link{net: w.net, name: w.name(i), life: alive, rng: w.random(3, uint64(i)<<16|life)}
	client := wire.NewFederationClient(l, "http://server", connect.WithReadMaxBytes(transfer.PartBytes+transfer.Overhead))
	p := participant.New(participant.Options{
		Client: &witness{FederationClient: client, w: w, member: i, book: book}, Name: w.name(i), Federation: "simulated",
		Signer: w.signer.Public().(ed25519.PublicKey), Ledger: w.ledger(book), Policy: simulatedPolicy(), Log: federationtest.Quiet(),
		Memory: func(string, ledger.Hash) (participant.Memory, error) { return forgetful{}, nil },
		Half:   w.half(i, w.random(4, uint64(i)<<16|life)),
	})
	return p.Run(alive)
}

// forgetful is the memory of a method that keeps nothing.
type forgetful struct{}

func (forgetful) Save(int, *fl.Participant) error { return nil }

func (forgetful) Recall(int, *fl.Participant) error { return nil }

func (forgetful) Seed() (uint64, error) { return 1, nil }

func (forgetful) Begin() error { return nil }

// half answers every round with a vector that names its sender and the round. Now
// and then it takes its time or fails.
func (w *world) half(i int, rng *rand.Rand) func(context.Context, plan.Plan, config.Run, config.Run, int) (*participant.Half, error) {
	return func(_ context.Context, asked plan.Plan, run, _ config.Run, index int) (*participant.Half, error) {
		if index != i {
			return nil, fmt.Errorf("%s was given place %d", w.name(i), index)
		}
		m, err := model.Of(run, asked.Shape)
		if err != nil {
			return nil, err
		}
		a, err := fl.New(run, m, asked.Participants)
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
		return &participant.Half{Algorithm: a, Parameters: m.Parameters(), Data: &data.Client{}, Respond: respond, Enforcement: ledger.Enforced}, nil
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
	if release := q.GetRelease(); len(release) > 0 && sha256.Sum256(release) != sum {
		s.w.complain("%s sends other bytes for round %d than it offers", s.w.name(s.member), round)
	}
	reply, err := s.FederationClient.Offer(ctx, q)
	if err == nil && s.w.afterOffer != nil {
		s.w.afterOffer(round)
	}
	return reply, err
}
