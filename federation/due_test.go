package federation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// serving starts a server and returns how it ends, once it listens.
func (l *loopback) serving(ctx context.Context, change func(*plan.ServeFile)) <-chan servingEnd {
	l.t.Helper()
	f := l.serveFile()
	if change != nil {
		change(&f)
	}
	end := make(chan servingEnd, 1)
	listening := make(chan string, 1)
	go func() {
		res, err := server.Serve(ctx, server.Options{File: f, Seeded: true, Log: l.log, Listening: func(address string) { listening <- address }})
		end <- servingEnd{res, err}
	}()
	select {
	case l.server = <-listening:
	case e := <-end:
		l.t.Fatal(e.err)
	}
	return end
}

type servingEnd struct {
	res server.Result
	err error
}

// narrow is a ledger whose budget ends at a round: then something else, perhaps another
// federation, has used it up.
type narrow struct {
	*ledger.Ledger
	from     int
	released func(round int) // is told of every release
}

func (n narrow) Reserve(c ledger.Charge) error {
	if c.Slot.Round >= n.from {
		return fmt.Errorf("%w: the ceiling is reached", ledger.ErrRefused)
	}
	return n.Ledger.Reserve(c)
}

func (n narrow) Commit(s ledger.Slot, r ledger.SignedReceipt) error {
	err := n.Ledger.Commit(s, r)
	if n.released != nil {
		n.released(s.Round)
	}
	return err
}

// joinWith takes part with a ledger of the test's, as Join does.
func (l *loopback) joinWith(ctx context.Context, name string, wrap func(*ledger.Ledger) participant.Ledger) (participant.Report, error) {
	f, err := plan.LoadJoinFile([]byte("{}"), filepath.Join(l.dir, name))
	if err != nil {
		return participant.Report{}, err
	}
	m, err := identity.OpenMember(f.Identity)
	if err != nil {
		return participant.Report{}, err
	}
	config, err := m.ClientTLS()
	if err != nil {
		return participant.Report{}, err
	}
	policy, err := plan.LoadPolicy([]byte(federationtest.Policy))
	if err != nil {
		return participant.Report{}, err
	}
	book, err := ledger.Open(f.Ledger, policy.Budget())
	if err != nil {
		return participant.Report{}, err
	}
	defer book.Close()
	client, transport := participant.NewClient(l.server, config, nil)
	defer transport.CloseIdleConnections()
	return participant.New(participant.Options{
		Client: client, Name: name, Federation: m.Federation(), Signer: m.Signer(), Ledger: wrap(book), Policy: policy, Seeded: true, Log: l.log,
		Half: participant.HalfOf(f, nil, nil), Memory: func(run string, plan ledger.Hash) (participant.Memory, error) {
			return participant.OpenMemory(f.Out, run, plan)
		},
	}).Run(ctx)
}

// enrolAll gives everybody a certificate.
func (l *loopback) enrolAll(ctx context.Context) {
	l.t.Helper()
	a, err := identity.Open(filepath.Join(l.dir, "ca"), identity.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, name := range federationtest.Names {
		l.enrol(ctx, a, name)
	}
}

func newFederation(t *testing.T) (*loopback, context.Context) {
	l := newLoopback(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	if _, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:7443"}); err != nil {
		t.Fatal(err)
	}
	return l, ctx
}

// joinEnd is how a participant's part ends.
type joinEnd struct {
	name string
	res  participant.JoinResult
	err  error
}

// joinAll takes part as some, each on its own.
func (l *loopback) joinAll(ctx context.Context, names ...string) <-chan joinEnd {
	out := make(chan joinEnd, len(names))
	for _, name := range names {
		go func() {
			res, err := l.join(ctx, name)
			out <- joinEnd{name, res, err}
		}()
	}
	return out
}

// TestWhoHasPaidGetsTheModel: a participant whose budget ends in the middle of a run
// waits for the run's end, and has its models then, beside the refusal.
func TestWhoHasPaidGetsTheModel(t *testing.T) {
	l, ctx := newFederation(t)
	end := l.serving(ctx, nil)
	l.enrolAll(ctx)
	others := l.joinAll(ctx, "north", "south")
	report, err := l.joinWith(ctx, "west", func(book *ledger.Ledger) participant.Ledger { return narrow{Ledger: book, from: 2} })
	if !errors.Is(err, fl.ErrRefused) || report.Released != 2 || report.Declined != 1 {
		t.Errorf("released %d, declined %d: %v; want 2, 1 and a refusal", report.Released, report.Declined, err)
	}
	e := <-end
	if e.err != nil {
		t.Fatal(e.err)
	}
	if report.ModelSHA256 != e.res.ModelSHA256 || !sameModels(t, report.Models, read(t, filepath.Join(l.dir, "server", "model.safetensors"))) {
		t.Errorf("it has the model %.8q; the run ended with %.8q", report.ModelSHA256, e.res.ModelSHA256)
	}
	for range 2 {
		if o := <-others; o.err != nil || o.res.Released != 5 {
			t.Errorf("%s released %d: %v", o.name, o.res.Released, o.err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameModels says that what was sent and a file hold the same tensors, name by name and
// bit by bit; only the file describes itself.
func sameModels(t *testing.T, sent, file []byte) bool {
	t.Helper()
	a, err := model.ReadTensors[float64](bytes.NewReader(sent), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	b, err := model.ReadTensors[float64](bytes.NewReader(file), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return len(a) > 0 && reflect.DeepEqual(a, b)
}

// TestFinishedRunIsHandedOutAgain: who was away when a run ended gets its models from
// the server when that is started again, even if its budget is used up by then.
func TestFinishedRunIsHandedOutAgain(t *testing.T) {
	l, ctx := newFederation(t)
	end := l.serving(ctx, func(f *plan.ServeFile) { f.LingerSeconds, f.Quorum, f.Minimum = 2, 2, 2 })
	l.enrolAll(ctx)
	others := l.joinAll(ctx, "north", "south")
	gone, leave := context.WithCancel(ctx)
	_, err := l.joinWith(gone, "west", func(book *ledger.Ledger) participant.Ledger {
		return narrow{Ledger: book, from: 5, released: func(int) { leave() }}
	})
	if !errors.Is(err, transfer.ErrInterrupted) {
		t.Fatalf("%v; want %v", err, transfer.ErrInterrupted)
	}
	e := <-end
	if e.err != nil {
		t.Fatal(e.err)
	}
	for range 2 {
		if o := <-others; o.err != nil || o.res.ModelSHA256 != e.res.ModelSHA256 {
			t.Fatalf("%s has the model %.8q: %v", o.name, o.res.ModelSHA256, o.err)
		}
	}
	models := read(t, filepath.Join(l.dir, "server", "model.safetensors"))

	end = l.serving(ctx, func(f *plan.ServeFile) { f.LingerSeconds, f.Quorum, f.Minimum = 60, 2, 2 })
	late, err := l.joinWith(ctx, "west", func(book *ledger.Ledger) participant.Ledger { return spent{book} })
	if !errors.Is(err, fl.ErrRefused) || late.ModelSHA256 != e.res.ModelSHA256 || !sameModels(t, late.Models, models) {
		t.Errorf("model %.8q: %v; want %.8q, and a refusal beside it", late.ModelSHA256, err, e.res.ModelSHA256)
	}
	again := l.joinAll(ctx, "north", "south") // once more: then everybody has them, and the second server is done
	for range 2 {
		if o := <-again; o.err != nil || o.res.ModelSHA256 != e.res.ModelSHA256 {
			t.Errorf("%s has the model %.8q: %v", o.name, o.res.ModelSHA256, o.err)
		}
	}
	second := <-end
	if second.err != nil || second.res.ModelSHA256 != e.res.ModelSHA256 || second.res.Rounds != e.res.Rounds {
		t.Errorf("started again it ends after %d rounds with %.8q: %v", second.res.Rounds, second.res.ModelSHA256, second.err)
	}
}

// spent is a ledger that has nothing left.
type spent struct{ *ledger.Ledger }

func (s spent) Check(...event.Release) error {
	return fmt.Errorf("%w: the ceiling is reached", ledger.ErrRefused)
}

func (s spent) Reserve(ledger.Charge) error {
	return fmt.Errorf("%w: the ceiling is reached", ledger.ErrRefused)
}

// TestNothingLearntIsAFailure: a run in which nobody releases leaves no model, and says
// that it failed, to the server and to everybody who waits.
func TestNothingLearntIsAFailure(t *testing.T) {
	for name, from := range map[string]map[string]int{
		"nobody releases": {"north": 0, "south": 0, "west": 0},
		"too few release": {"north": 0, "south": 0, "west": 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, ctx := newFederation(t)
			end := l.serving(ctx, func(f *plan.ServeFile) { f.Minimum = 2 })
			l.enrolAll(ctx)
			failures := make(chan joinEnd, len(federationtest.Names))
			for _, name := range federationtest.Names {
				go func() {
					_, err := l.joinWith(ctx, name, func(book *ledger.Ledger) participant.Ledger { return narrow{Ledger: book, from: from[name]} })
					failures <- joinEnd{name: name, err: err}
				}()
			}
			if e := <-end; !errors.Is(e.err, transfer.ErrNothing) {
				t.Errorf("the server ends with %+v: %v; want %v", e.res, e.err, transfer.ErrNothing)
			}
			for range federationtest.Names {
				want := fl.ErrRefused
				f := <-failures
				if from[f.name] > 0 {
					want = transfer.ErrNothing
				}
				if !errors.Is(f.err, want) {
					t.Errorf("%s ends with %v; want %v", f.name, f.err, want)
				}
			}
			for _, file := range []string{"model.safetensors", "result.json"} {
				if _, err := os.Stat(filepath.Join(l.dir, "server", file)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the server left %s: %v", file, err)
				}
			}
		})
	}
}
