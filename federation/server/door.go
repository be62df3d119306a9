package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// Whoever has shown no participant's certificate is a stranger: it may enrol or ask
// for the server's health, in a room of its own.
const (
	mostStrangers     = 256
	strangerTime      = 20 * time.Second // from its first byte to its last
	strangerRequests  = 16               // on one connection
	handshakeTime     = 10 * time.Second
	handshakeGrace    = time.Second // in which nobody is turned out for another
	memberConnections = 8           // of one participant; the newest stay
)

// door is the server's listener. It makes the handshakes itself, so that connections
// of members and of strangers are counted apart: strangers cannot use up the members'.
type door struct {
	net.Listener
	config *tls.Config
	admit  func(*tls.ConnectionState) (identity.Peer, error)
	most   int // connections of members
	say    *seldom
	ready  chan *tls.Conn
	ctx    context.Context // ends with the door
	close  func()

	mu        sync.Mutex
	strangers []*guest // oldest first
	members   map[string][]*guest
	left      map[string]time.Time // when a member's last connection was closed
	inside    int                  // members' connections
	freed     chan struct{}        // a stranger has left or was let in
	failure   error                // why no more connections come
}

// guest is one connection. It is what lies below its TLS.
type guest struct {
	net.Conn
	door     *door
	came     time.Time
	name     string // of a member
	known    bool   // the handshake was made
	requests atomic.Int32
	heard    atomic.Int64 // when something last came, in nanoseconds; 0: nothing yet
	gone     sync.Once
	timer    *time.Timer
}

func newDoor(l net.Listener, config *tls.Config, admit func(*tls.ConnectionState) (identity.Peer, error), most int, say *seldom) *door {
	d := &door{
		Listener: l, config: config, admit: admit, most: most, say: say,
		ready: make(chan *tls.Conn), members: map[string][]*guest{}, left: map[string]time.Time{}, freed: make(chan struct{}, 1),
	}
	d.ctx, d.close = context.WithCancel(context.Background())
	go d.watch()
	return d
}

// Accept is the next connection whose handshake is made.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.ready:
		return c, nil
	case <-d.ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.failure != nil {
			return nil, d.failure
		}
		return nil, net.ErrClosed
	}
}

// Close ends the door and the handshakes before it; those inside are not touched.
func (d *door) Close() error {
	d.close()
	return d.Listener.Close()
}

// watch takes connections. A listener may fail for a while, for want of files, say.
func (d *door) watch() {
	var failing time.Time
	for {
		c, err := d.Listener.Accept()
		if d.ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return
		}
		if err == nil {
			failing = time.Time{}
			d.enter(c)
			continue
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if errors.Is(err, net.ErrClosed) || time.Since(failing) > time.Minute {
			d.mu.Lock()
			d.failure = err
			d.mu.Unlock()
			d.close()
			return
		}
		d.say.write(slog.LevelWarn, "", "no connection can be taken; trying again", "error", err)
		_ = transfer.Wait(d.ctx, nil, 100*time.Millisecond) // the loop sees that it ended
	}
}

// enter finds room for a stranger, and greets it.
func (d *door) enter(c net.Conn) {
	for !d.makeRoom() {
		if transfer.Wait(d.ctx, d.freed, handshakeGrace/4) != nil {
			c.Close()
			return
		}
	}
	g := &guest{Conn: c, door: d, came: time.Now()}
	d.mu.Lock()
	d.strangers = append(d.strangers, g)
	d.mu.Unlock()
	go d.greet(g)
}

// makeRoom turns a stranger out if there is no room: the oldest that has shown to be
// one, or that takes its time with the handshake. A crowd of members, who all come at
// once when a server was started again, is not turned out but waited for.
func (d *door) makeRoom() bool {
	d.mu.Lock()
	if len(d.strangers) < mostStrangers {
		d.mu.Unlock()
		return true
	}
	at := slices.IndexFunc(d.strangers, func(g *guest) bool { return g.known })
	if at < 0 && time.Since(d.strangers[0].came) > handshakeGrace {
		at = 0
	}
	if at < 0 {
		d.mu.Unlock()
		return false
	}
	out := d.strangers[at]
	d.mu.Unlock()
	d.say.write(slog.LevelWarn, "", "too many connections without a certificate; the oldest is closed", "from", out.RemoteAddr().String())
	out.Close()
	return true
}

// greet makes the handshake, and lets the guest in as what it has shown to be.
func (d *door) greet(g *guest) {
	c := tls.Server(g, d.config)
	ctx, cancel := context.WithTimeout(d.ctx, handshakeTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		d.say.log.Debug("no handshake", "from", g.RemoteAddr().String(), "error", err)
		c.Close()
		return
	}
	state := c.ConnectionState()
	name := ""
	if peer, err := d.admit(&state); err == nil {
		name = doorName(peer)
	}
	if d.crowded(name) {
		_ = transfer.Wait(ctx, nil, handshakeGrace) // or handshakes without end would be all that is done
	}
	if !d.letIn(g, name) {
		c.Close()
		return
	}
	select {
	case d.ready <- c:
	case <-d.ctx.Done():
		c.Close()
	}
}

// crowded says that a participant has all the connections that it may have.
func (d *door) crowded(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.members[name]) >= memberConnections
}

// letIn counts a guest as a member, or gives a stranger its time.
func (d *door) letIn(g *guest, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.Index(d.strangers, g)
	if at < 0 {
		return false // it was turned out
	}
	g.known = true
	if name == "" {
		g.timer = time.AfterFunc(strangerTime-time.Since(g.came), func() { g.Close() })
		return true
	}
	var oldest *guest
	switch own := d.members[name]; {
	case len(own) >= memberConnections:
		oldest = own[0]
		d.members[name] = own[1:]
		d.inside--
	case d.inside >= d.most && !strings.HasPrefix(name, operatorPrefix): // an operator may look when it is full, too
		d.say.write(slog.LevelWarn, "", "a participant finds no room: limits.connections is reached", "participant", name, "connections", d.inside)
		return false
	}
	d.strangers = slices.Delete(d.strangers, at, at+1)
	g.name = name
	d.members[name] = append(d.members[name], g)
	d.inside++
	d.tellFreed()
	if oldest != nil {
		go oldest.Close() // it takes the lock
	}
	return true
}

func (d *door) tellFreed() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// Close ends the connection and gives up its room.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.gone.Do(func() {
		d := g.door
		d.mu.Lock()
		defer d.mu.Unlock()
		if g.timer != nil {
			g.timer.Stop()
		}
		if at := slices.Index(d.strangers, g); at >= 0 {
			d.strangers = slices.Delete(d.strangers, at, at+1)
			d.tellFreed()
		}
		own := d.members[g.name]
		if at := slices.Index(own, g); at >= 0 {
			d.inside--
			if d.members[g.name] = slices.Delete(own, at, at+1); len(d.members[g.name]) == 0 {
				delete(d.members, g.name)
				d.left[g.name] = time.Now()
			}
		}
	})
	return err
}

// guestKey finds a request's connection.
type guestKey struct{}

// withGuest keeps a connection where its requests find it.
func withGuest(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if g, ok := t.NetConn().(*guest); ok {
			return context.WithValue(ctx, guestKey{}, g)
		}
	}
	return ctx
}

// wearsOut says that a stranger's connection has asked too often, and closes it.
func wearsOut(ctx context.Context) bool {
	g, ok := ctx.Value(guestKey{}).(*guest)
	if !ok || g.name != "" || g.requests.Add(1) <= strangerRequests {
		return false
	}
	g.Close()
	return true
}
