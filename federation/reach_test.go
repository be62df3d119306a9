package federation_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/wire"
)

// wrongClock is a clock that can be set wrong.
type wrongClock struct{ ahead atomic.Int64 }

func (c *wrongClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *wrongClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

const day = 24 * time.Hour

// gate stands before a real server and may do something to the first connections.
type gate struct {
	listener net.Listener
	mu       sync.Mutex
	spoil    func(net.Conn) // instead of the server, while it is not nil
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			spoil := g.spoil
			g.mu.Unlock()
			if spoil != nil {
				go func() { defer conn.Close(); spoil(conn) }()
				continue
			}
			inner, err := net.Dial("tcp", server)
			if err != nil {
				conn.Close()
				continue
			}
			t.Cleanup(func() { conn.Close(); inner.Close() })
			go func() { _, _ = io.Copy(inner, conn); inner.Close() }()
			go func() { _, _ = io.Copy(conn, inner); conn.Close() }()
		}
	}()
	return g
}

func (g *gate) set(spoil func(net.Conn)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spoil = spoil
}

func (g *gate) address() string { return g.listener.Addr().String() }

// heal is a log that calls a function when a call was not answered.
type heal struct {
	slog.Handler
	again func(text string)
}

func (h heal) Enabled(context.Context, slog.Level) bool { return true }

func (h heal) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	h.again(text)
	return nil
}

// ended is what is seen of a connection that the other side has ended.
var ended = regexp.MustCompile("broken pipe|connection reset|EOF|could not be established|closed network connection|connection lost")

// TestWhatPassesIsTriedAgain, and what does not stops a participant at once, with a
// sentence that says what to do. All of it with a real server on a real network.
func TestWhatPassesIsTriedAgain(t *testing.T) {
	alert := func(code byte) func(net.Conn) { // which everybody on the way can write
		return func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1)) // the participant has begun
			_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, code})
		}
	}
	type table struct {
		clock *wrongClock
		f     *identitytest.Federation
		gate  *gate
	}
	for name, c := range map[string]struct {
		enrolled time.Duration // by how much the server's clock is ahead at enrolment
		live     bool          // it happens on a connection that has been well
		happens  func(table)
		heals    func(table) // nil: it must stop at once
		is       error
		says     string
	}{
		"the server's clock is ahead": {
			happens: func(x table) { x.clock.set(2 * day) }, heals: func(x table) { x.clock.set(0) }, says: "one of the two clocks is wrong",
		},
		"the server's clock is ahead, on a live connection": {
			live: true, happens: func(x table) { x.clock.set(2 * day) }, heals: func(x table) { x.clock.set(0) }, says: "one of the two clocks is wrong",
		},
		"the server's clock is behind": {
			happens: func(x table) { x.clock.set(-2 * day) }, heals: func(x table) { x.clock.set(0) }, says: "one of the two clocks is wrong",
		},
		"the server's certificate is not valid yet": {
			happens: func(x table) { x.clock.set(80 * day) }, heals: func(x table) { x.clock.set(0) }, says: "the server's certificate is not valid at",
		},
		"the server's certificate has expired": {
			enrolled: -200 * day, happens: func(table) {}, heals: func(x table) { x.clock.set(0) }, says: "the server's certificate is not valid at",
		},
		"somebody on the way says bad certificate": {
			happens: func(x table) { x.gate.set(alert(42)) }, heals: func(x table) { x.gate.set(nil) }, says: "bad certificate",
		},
		"somebody on the way says internal error": {
			happens: func(x table) { x.gate.set(alert(80)) }, heals: func(x table) { x.gate.set(nil) }, says: "internal error",
		},
		"the server is restarted in the middle of a handshake": {
			happens: func(x table) { x.gate.set(func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) }) }, heals: func(x table) { x.gate.set(nil) }, says: "trying again",
		},
		"no TLS at all": {
			happens: func(x table) {
				x.gate.set(func(c net.Conn) {
					_, _ = c.Read(make([]byte, 1))
					_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
				})
			}, heals: func(x table) { x.gate.set(nil) }, says: "trying again",
		},
		"the certificate was revoked": {
			happens: func(x table) { revoke(t, x.f.Authority, "north") }, is: participant.ErrTurnedAway, says: "ask those who run the federation for a new invitation",
		},
		"the certificate was revoked, on a live connection": {
			live: true, happens: func(x table) { revoke(t, x.f.Authority, "north") }, is: participant.ErrTurnedAway, says: "ask those who run the federation for a new invitation",
		},
		"the certificate has expired, by both clocks": {
			enrolled: -2 * day, happens: func(x table) { x.clock.set(0) }, is: participant.ErrTurnedAway, says: "it expired at",
		},
		"another federation's server": {
			happens: func(x table) {
				other := identitytest.New(t, identity.Options{})
				stranger := newGate(t, guarded(t, other, func(h http.Handler) http.Handler { return h }))
				x.gate.set(func(conn net.Conn) {
					inner, err := net.Dial("tcp", stranger.address())
					if err != nil {
						return
					}
					defer inner.Close()
					go func() { _, _ = io.Copy(inner, conn) }()
					_, _ = io.Copy(conn, inner)
				})
			}, is: participant.ErrStranger, says: "check the address",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := table{clock: &wrongClock{}}
			x.clock.set(c.enrolled)
			x.f = identitytest.New(t, identity.Options{Now: x.clock.now, Lifetime: day})
			config, err := x.f.Enrol(t, "north").ClientTLS()
			if err != nil {
				t.Fatal(err)
			}
			if c.enrolled < -100*day { // a certificate of today, from a server that shows an old one
				x.clock.set(0)
				if config, err = x.f.Enrol(t, "north").ClientTLS(); err != nil {
					t.Fatal(err)
				}
				x.clock.set(c.enrolled)
			}
			x.gate = newGate(t, guarded(t, x.f, func(h http.Handler) http.Handler { return h }))
			client, transport := participant.NewClient(x.gate.address(), config, nil)
			defer transport.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if c.live {
				if _, err := client.Join(ctx, &wire.JoinRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			c.happens(x)
			tried, broken := 0, 0
			log := slog.New(heal{again: func(text string) {
				// A server that ends the connection may do so while the request is still being
				// written: then the participant learns the reason at a later attempt.
				if ended.MatchString(text) {
					broken++
					if c.says != "trying again" && broken < 100 {
						return
					}
				}
				if tried++; !strings.Contains(text, c.says) {
					t.Errorf("the log says %q; want %q in it", text, c.says)
				}
				if c.heals == nil {
					cancel()
				} else if tried == 2 {
					c.heals(x)
				}
			}})
			_, err = participant.Retry(ctx, log, "join", func(ctx context.Context) (*wire.JoinReply, error) {
				return client.Join(ctx, &wire.JoinRequest{})
			})
			switch {
			case c.heals != nil && (err != nil || tried < 2):
				t.Errorf("after %d attempts: %v; it had passed", tried, err)
			case c.heals == nil && (!errors.Is(err, c.is) || tried > 0 || !strings.Contains(err.Error(), c.says)):
				t.Errorf("after %d further attempts: %v; want %v at once, with %q", tried, err, c.is, c.says)
			}
		})
	}
}

func revoke(t *testing.T, a *identity.Authority, name string) {
	if _, err := a.Revoke(name); err != nil {
		t.Error(err)
	}
}

// TestWrongFingerprintStopsAtOnce: an invitation that names another authority than the
// server shows is not tried for minutes, and leaves nothing to go on with.
func TestWrongFingerprintStopsAtOnce(t *testing.T) {
	f, other := identitytest.New(t, identity.Options{}), identitytest.New(t, identity.Options{})
	invite, err := other.Authority.Invite("north", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	invite.Server = guarded(t, f, func(h http.Handler) http.Handler { return h })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := slog.New(heal{again: func(text string) {
		t.Errorf("it is tried again: %s", text)
		cancel()
	}})
	_, err = participant.Enrol(ctx, invite.String(), filepath.Join(t.TempDir(), "identity"), log)
	if !errors.Is(err, participant.ErrStranger) || !errors.Is(err, identity.ErrOtherAuthority) {
		t.Errorf("%v; want %v", err, participant.ErrStranger)
	}
}
