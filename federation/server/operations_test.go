package server

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// served is a bench with a network.
func served(t *testing.T, change func(*plan.Plan)) (*bench, *Server, *identity.Authority) {
	t.Helper()
	b := newBench(t, change)
	a, err := identity.Init(filepath.Join(b.dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return b, New(b.c, a, plan.Limits{Connections: 10, Uploads: 2, UploadSeconds: 60}, federationtest.Quiet()), a
}

func TestOperatorsSeeHealthAndFigures(t *testing.T) {
	b, s, _ := served(t, nil)
	b.work("north")
	b.mustSend("north", 0, 1, 2)
	_, err := b.send("north", 0, 1, 3)
	b.wantReason(err, transfer.ReasonEquivocation)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		s.Admin().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, figures := get("/metrics")
	for _, want := range []string{
		"coterie_round 1\n", "coterie_round_asked 3\n", `coterie_answers_total{kind="released"} 1`, "coterie_received_bytes_total 16\n",
		// What has not happened is there with 0.
		`coterie_answers_total{kind="declined"} 0`, `coterie_answers_total{kind="left"} 0`, `coterie_rounds_total{end="closed"} 0`,
		`coterie_rounds_total{end="abandoned"} 0`, `coterie_refused_total{reason="equivocation"} 0`, `coterie_refused_total{reason="internal"} 0`,
		`coterie_call_duration_seconds_count{call="Offer"} 0`, `coterie_call_duration_seconds_count{call="Next"} 0`,
		"coterie_round_duration_seconds_count 0\n", "coterie_round_closing_duration_seconds_count 0\n",
		"coterie_record_duration_seconds_count 1\n", `coterie_record_duration_seconds_bucket{le="+Inf"} 1`,
		"go_goroutines ", "go_memstats_heap_alloc_bytes ", "process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds ",
	} {
		if !strings.Contains(figures, want) {
			t.Errorf("/metrics lacks %q:\n%s", want, figures)
		}
	}
	s.draining.Store(true)
	if code, _ := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("a server that stops says %d at /readyz", code)
	}
	b.store.Close()
	if code, _ := get("/healthz"); code != http.StatusServiceUnavailable {
		t.Errorf("a server without a store says %d at /healthz", code)
	}
}

// TestStoppingSendsWaitersAway: whoever waits for work is sent away at once, and the
// server ends within seconds.
func TestStoppingSendsWaitersAway(t *testing.T) {
	b, s, _ := served(t, nil)
	b.work("north")
	b.mustSend("north", 0, 1, 2) // so that there is nothing to do for it
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	waiting := make(chan error, 1)
	go func() {
		_, _, err := b.c.next(context.Background(), "north", b.plan.Run, b.c.sum[:], time.Minute)
		waiting <- err
	}()
	for present, _ := b.c.presence.count(); present == 0; present, _ = b.c.presence.count() {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-waiting; transfer.ReasonOf(err) != transfer.ReasonDraining {
		t.Errorf("the waiter is told %v; want draining", err)
	}
}

// TestCallsAreSpansOfTheirRound: asking for work, releasing, declining; also what comes
// when the next round is open. What belongs to no round stands alone.
func TestCallsAreSpansOfTheirRound(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	b := newBench(t, func(p *plan.Plan) { shortRun(p); p.Run = "idle" })
	b.stop()
	b.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	b.plan.Run, b.enclosed = "r", true
	b.begin()
	h := NewHandlers(b.c, nil, 2)
	as := func(name string) context.Context {
		return identity.WithPeer(t.Context(), identity.Peer{Name: name, Role: identity.Participant})
	}
	slot := func(round int64) *wire.Slot {
		return &wire.Slot{Run: b.plan.Run, PlanSha256: b.c.sum[:], Round: round}
	}
	release := func(name string, round int64) error {
		o, raw := b.offer(name, round, 1, 2)
		_, err := h.Offer(as(name), &wire.OfferRequest{
			Slot: slot(round), Content: &wire.Content{Size: o.Size, Sha256: o.SHA256}, Statement: o.Statement, Release: raw,
		})
		return err
	}
	if _, err := h.Next(as("north"), &wire.NextRequest{Run: b.plan.Run, PlanSha256: b.c.sum[:], WaitMilliseconds: 10_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Decline(as("west"), &wire.DeclineRequest{Slot: slot(0), Code: "policy"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"north", "south"} {
		if err := release(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	b.work("north") // the second round is open
	if err := release("west", 0); err == nil {
		t.Error("a release of who declined is taken")
	}
	b.stop()
	spans := recorder.Ended()
	rounds := map[int64]trace.SpanID{}
	number := func(s sdktrace.ReadOnlySpan) int64 {
		for _, a := range s.Attributes() {
			if a.Key == "coterie.round" {
				return a.Value.AsInt64()
			}
		}
		return 0
	}
	for _, s := range spans {
		if s.Name() == "round" {
			rounds[number(s)] = s.SpanContext().SpanID()
		}
	}
	calls := map[string]int{}
	for _, s := range spans {
		if s.Name() == "round" {
			continue
		}
		calls[s.Name()]++
		if s.Parent().SpanID() != rounds[1] || number(s) != 1 {
			t.Errorf("%s of round %d is a child of %v; the rounds are %v", s.Name(), number(s), s.Parent().SpanID(), rounds)
		}
		if failed := s.Status().Code == codes.Error; failed != (s.Name() == "coterie.federation.v1.Federation/Offer" && calls[s.Name()] == 3) {
			t.Errorf("%s: %v", s.Name(), s.Status())
		}
	}
	want := map[string]int{"coterie.federation.v1.Federation/Next": 1, "coterie.federation.v1.Federation/Decline": 1, "coterie.federation.v1.Federation/Offer": 3}
	if !maps.Equal(calls, want) {
		t.Errorf("spans %v, want %v", calls, want)
	}
	_, done := b.c.outside(t.Context(), wire.FederationJoinProcedure)
	done()
	if all := recorder.Ended(); all[len(all)-1].Parent().IsValid() || all[len(all)-1].Name() != "coterie.federation.v1.Federation/Join" {
		t.Errorf("joining is %s, a child of %v", all[len(all)-1].Name(), all[len(all)-1].Parent())
	}
}

// TestTracesReachTheCollector, if one is named.
func TestTracesReachTheCollector(t *testing.T) {
	var got atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Add(n)
	}))
	defer collector.Close()
	tracer, end, err := newTracer(t.Context(), collector.URL+"/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "round")
	span.End()
	end()
	if got.Load() == 0 {
		t.Error("the collector got nothing")
	}
}
