package federation_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// goodTime is how long five rounds of two honest participants may take while they are
// attacked, enrolment included. Alone they take a second.
const goodTime = 45 * time.Second

// TestHostileValues: what no lattice holds is refused wherever it stands, and the run
// ends with models that a participant can use.
func TestHostileValues(t *testing.T) {
	b := besiege(t)
	tried := make(chan int, 1)
	go func() {
		n := 0
		for w := b.west.next(); w != nil; w = b.west.next() {
			round := w.GetSlot().GetRound()
			for _, v := range []float64{1e300, -1e300, 1e13, -math.MaxFloat64, math.Inf(1), math.NaN()} {
				body := vector(0, v)
				// The round may have ended without west.
				if err := b.west.offer(round, body, 100+round, nil, nil); err != nil {
					continue
				}
				n++
				if err := b.west.upload(round, transfer.NewPart(0, body)); err == nil {
					t.Errorf("%v was accepted in round %d", v, round+1)
				}
			}
			if _, err := b.west.client.Next(b.ctx, &wire.NextRequest{Run: b.west.plan.Run, PlanSha256: b.west.sum[:]}); err != nil {
				break // it has ended
			}
		}
		tried <- n
	}()
	b.holdsOut()
	if n := <-tried; n == 0 {
		t.Error("no value was tried")
	}
}

// TestHostileOffers: what is wrong with an offer or an upload is refused, with a
// reason, and what is right is still taken from the same participant.
func TestHostileOffers(t *testing.T) {
	b := besiege(t)
	h := b.west
	round := h.next().GetSlot().GetRound()
	good := vector(1, 2)
	deep := append([]byte(`{"release":{"what":`), strings.Repeat(`{"of":`, 100_000)...)
	worse := func(edit func(*wire.OfferRequest)) error { return h.offer(round, good, 1, edit, nil) }
	for what, err := range map[string]error{
		"too small":          h.offer(round, good[:8], 1, nil, nil),
		"too large":          h.offer(round, make([]byte, 1<<20), 1, nil, nil),
		"a short hash":       worse(func(q *wire.OfferRequest) { q.Content.Sha256 = q.Content.Sha256[:5] }),
		"a size below 0":     worse(func(q *wire.OfferRequest) { q.Content.Size = -8 }),
		"another's name":     h.offer(round, good, 1, nil, func(r *ledger.Receipt) { r.Participant = "north" }),
		"the next round":     h.offer(round+1, good, 1, nil, nil),
		"round 0":            h.offer(-1, good, 1, nil, nil),
		"the last round":     h.offer(math.MaxInt64, good, 1, nil, nil),
		"a path for a run":   worse(func(q *wire.OfferRequest) { q.Slot.Run = "../../../etc/x" }),
		"half a statement":   worse(func(q *wire.OfferRequest) { q.Statement = []byte("{") }),
		"a long statement":   worse(func(q *wire.OfferRequest) { q.Statement = make([]byte, 900<<10) }),
		"a deep statement":   worse(func(q *wire.OfferRequest) { q.Statement = deep }),
		"8 MB":               worse(func(q *wire.OfferRequest) { q.Statement = make([]byte, 8<<20) }),
		"nothing":            worse(func(q *wire.OfferRequest) { *q = wire.OfferRequest{} }),
		"an unoffered part":  h.upload(round, transfer.NewPart(0, good)),
		"an injected reason": decline(h, round, "x\n{\"level\":\"ERROR\"}"),
	} {
		if err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if err := h.offer(round, good, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	for what, parts := range map[string][]*wire.Part{
		"a gap": {transfer.NewPart(8, good[8:])}, "an offset below 0": {transfer.NewPart(-8, good)}, "a wrong sum": {{Data: good, Crc32C: 1}},
		"other bytes": {transfer.NewPart(0, vector(1, 3))}, "too much": {transfer.NewPart(0, good), transfer.NewPart(16, good)},
		"4 MB": {transfer.NewPart(0, make([]byte, 4<<20))}, "no part": {}, "an empty part": {nil},
	} {
		if h.upload(round, parts...) == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if err := h.offer(round, good, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.upload(round, transfer.NewPart(h.offset, good[h.offset:])); err != nil {
		t.Errorf("after bad ones, a good release is refused: %v", err)
	}
	if res := b.holdsOut(); res.Participants[2].Released != 1 {
		t.Errorf("west has released %d times, want once", res.Participants[2].Released)
	}
}

// TestHostileStreams: sixteen uploads without a part took every token for ten minutes.
// Now they take none, whether they are empty or stop after their first part.
func TestHostileStreams(t *testing.T) {
	for name, first := range map[string]*wire.Part{"empty": nil, "stalled": transfer.NewPart(0, vector(1, 2))} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t)
			h := b.west
			round := h.next().GetSlot().GetRound()
			if err := h.offer(round, vector(1, 2), 1, nil, nil); err != nil {
				t.Fatal(err)
			}
			for range 6 { // connections with 10 streams each
				client := h.connect()
				for range 10 {
					s, err := client.Upload(b.assault)
					if err != nil {
						t.Fatal(err)
					}
					var what *wire.UploadPart // nil: the headers alone
					if first != nil {
						what = &wire.UploadPart{Slot: h.slot(round), Part: first}
					}
					_ = s.Send(what) // the server may have closed it
				}
			}
			b.holdsOut()
		})
	}
}

// TestHostileRenewals: certificates without end would fill the authority's register.
func TestHostileRenewals(t *testing.T) {
	b := besiege(t)
	request, err := b.west.member.Request()
	if err != nil {
		t.Fatal(err)
	}
	const tries = 400
	granted := make(chan bool, tries)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range tries / 8 {
				_, err := b.west.client.Renew(b.assault, &wire.RenewRequest{SigningRequest: request})
				granted <- err == nil
			}
		})
	}
	b.holdsOut()
	wg.Wait()
	close(granted)
	n := 0
	for ok := range granted {
		if ok {
			n++
		}
	}
	if n == 0 || n > 12 { // five at once, then one in ten seconds
		t.Errorf("%d of %d renewals were granted; want some, and no more than a dozen", n, tries)
	}
}

// TestHostileEquivocations: other bytes for a slot are kept up to a number, counted
// beyond it, and do not keep the store from others.
func TestHostileEquivocations(t *testing.T) {
	b := besiege(t)
	h := b.west
	round := h.next().GetSlot().GetRound()
	body := vector(1, 1)
	if err := h.offer(round, body, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.upload(round, transfer.NewPart(0, body)); err != nil {
		t.Fatal(err)
	}
	const tries = 100
	for k := range tries {
		if err := h.offer(round, vector(2, float64(k)), 2, nil, nil); transfer.ReasonOf(err) != transfer.ReasonEquivocation {
			t.Errorf("other bytes: %v; want equivocation", err)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 { // of which the store takes one at a time
		wg.Go(func() {
			for k := 0; b.assault.Err() == nil; k++ {
				if err := h.offer(round, vector(3+float64(i), float64(k)), 2, nil, nil); err == nil {
					t.Error("other bytes are taken")
				}
			}
		})
	}
	res := b.holdsOut()
	wg.Wait()
	if n := res.Participants[2].Equivocations; n < tries {
		t.Errorf("the server counts %d equivocations, want at least %d", n, tries)
	}
	s, err := store.Open(t.Context(), b.serveFile().Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if kept, err := s.Equivocations(t.Context(), res.RunID); err != nil || len(kept) != store.MostEquivocations {
		t.Errorf("%d equivocations are kept (%v), want %d", len(kept), err, store.MostEquivocations)
	}
	if lines := strings.Count(b.words.String(), "other bytes for a slot"); lines == 0 || lines > 10 {
		t.Errorf("%d lines tell of more than %d equivocations; want a few", lines, tries)
	}
}

// TestHostileRequests: one participant's requests without end, over many connections.
func TestHostileRequests(t *testing.T) {
	b := besiege(t)
	var wg sync.WaitGroup
	for range 12 {
		client := b.west.connect()
		for range 16 {
			wg.Go(func() {
				for b.assault.Err() == nil {
					_, _ = client.Join(b.assault, &wire.JoinRequest{})
				}
			})
		}
	}
	b.holdsOut()
	wg.Wait()
}

// TestEmptyStreamEnds: an upload whose first part does not come is given up after the
// time of a part, and not after that of a whole transfer: a soak.
func TestEmptyStreamEnds(t *testing.T) {
	if !*federationtest.Soak {
		t.Skip("only with -soak: it takes 30 seconds")
	}
	b := besiege(t)
	config, err := b.west.member.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	_, transport := participant.NewClient(b.server, config, nil)
	defer transport.CloseIdleConnections()
	body, never := io.Pipe() // nothing is ever written
	defer never.Close()
	q, err := http.NewRequestWithContext(b.assault, "POST", "https://"+b.server+wire.FederationUploadProcedure, body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/connect+proto")
	began := time.Now()
	reply, err := transport.RoundTrip(q)
	if err == nil {
		_, err = io.Copy(io.Discard, reply.Body)
		reply.Body.Close()
	}
	if took := time.Since(began); took < server.PartTime-time.Second || took > server.PartTime+15*time.Second {
		t.Errorf("an empty stream ends after %v (%v), want %v", took, err, server.PartTime)
	}
}
