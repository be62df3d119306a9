package participant

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// hostileServer asks what it likes and writes down all that it can see: which calls
// come in which order, how long they are, and every public word in them.
type hostileServer struct {
	wire.FederationHandler // what it does not serve is not called
	plan                   plan.Plan
	text                   []byte
	sum                    [32]byte
	broadcasts             [][]byte                        // one a round; nil: the round is not asked for
	order                  []int                           // of the rounds that are asked for; nil: one after another
	instead                [][]byte                        // by place in order: what such a round begins with; nil: as ever
	uploads                [][]byte                        // releases that came in
	refuses                func(round int) transfer.Reason // offers; nil or empty: takes them
	end                    [][]byte                        // broadcast and models that the run ends with; nil: it does not
	next                   int
	offered                []byte
	key                    ed25519.PrivateKey
	seen                   []string
	stale                  int // so many times it has another plan, of another run's name, at every turn
}

func (h *hostileServer) note(format string, args ...any) {
	h.seen = append(h.seen, fmt.Sprintf(format, args...))
}

func (h *hostileServer) Join(context.Context, *wire.JoinRequest) (*wire.JoinReply, error) {
	h.note("join")
	if h.stale > 0 {
		var err error
		h.plan.Run = fmt.Sprint("stale ", h.stale)
		if h.text, h.sum, err = h.plan.Encode(); err != nil {
			return nil, err
		}
	}
	return &wire.JoinReply{Plan: h.text}, nil
}

func (h *hostileServer) Next(context.Context, *wire.NextRequest) (*wire.NextReply, error) {
	h.note("next")
	if h.stale--; h.stale >= 0 {
		return nil, transfer.ToWire(transfer.Refuse(transfer.ReasonStale, "there is another plan"))
	}
	order := h.order
	if order == nil {
		for i := range h.broadcasts {
			order = append(order, i)
		}
	}
	if h.next == len(order) && h.end != nil {
		return &wire.NextReply{What: &wire.NextReply_Finished{Finished: &wire.Finished{
			Rounds: 1, Stopped: "rounds", Broadcast: contentOf(h.end[0]), Models: contentOf(h.end[1]),
		}}}, nil
	}
	if h.next == len(order) {
		return nil, connect.NewError(connect.CodePermissionDenied, errors.New("that was all"))
	}
	round := order[h.next]
	b := h.broadcasts[round]
	if h.next < len(h.instead) && h.instead[h.next] != nil {
		b = h.instead[h.next]
	}
	h.next++
	return &wire.NextReply{What: &wire.NextReply_Work{Work: &wire.Work{
		Slot: &wire.Slot{Run: h.plan.Run, PlanSha256: h.sum[:], Round: int64(round)}, Broadcast: contentOf(b), MillisecondsLeft: 60_000, Cohort: 1,
	}}}, nil
}

func contentOf(b []byte) *wire.Content {
	sum := sha256.Sum256(b)
	return &wire.Content{Size: int64(len(b)), Sha256: sum[:]}
}

func (h *hostileServer) Broadcast(_ context.Context, q *wire.BroadcastRequest, out *connect.ServerStream[wire.Part]) error {
	h.note("broadcast from %d", q.GetOffset())
	b := h.broadcasts[0]
	for _, one := range slices.Concat(h.end, h.broadcasts, h.instead) {
		if string(contentOf(one).GetSha256()) == string(q.GetSha256()) {
			b = one
		}
	}
	return out.Send(&wire.Part{Data: b, Crc32C: crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))})
}

// Offer writes down the statement but for its hashes, which say nothing but that the
// noised bytes differ.
func (h *hostileServer) Offer(_ context.Context, q *wire.OfferRequest) (*wire.OfferReply, error) {
	if h.refuses != nil {
		if reason := h.refuses(int(q.GetSlot().GetRound())); reason != "" {
			h.note("refused round %d as %s", q.GetSlot().GetRound(), reason)
			return nil, transfer.ToWire(transfer.Refuse(reason, "so it is"))
		}
	}
	h.offered = q.GetStatement()
	r, err := ledger.ParseReceipt(h.offered)
	if err != nil {
		return nil, err
	}
	r.Content, r.Head = ledger.Hash{}, ledger.Hash{}
	words, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	h.note("offer of round %d: %d bytes and %d with it, a statement of %d: %s", q.GetSlot().GetRound(), q.GetContent().GetSize(), len(q.GetRelease()), len(h.offered), words)
	return &wire.OfferReply{}, nil
}

func (h *hostileServer) Upload(_ context.Context, in *connect.ClientStream[wire.UploadPart]) (*wire.UploadReply, error) {
	var all []byte
	for in.Receive() {
		h.note("part of %d bytes", len(in.Msg().GetPart().GetData()))
		all = append(all, in.Msg().GetPart().GetData()...)
	}
	h.uploads = append(h.uploads, all)
	r, err := ledger.ParseReceipt(h.offered)
	if err != nil {
		return nil, err
	}
	signed, err := ledger.Sign(r, h.key)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(signed)
	return &wire.UploadReply{Receipt: text}, err
}

func (h *hostileServer) Decline(_ context.Context, q *wire.DeclineRequest) (*wire.DeclineReply, error) {
	h.note("decline of round %d, of the run %v: %s", q.GetSlot().GetRound(), q.GetWholeRun(), q.GetCode())
	return &wire.DeclineReply{}, nil
}

// hostileWorld is a hostile server on loopback and a participant's folders in memory.
type hostileWorld struct {
	t       *testing.T
	handler *hostileServer
	client  wire.FederationClient
	dir     string
	trial   int
	stays   bool // the next participant has the folders of the last one
	blank   int  // releases of the last participant that say nothing of its data
	failed  int  // of them, those in which training failed, by its own log
	policy  string
	keep    int64  // bytes of committed releases that participants keep
	report  Report // of the last participant
	spent   ledger.Summary
	err     error
}

func newHostileWorld(t *testing.T) *hostileWorld {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "hostile") // nothing has to survive here
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &hostileWorld{t: t, dir: dir, policy: hostilePolicy}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &plain, Handler: http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		_, service := wire.NewFederationHandler(w.handler)
		service.ServeHTTP(out, q)
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	transport := &http.Transport{Protocols: &plain}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = wire.NewFederationClient(&http.Client{Transport: transport}, "http://"+listener.Addr().String())
	return w
}

// observe lets a participant with some rows meet the server, and returns what the
// server saw.
func (w *hostileWorld) observe(h *hostileServer, rows *data.Client) []string {
	w.t.Helper()
	if !w.stays {
		os.RemoveAll(filepath.Join(w.dir, fmt.Sprint(w.trial)))
		w.trial++
	}
	w.handler = h
	h.next, h.seen, h.offered, h.uploads = 0, nil, nil, nil
	policy, err := plan.LoadPolicy([]byte(w.policy))
	if err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.dir, fmt.Sprint(w.trial))
	book, err := ledger.Open(filepath.Join(dir, "ledger"), policy.Budget(), ledger.WithKept(w.keep))
	if err != nil {
		w.t.Fatal(err)
	}
	run, err := plan.Resolve([]byte(h.plan.RunFile))
	if err != nil {
		w.t.Fatal(err)
	}
	own := &Own{examples: rows, described: plan.Shared(run.Data), seed: run.Seed, agreedUpon: "run.yaml"}
	file := plan.JoinFile{Data: plan.Source{Kind: "own"}}
	p := New(Options{
		Client: w.client, Name: "north", Federation: h.plan.Federation, Signer: h.key.Public().(ed25519.PublicKey),
		Ledger: book, Policy: policy, Half: HalfOf(file, own, nil),
		Memory: func(run string, plan ledger.Hash) (Memory, error) { return OpenMemory(dir, run, plan) },
		Log:    slog.New(failures{&w.failed}),
	})
	w.failed = 0
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	w.report, err = p.Run(ctx)
	w.blank, w.err = w.report.Blank, err
	if ctx.Err() != nil {
		w.t.Fatalf("the participant does not come to an end: %v; the server saw %v", err, h.seen)
	}
	if w.spent, err = book.Summary(); err != nil {
		w.t.Fatal(err)
	}
	if err := book.Close(); err != nil {
		w.t.Fatal(err)
	}
	return h.seen
}

// failures is a log that counts trainings that failed.
type failures struct{ n *int }

func (f failures) Enabled(context.Context, slog.Level) bool { return true }
func (f failures) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f failures) WithGroup(string) slog.Handler            { return f }
func (f failures) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "TRAINING FAILED") {
		*f.n++
	}
	return nil
}

// ask makes a server of a run file for examples of a shape.
func (w *hostileWorld) ask(text string, shape data.Shape) (*hostileServer, *fl.Algorithm, bool) {
	w.t.Helper()
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		return nil, nil, false // a server can send it, and it is refused before anything else
	}
	run.Data = plan.Shared(run.Data)
	resolved, err := run.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	h := &hostileServer{key: key, plan: plan.Plan{
		Version: plan.Version, Federation: "f", Run: "r", RunFile: string(resolved), Participants: 3,
		Shape: shape, Quorum: 1, Minimum: 1, DeadlineSeconds: 60,
	}}
	if h.text, h.sum, err = h.plan.Encode(); err != nil {
		w.t.Fatal(err)
	}
	m, err := model.Of(run, h.plan.Shape)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := fl.New(run, m, 3)
	if err != nil {
		return nil, nil, false
	}
	return h, a, true
}
