package federation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// witnessServer is a real server that notes every byte that reaches it, and at that
// moment looks into the sender's ledger.
type witnessServer struct {
	address   string
	authority *identity.Authority
	plan      plan.Plan
	ledger    string // the participant's folder

	mu        sync.Mutex
	requests  chan struct{} // one token for every request
	bytes     int64
	contents  map[int64]map[[32]byte]bool // complete releases seen, by round
	partial   int
	anomalies []string
}

func (s *witnessServer) complain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.anomalies = append(s.anomalies, fmt.Sprintf(format, args...))
}

// newWitness serves one participant, named p, whose folders are in dir.
func newWitness(t *testing.T, dir string, run string, features int) *witnessServer {
	t.Helper()
	s := &witnessServer{
		address: freeAddress(t), ledger: filepath.Join(dir, "ledger"), requests: make(chan struct{}, 1<<16),
		contents: map[int64]map[[32]byte]bool{},
	}
	a, err := identity.Init(filepath.Join(dir, "ca"), identity.Options{Server: s.address})
	if err != nil {
		t.Fatal(err)
	}
	s.authority = a
	s.plan = plan.Plan{
		Version: plan.Version, Federation: a.Federation(), Run: "witnessed", RunFile: run, Participants: 1,
		Shape: data.Shape{Features: features}, Quorum: 1, Minimum: 1, DeadlineSeconds: 600,
	}
	kept, err := store.Open(context.Background(), filepath.Join(dir, "server.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := server.NewCoordinator(context.Background(), server.Terms{
		Plan: s.plan, Names: []string{"p"}, Start: 1, Store: kept, Signer: a.Signer, Log: federationtest.Quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(c, a, plan.Limits{Connections: 100, Uploads: 4, UploadSeconds: 60}, federationtest.Quiet()).HTTPServer()
	srv.Handler = s.note(srv.Handler)
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = srv.Serve(tls.NewListener(l, srv.TLSConfig)) })
	ended.Go(func() { _, _ = c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		srv.Close()
		ended.Wait()
		kept.Close()
	})
	return s
}

// note takes a request in whole, or what arrives of it, before anything is done
// with it.
func (s *witnessServer) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.requests <- struct{}{}:
		default:
		}
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bytes += int64(len(body))
		s.mu.Unlock()
		switch r.URL.Path {
		case wire.FederationOfferProcedure:
			s.noteOffer(body, err == nil)
		case wire.FederationUploadProcedure:
			s.noteUpload(body)
		default:
			s.noteOther(r.URL.Path, body)
		}
		rest := io.Reader(bytes.NewReader(body))
		if err != nil {
			rest = io.MultiReader(rest, brokenReader{})
		}
		r.Body = io.NopCloser(rest)
		next.ServeHTTP(w, r)
	})
}

// entry is what the sender's ledger has on disk about a slot, now.
func (s *witnessServer) entry(round int64) (*ledger.Ledger, ledger.Entry, bool) {
	book, err := ledger.Read(s.ledger)
	if err != nil {
		s.complain("the ledger cannot be read while it is used: %v", err)
		return nil, ledger.Entry{}, false
	}
	e, known := book.Entry(ledger.Slot{Federation: s.plan.Federation, Run: s.plan.Run, Round: int(round)})
	return book, e, known && e.Status != ledger.Reserved
}

func (s *witnessServer) noteOffer(body []byte, whole bool) {
	var q wire.OfferRequest
	if !whole || proto.Unmarshal(body, &q) != nil {
		return // it names nothing yet
	}
	_, e, stored := s.entry(q.GetSlot().GetRound())
	if !stored || !bytes.Equal(e.Content[:], q.GetContent().GetSha256()) {
		s.complain("round %d is offered, stored: %v, content %v", q.GetSlot().GetRound(), stored, e.Content)
	}
	if sum := sha256.Sum256(q.GetRelease()); len(q.GetRelease()) > 0 && sum != [32]byte(e.Content) {
		s.complain("other bytes of round %d left with their offer than the ledger has stored", q.GetSlot().GetRound())
	}
}

// noteUpload holds every part against what the ledger has stored.
func (s *witnessServer) noteUpload(body []byte) {
	var round int64
	var seen []byte
	for len(body) >= 5 { // Connect: a byte of flags, a length, a message
		n := int(binary.BigEndian.Uint32(body[1:5]))
		message := body[5:min(5+n, len(body))]
		body = body[5+len(message):]
		var part wire.UploadPart
		if proto.Unmarshal(message, &part) != nil {
			break
		}
		if part.GetSlot() != nil {
			round = part.GetSlot().GetRound()
		}
		if part.GetPart().GetOffset() == int64(len(seen)) {
			seen = append(seen, part.GetPart().GetData()...)
		}
	}
	if len(seen) == 0 {
		return
	}
	book, e, stored := s.entry(round)
	switch {
	case !stored:
		s.complain("%d bytes of round %d left, and the ledger has not stored them", len(seen), round)
	case int64(len(seen)) == e.Size:
		sum := sha256.Sum256(seen)
		if sum != [32]byte(e.Content) {
			s.complain("round %d: %x left, the ledger has %v", round, sum, e.Content)
		}
		s.mu.Lock()
		if s.contents[round] == nil {
			s.contents[round] = map[[32]byte]bool{}
		}
		s.contents[round][sum] = true
		s.mu.Unlock()
	default:
		s.mu.Lock()
		s.partial++
		s.mu.Unlock()
		if all, err := book.Load(e.Slot); err == nil && !bytes.HasPrefix(all, seen) {
			s.complain("round %d: a part left that is not of what is stored", round)
		}
	}
}

// noteOther: no other call may carry more than names and numbers.
func (s *witnessServer) noteOther(path string, body []byte) {
	if len(body) > 1024 && !strings.HasSuffix(path, "/Enrol") {
		s.complain("%s carries %d bytes", path, len(body))
	}
}
