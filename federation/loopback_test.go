package federation

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
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

const testRun = `name: test
seed: 7
data: {kind: synthetic, users: 3, samples: 20}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 5, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact-seeded}
`

const testPolicy = `ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}
`

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
	l.write("run.yaml", testRun)
	l.write("policy.yaml", testPolicy)
	return l
}

var testNames = []string{"north", "south", "west"}

func (l *loopback) serveFile() ServeFile {
	f, err := LoadServeFile([]byte("run: run.yaml\nlisten: 127.0.0.1:0\nparticipants: [north, south, west]\nlinger_seconds: 10\n"), l.dir)
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
	if _, err := Enrol(ctx, invite.String(), filepath.Join(l.dir, name, "identity"), l.log); err != nil {
		l.t.Fatal(err)
	}
}

// join takes part as an enrolled participant.
func (l *loopback) join(ctx context.Context, name string) (JoinResult, error) {
	f, err := LoadJoinFile([]byte("ledger_witness: ../"+name+".witness\n"), filepath.Join(l.dir, name))
	if err != nil {
		return JoinResult{}, err
	}
	policy, err := LoadPolicy([]byte(testPolicy))
	if err != nil {
		return JoinResult{}, err
	}
	f.Server = l.server // it may have been started again, elsewhere
	return Join(ctx, JoinOptions{File: f, Policy: policy, Seeded: true, Log: l.log})
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
		res ServeResult
		err error
	}
	server := make(chan ended, 1)
	go func() {
		res, err := Serve(ctx, ServeOptions{
			File: l.serveFile(), Seeded: true, Log: l.log, Listening: func(address string) { l.address <- address },
		})
		server <- ended{res, err}
	}()
	var address string
	select {
	case address = <-l.address:
	case e := <-server:
		t.Fatal(e.err)
	}
	l.server = address
	results := make(chan JoinResult, len(testNames))
	for _, name := range testNames {
		l.enrol(ctx, a, name)
		go func() {
			res, err := l.join(ctx, name)
			if err != nil {
				t.Error(name, err)
			}
			results <- res
		}()
	}
	e := <-server
	if e.err != nil {
		t.Fatal(e.err)
	}
	for range testNames {
		if r := <-results; r.ModelSHA256 != e.res.ModelSHA256 || r.Released != 5 {
			t.Errorf("%s released %d and has model %.8s; want 5 and %.8s", r.Participant, r.Released, r.ModelSHA256, e.res.ModelSHA256)
		}
	}
	for _, name := range testNames {
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
