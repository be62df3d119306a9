package federation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/ledger"
)

// loopback is a federation on this machine, over real connections, in one process.
type loopback struct {
	t       testing.TB
	dir     string
	address chan string
	server  string
	log     *slog.Logger
}

func (l *loopback) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func newLoopback(t testing.TB) *loopback {
	l := &loopback{t: t, dir: t.TempDir(), address: make(chan string, 1), log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	l.write("run.yaml", federationtest.Run)
	l.write("policy.yaml", federationtest.Policy)
	return l
}

func (l *loopback) serveFile() plan.ServeFile {
	f, err := plan.LoadServeFile([]byte("run: run.yaml\nlisten: 127.0.0.1:0\nparticipants: [north, south, west]\nlinger_seconds: 10\n"), l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

// enrol gives a participant its key and certificate.
func (l *loopback) enrol(ctx context.Context, a *identity.Authority, name string) {
	l.t.Helper()
	invite, err := a.Invite(name, time.Hour)
	if err != nil {
		l.t.Fatal(err)
	}
	invite.Server = l.server
	if _, err := participant.Enrol(ctx, invite.String(), filepath.Join(l.dir, name, "identity"), l.log); err != nil {
		l.t.Fatal(err)
	}
}

// join takes part as an enrolled participant.
func (l *loopback) join(ctx context.Context, name string) (participant.JoinResult, error) {
	f, err := plan.LoadJoinFile([]byte("ledger_witness: ../"+name+".witness\n"), filepath.Join(l.dir, name))
	if err != nil {
		return participant.JoinResult{}, err
	}
	policy, err := plan.LoadPolicy([]byte(federationtest.Policy))
	if err != nil {
		return participant.JoinResult{}, err
	}
	f.Server = l.server // it may have been started again, elsewhere
	return participant.Join(ctx, participant.JoinOptions{File: f, Policy: policy, Seeded: true, Log: l.log})
}

func TestLoopbackFederation(t *testing.T) {
	l := newLoopback(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if testing.Verbose() {
		l.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	a, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:7443"})
	if err != nil {
		t.Fatal(err)
	}
	type ended struct {
		res server.Result
		err error
	}
	serving := make(chan ended, 1)
	go func() {
		res, err := server.Serve(ctx, server.Options{
			File: l.serveFile(), Seeded: true, Log: l.log, Listening: func(address string) { l.address <- address },
		})
		serving <- ended{res, err}
	}()
	var address string
	select {
	case address = <-l.address:
	case e := <-serving:
		t.Fatal(e.err)
	}
	l.server = address
	results := make(chan participant.JoinResult, len(federationtest.Names))
	for _, name := range federationtest.Names {
		l.enrol(ctx, a, name)
		go func() {
			res, err := l.join(ctx, name)
			if err != nil {
				t.Error(name, err)
			}
			results <- res
		}()
	}
	e := <-serving
	if e.err != nil {
		t.Fatal(e.err)
	}
	for range federationtest.Names {
		if r := <-results; r.ModelSHA256 != e.res.ModelSHA256 || r.Released != 5 {
			t.Errorf("%s released %d and has model %.8s; want 5 and %.8s", r.Participant, r.Released, r.ModelSHA256, e.res.ModelSHA256)
		}
	}
	for _, name := range federationtest.Names {
		book, err := ledger.Read(filepath.Join(l.dir, name, "ledger"), ledger.WithWitness(filepath.Join(l.dir, name+".witness")))
		if err != nil || !book.Witnessed() {
			t.Errorf("the witness of %s: %v", name, err)
		}
	}
	for _, p := range e.res.Participants {
		if p.Spent == nil || p.Spent.EpsilonSwitch == nil || *p.Spent.EpsilonSwitch < 4 { // five times 4/5, and the spread
			t.Errorf("the server's account of %s has no epsilon_switch: %+v", p.Name, p.Spent)
		}
		if p.Released != 5 || p.Spent == nil || !(p.Spent.Epsilon >= 2) { // five times 2/5, and the lattice
			t.Errorf("the server's account of %s: %+v", p.Name, p)
		}
	}
}

// TestRevokedParticipantEnds: who is revoked does not try for ever, and says why.
func TestRevokedParticipantEnds(t *testing.T) {
	l := newLoopback(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := server.Serve(ctx, server.Options{
			File: l.serveFile(), Seeded: true, Log: l.log, Listening: func(address string) { l.address <- address },
		})
		if !errors.Is(err, transfer.ErrInterrupted) {
			t.Error(err)
		}
	}()
	l.server = <-l.address
	l.enrol(ctx, a, "north")
	if _, err := a.Revoke("north"); err != nil {
		t.Fatal(err)
	}
	_, err = l.join(ctx, "north")
	if err == nil || errors.Is(err, transfer.ErrInterrupted) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a revoked participant ends with %v; want a word on its certificate", err)
	}
	cancel()
	<-ended
}

// TestStoreOfAnEarlierRelease: a server does not go on with a run that was begun under an
// earlier version of the plan, though its files are the same: it says what to do, and
// that helps.
func TestStoreOfAnEarlierRelease(t *testing.T) {
	l := newLoopback(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	f := l.serveFile()
	run, err := plan.Read(f.Run)
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := plan.New(&f, run, a.Federation(), nil)
	if err != nil {
		t.Fatal(err)
	}
	earlier.Version, earlier.Run = plan.Version-1, "earlier"
	_, sum, err := earlier.Encode()
	if err != nil {
		t.Fatal(err)
	}
	l.write("server/out", "") // makes the folder
	kept, err := store.Open(ctx, f.Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	began := store.Run{ID: earlier.Run, File: []byte(earlier.RunFile), SHA256: fmt.Sprintf("%x", sum), Status: store.Running, Created: time.Now()}
	if err := kept.CreateRun(ctx, began); err != nil {
		t.Fatal(err)
	}
	for i, name := range f.Participants {
		if _, err := kept.AddParticipant(ctx, earlier.Run, name, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.OpenRound(ctx, store.Round{Run: earlier.Run, Clients: []int{0, 1, 2}, Status: store.RoundOpen, Opened: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := kept.CloseRound(ctx, earlier.Run, 0, []byte("a state of the earlier version"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	options := server.Options{File: f, Seeded: true, Log: l.log, Listening: func(string) { cancel() }}
	_, err = server.Serve(ctx, options)
	if err == nil || !strings.Contains(err.Error(), "run earlier") || !strings.Contains(err.Error(), "another release of coterie") || !strings.Contains(err.Error(), "--new") {
		t.Fatalf("a server goes on with an earlier release's run: %v; want a word on --new", err)
	}
	options.New = true
	if _, err := server.Serve(ctx, options); !errors.Is(err, transfer.ErrInterrupted) { // when it listens it is stopped
		t.Errorf("with --new the server ends with %v", err)
	}
}
