package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// Server is a coordinator on the network.
type Server struct {
	coordinator *Coordinator
	authority   *identity.Authority
	limits      plan.Limits
	log         *slog.Logger
	draining    atomic.Bool
	attendance  *attendance
	page        Page
}

// New gives a coordinator its network half.
func New(c *Coordinator, a *identity.Authority, l plan.Limits, log *slog.Logger) *Server {
	return &Server{coordinator: c, authority: a, limits: l, log: log, attendance: newAttendance(c)}
}

// connectionKey finds the connection's state in a request's context.
type connectionKey struct{}

// Handler is everything that the server answers, over TLS. What no admitted
// participant asks for is refused, unless it is enrolment, a health check, or how the
// federation came to its authority.
func (s *Server) Handler() http.Handler {
	h := NewHandlers(s.coordinator, s.authority, s.limits.Uploads)
	path, service := wire.NewFederationHandler(h,
		connect.WithCodec(partCodec{}),
		connect.WithReadMaxBytes(transfer.PartBytes+transfer.Overhead),
		connect.WithCompression("gzip", nil, nil), // a small message must not grow when it is opened
		connect.WithRecover(s.recovered),
		connect.WithInterceptors(h.shares),
	)
	mux := http.NewServeMux()
	mux.Handle(path, s.timed(service))
	mux.Handle("GET "+StatusPath, s.statusHandler(h.shares))
	if s.page.Guarded != nil {
		mux.Handle(PagePath, http.StripPrefix(strings.TrimSuffix(PagePath, "/"), s.page.Guarded))
	}
	s.health(mux)
	mux.HandleFunc(identity.SuccessionPath, s.authority.ServeSuccessions)
	guarded := identity.Guard(s.authority, mux, identity.Paths{
		Public:    []string{wire.FederationEnrolProcedure, identity.SuccessionPath, "/healthz", "/readyz"},
		Operators: []string{StatusPath, PagePath},
		Members:   []string{wire.FederationRenewProcedure},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wearsOut(r.Context()) {
			return // its connection is closed
		}
		guarded.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connectionKey{}, r.TLS)))
	})
}

// recovered keeps one request's fault from ending the server.
func (s *Server) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	s.log.Error("a request made the server panic", "call", spec.Procedure, "cause", fmt.Sprint(cause))
	return transfer.ToWire(errors.New("panic"))
}

// timed gives every call a time after which its connection is given up.
func (s *Server) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := 2 * longestWait
		if r.URL.Path == wire.FederationUploadProcedure || r.URL.Path == wire.FederationBroadcastProcedure {
			most = time.Duration(s.limits.UploadSeconds * float64(time.Second))
		}
		control, end := http.NewResponseController(w), time.Now().Add(most)
		// Deadlines are refused only by writers that have none.
		_ = control.SetReadDeadline(end)
		_ = control.SetWriteDeadline(end)
		ctx, cancel := context.WithDeadline(r.Context(), end)
		defer cancel()
		ctx = context.WithValue(ctx, hurryKey{}, func(most time.Duration) {
			at := time.Now().Add(most)
			if at.After(end) {
				at = end
			}
			_ = control.SetReadDeadline(at)
		})
		defer s.coordinator.metrics.called(r.URL.Path, time.Now())
		ctx, done := s.coordinator.outside(ctx, r.URL.Path)
		defer done()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// hurryKey finds what gives the rest of a request less time.
type hurryKey struct{}

// hurry gives up reading a request's body after some time, if its server can. Until
// then the deadline may be moved, within the call's own.
func hurry(ctx context.Context, most time.Duration) {
	if set, ok := ctx.Value(hurryKey{}).(func(time.Duration)); ok {
		set(most)
	}
}

func (s *Server) health(mux *http.ServeMux) {
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.coordinator.direct.Ping(r.Context()); err != nil {
			s.log.Error("the store does not answer", "error", err)
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.draining.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
}

// Admin is for operators, on an address of their own: health and metrics.
func (s *Server) Admin() http.Handler {
	mux := http.NewServeMux()
	s.health(mux)
	watched := prometheus.NewRegistry()
	watched.MustRegister(gauges{s})
	mux.Handle("/metrics", promhttp.HandlerFor(prometheus.Gatherers{s.coordinator.metrics.registry, watched}, promhttp.HandlerOpts{}))
	return mux
}

// drainTime is how long releases on their way may still take when the server stops.
const drainTime = 20 * time.Second

// Serve answers on a listener until ctx ends; then it lets what is on its way come
// in, and returns.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	srv := s.HTTPServer()
	failed := make(chan error, 1)
	go s.watchEnding(ctx)
	d := newDoor(l, srv.TLSConfig, s.authority.Admit, s.limits.Connections, s.coordinator.seldom)
	go func() { failed <- srv.Serve(d) }()
	watched := make(chan struct{})
	go func() {
		s.attendance.watch(ctx, d)
		close(watched)
	}()
	defer func() { <-watched }()
	select {
	case err := <-failed:
		stop()
		return fmt.Errorf("the server's network: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.coordinator.drain()
	end, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		s.log.Warn("some requests were cut off", "error", err)
		return errors.Join(srv.Close(), nil)
	}
	return nil
}

// HTTPServer speaks HTTP/2 over TLS 1.3 and nothing else. Frames are as large as
// parts: measured, this doubles what comes in. A window holds one part, which is what
// a participant that has to wait costs. Connections may be idle for as long as somebody
// answers at the other end: whoever trains for an hour asks for nothing.
func (s *Server) HTTPServer() *http.Server {
	var only http.Protocols
	only.SetHTTP2(true)
	config := s.authority.ServerTLS("h2")
	return &http.Server{
		Handler: s.Handler(), TLSConfig: config, Protocols: &only, ConnContext: withGuest,
		ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 16, MaxReadFrameSize: transfer.PartBytes,
			MaxReceiveBufferPerConnection: transfer.PartBytes, MaxReceiveBufferPerStream: transfer.PartBytes,
			SendPingTimeout: pingAfter, PingTimeout: pingPatience, WriteByteTimeout: time.Minute,
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
