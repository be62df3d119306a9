package federation_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// besieged is a real server on this machine with two honest participants, north and
// south, and west, who has a valid certificate and follows no rule.
type besieged struct {
	*loopback
	ctx       context.Context
	assault   context.Context // ends when the honest ones are through
	relent    func()
	authority *identity.Authority
	words     *federationtest.Log
	ended     chan servedEnd
	west      *hostile
}

type servedEnd struct {
	res server.Result
	err error
}

// besiege starts the server and enrols north and west. Two releases close a round, so
// that it does not have to wait for west.
func besiege(t *testing.T) *besieged {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	b := &besieged{loopback: newLoopback(t), ctx: ctx, words: new(federationtest.Log), ended: make(chan servedEnd, 1)}
	b.assault, b.relent = context.WithCancel(ctx)
	var err error
	if b.authority, err = identity.Init(filepath.Join(b.dir, "ca"), identity.Options{Server: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	f := b.serveFile()
	f.Start, f.Quorum, f.Minimum, f.LingerSeconds = 1, 2, 2, 2
	f.Limits.Connections, f.Limits.Uploads = 20, 2
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := server.Serve(ctx, server.Options{
			File: f, Seeded: true, Log: slog.New(slog.NewTextHandler(b.words, nil)), Listening: func(address string) { b.address <- address },
		})
		b.ended <- servedEnd{res, err}
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case b.server = <-b.address:
	case e := <-b.ended:
		t.Fatal(e.err)
	}
	b.enrol(ctx, b.authority, "north")
	b.enrol(ctx, b.authority, "west")
	b.newHostile("north") // two must be there before a round begins
	b.west = b.newHostile("west")
	return b
}

// holdsOut lets south enrol and both honest participants take part, while an attack
// goes on, and returns what the server ends with.
func (b *besieged) holdsOut() server.Result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, goodTime)
	defer cancel()
	b.enrol(ctx, b.authority, "south")
	results := make(chan participant.JoinResult, 2)
	for _, name := range []string{"north", "south"} {
		go func() {
			res, err := b.join(ctx, name)
			if err != nil {
				b.t.Errorf("%s, under attack: %v", name, err)
			}
			results <- res
		}()
	}
	for range 2 {
		if res := <-results; res.Released == 0 {
			b.t.Errorf("%s has made no release", res.Participant)
		}
	}
	if b.t.Failed() {
		b.t.Fatalf("the server says: %.4000s", b.words.String())
	}
	b.relent()
	e := <-b.ended
	if e.err != nil {
		b.t.Fatal(e.err)
	}
	for _, p := range e.res.Participants[:2] { // west may have closed a round with one of them
		if p.Released < e.res.Rounds-1 || e.res.Abandoned > 0 {
			b.t.Errorf("%s released %d times in %d rounds, of which %d were abandoned", p.Name, p.Released, e.res.Rounds, e.res.Abandoned)
		}
	}
	return e.res
}

// hostile is a participant with a valid certificate, and no conscience.
type hostile struct {
	t      testing.TB
	ctx    context.Context
	member *identity.Member
	client wire.FederationClient
	server string
	plan   plan.Plan
	sum    [32]byte
	offset int64 // that the server gave for the last offer
}

func (b *besieged) newHostile(name string) *hostile {
	b.t.Helper()
	m, err := identity.OpenMember(filepath.Join(b.dir, name, "identity"))
	if err != nil {
		b.t.Fatal(err)
	}
	h := &hostile{t: b.t, ctx: b.assault, member: m, server: b.server}
	h.client = h.connect()
	reply, err := h.client.Join(h.ctx, &wire.JoinRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	if h.plan, _, err = plan.Parse(reply.GetPlan()); err != nil {
		b.t.Fatal(err)
	}
	h.sum = sha256.Sum256(reply.GetPlan())
	return h
}

// connect is a client with connections of its own.
func (h *hostile) connect() wire.FederationClient {
	h.t.Helper()
	config, err := h.member.ClientTLS()
	if err != nil {
		h.t.Fatal(err)
	}
	client, transport := participant.NewClient(h.server, config, nil)
	h.t.Cleanup(transport.CloseIdleConnections)
	return client
}

// next waits for work; nil: the run has ended, or the attack was called off.
func (h *hostile) next() *wire.Work {
	h.t.Helper()
	for {
		reply, err := h.client.Next(h.ctx, &wire.NextRequest{Run: h.plan.Run, PlanSha256: h.sum[:], WaitMilliseconds: 5000})
		if h.ctx.Err() != nil {
			return nil
		}
		if err != nil {
			h.t.Error(err)
			return nil
		}
		if reply.GetFinished() != nil || reply.GetWork() != nil {
			return reply.GetWork()
		}
	}
}

func (h *hostile) slot(round int64) *wire.Slot {
	return &wire.Slot{Run: h.plan.Run, PlanSha256: h.sum[:], Round: round}
}

// offer announces bytes with a made-up receipt; both can be made worse.
func (h *hostile) offer(round int64, body []byte, counter int64, worse func(*wire.OfferRequest), lie func(*ledger.Receipt)) error {
	r := event.Release{
		Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Trust: event.TrustLocal,
		What: event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.3},
	}
	sum := sha256.Sum256(body)
	receipt := ledger.Receipt{
		Version: 1, Participant: h.member.Name(), Slot: ledger.Slot{Federation: h.plan.Federation, Run: h.plan.Run, Round: int(round)},
		Plan: ledger.Hash(h.sum), Content: ledger.Hash(sum), Size: int64(len(body)), Release: r, Enforcement: ledger.Enforced, Counter: counter,
	}
	receipt.Spent.Unit, receipt.Spent.Relation, receipt.Spent.Claim = r.Unit, r.Relation, r.Claim
	_, _ = rand.Read(receipt.Head[:]) // never fails
	if lie != nil {
		lie(&receipt)
	}
	statement, err := json.Marshal(receipt)
	if err != nil {
		h.t.Error(err)
		return nil
	}
	q := &wire.OfferRequest{Slot: h.slot(round), Content: &wire.Content{Size: int64(len(body)), Sha256: sum[:]}, Statement: statement}
	if worse != nil {
		worse(q)
	}
	reply, err := h.client.Offer(h.ctx, q)
	if err == nil {
		h.offset = reply.GetOffset()
	}
	return transfer.FromWire(err)
}

func (h *hostile) upload(round int64, parts ...*wire.Part) error {
	s, err := h.client.Upload(h.ctx)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if s.Send(&wire.UploadPart{Slot: h.slot(round), Part: p}) != nil {
			break // the reply says why
		}
	}
	_, err = s.CloseAndReceive()
	return err
}

func vector(values ...float64) []byte { return transfer.AppendVector(nil, values) }

func decline(h *hostile, round int64, code string) error {
	_, err := h.client.Decline(h.ctx, &wire.DeclineRequest{Slot: h.slot(round), Code: code})
	return err
}
