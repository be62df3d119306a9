package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
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
