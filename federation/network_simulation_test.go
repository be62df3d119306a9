package federation_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
)

// network carries calls in memory, and badly: requests and replies are lost,
// repeated, delayed, cut short; links and the server go away and come back. What
// happens to the n-th call of a participant follows from the seed.
type network struct {
	mu     sync.Mutex
	faulty bool
	server *simulatedServer // nil: it is down
	faults int
	copies sync.WaitGroup // on their way
}

// simulatedServer is one life of the server.
type simulatedServer struct {
	handler http.Handler
	life    context.Context
	calls   sync.WaitGroup
}

// calm ends the faults.
func (n *network) calm() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faulty = false
}

func (n *network) isFaulty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faulty
}

var errNetwork = errors.New("connection lost")

// link is one life of a participant's connection; it is a connect.HTTPClient.
type link struct {
	net  *network
	name string
	life context.Context // of the participant's process

	mu   sync.Mutex
	rng  *rand.Rand
	down time.Time // partitioned until then
}

// fate is what happens to one call.
type fate struct {
	before, after time.Duration
	lost          bool // the request never arrives
	silent        bool // and nobody says so
	unanswered    bool // it is served, and the reply is lost
	again         time.Duration
	cutRequest    float64 // share of the request that arrives, then the link breaks; 0: all
	cutReply      float64
}

// draw decides about a call. About one in ten has something done to it.
func (l *link) draw() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rng
	f := fate{before: time.Duration(r.IntN(50)) * time.Millisecond, after: time.Duration(r.IntN(50)) * time.Millisecond}
	kind, size := r.IntN(100), r.Float64()
	if !l.net.isFaulty() {
		return f
	}
	switch {
	case kind < 2:
		f.lost = true
	case kind < 3:
		f.lost, f.silent = true, true
	case kind < 5:
		f.unanswered = true
	case kind < 7:
		f.again = 1 + time.Duration(size*float64(90*time.Second))
	case kind < 8:
		f.cutRequest = 0.05 + 0.9*size
	case kind < 9:
		f.cutReply = 0.05 + 0.9*size
	case kind < 11:
		f.before = time.Duration(size * float64(20*time.Second))
	case kind < 12:
		f.after = time.Duration(size * float64(40*time.Second))
	case kind < 13:
		l.down = time.Now().Add(time.Duration(size * float64(3*time.Minute)))
	default:
		return f
	}
	l.net.mu.Lock()
	l.net.faults++
	l.net.mu.Unlock()
	return f
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Do is one call.
func (l *link) Do(q *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancel(q.Context())
	defer stop()
	defer context.AfterFunc(l.life, stop)()
	f := l.draw()
	body, err := readAll(ctx, q.Body)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, f.before); err != nil {
		return nil, err
	}
	l.mu.Lock()
	partitioned := time.Now().Before(l.down)
	l.mu.Unlock()
	if f.lost || partitioned {
		if f.silent {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, errNetwork
	}
	if f.again > 0 { // a copy comes later, when the caller has gone on or is dead
		l.net.copies.Go(func() {
			time.Sleep(f.again)
			stale, end := context.WithTimeout(context.Background(), 2*time.Minute)
			defer end()
			_, _ = l.serve(stale, q, body, 0)
		})
	}
	if f.unanswered {
		_, _ = l.serve(l.life, q, body, f.cutRequest)
		return nil, errNetwork
	}
	reply, err := l.serve(ctx, q, body, f.cutRequest)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, f.after); err != nil {
		return nil, err
	}
	if f.cutReply > 0 {
		all, _ := io.ReadAll(reply.Body)
		reply.Body = io.NopCloser(io.MultiReader(bytes.NewReader(all[:int(f.cutReply*float64(len(all)))]), brokenReader{}))
	}
	return reply, nil
}

// readAll reads a request that its sender is still writing.
func readAll(ctx context.Context, body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { body.Close() })
	defer stop()
	all, err := io.ReadAll(body)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return all, err
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errNetwork }

// serve hands a request to the server, if there is one, and gives up with it if it
// dies meanwhile.
func (l *link) serve(ctx context.Context, q *http.Request, body []byte, cut float64) (*http.Response, error) {
	l.net.mu.Lock()
	s := l.net.server
	if s != nil {
		s.calls.Add(1)
	}
	l.net.mu.Unlock()
	if s == nil {
		return nil, errNetwork
	}
	ctx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(s.life, stop)()
	var in io.Reader = bytes.NewReader(body)
	if cut > 0 {
		in = io.MultiReader(bytes.NewReader(body[:int(cut*float64(len(body)))]), brokenReader{})
	}
	r := q.Clone(identity.WithPeer(ctx, identity.Peer{Name: l.name, Role: identity.Participant}))
	r.Body, r.ContentLength = io.NopCloser(in), -1
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.RequestURI = "HTTP/2.0", 2, 0, q.URL.Path
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer s.calls.Done()
		defer close(done)
		defer stop()
		s.handler.ServeHTTP(w, r)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done: // stop was the handler's own
		default:
			return nil, errNetwork
		}
	}
	if s.life.Err() != nil {
		return nil, errNetwork
	}
	reply := w.Result()
	reply.Proto, reply.ProtoMajor, reply.ProtoMinor = "HTTP/2.0", 2, 0
	return reply, nil
}
