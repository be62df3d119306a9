package federation_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/wire"
)

// cable is the server's end of a connection that can be pulled: nothing comes any more,
// nothing arrives, and nobody says so.
type cable struct {
	net.Conn
	pulled chan struct{}
}

func (c *cable) isPulled() bool {
	select {
	case <-c.pulled:
		return true
	default:
		return false
	}
}

func (c *cable) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if !c.isPulled() || errors.Is(err, net.ErrClosed) || err != nil && n == 0 {
			return n, err
		}
	}
}

func (c *cable) Write(p []byte) (int, error) {
	if c.isPulled() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// slowly is a participant's end whose bytes wait in a long queue, as those of a slow line
// do. Whoever writes does not wait.
type slowly struct {
	net.Conn
	queue chan []byte
	end   chan struct{}
	once  sync.Once
}

// newSlowly sends so many bytes a second.
func newSlowly(c net.Conn, rate int) *slowly {
	s := &slowly{Conn: c, queue: make(chan []byte, 1<<16), end: make(chan struct{})}
	go func() {
		for {
			select {
			case p := <-s.queue:
				select {
				case <-time.After(time.Duration(len(p)) * time.Second / time.Duration(rate)):
				case <-s.end:
					return
				}
				if _, err := c.Write(p); err != nil {
					return
				}
			case <-s.end:
				return
			}
		}
	}()
	return s
}

func (s *slowly) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(1024, len(rest))
		s.queue <- append([]byte(nil), rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}

func (s *slowly) Close() error {
	s.once.Do(func() { close(s.end) })
	return s.Conn.Close()
}

// madeUp is a real server, with the network's own code, over connections within this
// process: so its hours pass at once.
type madeUp struct {
	t      *testing.T
	f      *identitytest.Federation
	server *server.Server
	words  *federationtest.Log
	rate   int // bytes a second that participants send; 0: no limit

	mu     sync.Mutex
	dialed []*cable
	coming chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept, Close and Addr make it the server's listener.
func (m *madeUp) Accept() (net.Conn, error) {
	select {
	case c := <-m.coming:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *madeUp) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *madeUp) Addr() net.Addr { return &net.TCPAddr{} }

func (m *madeUp) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	c := &cable{Conn: there, pulled: make(chan struct{})}
	m.mu.Lock()
	m.dialed = append(m.dialed, c)
	m.mu.Unlock()
	select {
	case m.coming <- c:
		if m.rate > 0 {
			return newSlowly(here, m.rate), nil
		}
		return here, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *madeUp) dials() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.dialed)
}

// pull the last cable.
func (m *madeUp) pull() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.dialed[len(m.dialed)-1].pulled)
}

// inMadeUpTime runs a test with a server that waits for three participants.
func inMadeUpTime(t *testing.T, test func(*testing.T, *madeUp)) {
	synctest.Test(t, func(t *testing.T) {
		m := &madeUp{t: t, f: identitytest.New(t, identity.Options{}), words: new(federationtest.Log), coming: make(chan net.Conn), closed: make(chan struct{})}
		kept, err := store.Open(t.Context(), filepath.Join(ramDisk(t), "server.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		asked := federationtest.Plan(t)
		log := slog.New(slog.NewTextHandler(m.words, nil))
		c, err := server.NewCoordinator(t.Context(), server.Terms{
			Plan: asked, Names: federationtest.Names, Start: 3, Store: kept, Signer: m.f.Authority.Signer, Log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		m.server = server.New(c, m.f.Authority, plan.Limits{Connections: 100, Uploads: 2, UploadSeconds: 600}, log)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _, _ = c.Run(ctx) }) // interrupted
		running.Go(func() {
			if err := m.server.Serve(ctx, m); err != nil {
				t.Error(err)
			}
		})
		test(t, m)
		missing := strings.Count(m.words.String(), "participant is missing")
		stop()
		running.Wait()
		time.Sleep(time.Minute) // for connections that are being closed
		if _, err := m.server.Status(); err != nil {
			t.Error(err)
		}
		if strings.Count(m.words.String(), "participant is missing") != missing {
			t.Errorf("a server that stops misses those whom it sends away:\n%s", m.words)
		}
	})
}

// member connects under a name and joins.
func (m *madeUp) member(name string) (wire.FederationClient, func()) {
	m.t.Helper()
	config, err := m.f.Enrol(m.t, name).ClientTLS()
	if err != nil {
		m.t.Fatal(err)
	}
	client, transport := participant.NewClient("server:7443", config, m.dial)
	if _, err := client.Join(m.t.Context(), &wire.JoinRequest{}); err != nil {
		m.t.Fatal(err)
	}
	return client, transport.CloseIdleConnections
}

// of is how one participant stands.
func (m *madeUp) of(name string) server.ParticipantStatus {
	m.t.Helper()
	st, err := m.server.Status()
	if err != nil {
		m.t.Fatal(err)
	}
	for _, p := range st.Participants {
		if p.Name == name {
			return p
		}
	}
	m.t.Fatalf("the status does not name %s", name)
	return server.ParticipantStatus{}
}

// until waits for a participant to come or to go, and says how long it took.
func (m *madeUp) until(name string, connected bool) time.Duration {
	m.t.Helper()
	began := time.Now()
	for m.of(name).Connected != connected {
		if time.Since(began) > time.Minute {
			m.t.Fatalf("%s is not connected: %v, for a minute\n%s", name, connected, m.words)
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(time.Second) // for the log
	return time.Since(began) - time.Second
}

// wantLines counts lines of the log.
func (m *madeUp) wantLines(there, missing int) {
	m.t.Helper()
	text := m.words.String()
	if a, b := strings.Count(text, "participant is there"), strings.Count(text, "participant is missing"); a != there || b != missing {
		m.t.Errorf("the log says %d times that somebody is there and %d times that somebody is missing; want %d and %d:\n%s", a, b, there, missing, text)
	}
}
