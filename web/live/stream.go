package live

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// lookEvery is how often a view that somebody sees is made anew.
	lookEvery = time.Second
	// wordEvery is how often a stream says something, so that a reader that is gone is found
	// out, and one that is there knows that the server is.
	wordEvery = 15 * time.Second
	// writeTime is how long a reader may take to take a word.
	writeTime = 20 * time.Second
	// mostStreams bounds what a page costs its server.
	mostStreams = 256
)

// streams are the views that somebody sees. Everybody who sees the same one shares the work
// of making it.
type streams struct {
	source Source
	mu     sync.Mutex
	open   map[string]*stream
	count  int
}

func newStreams(s Source) *streams { return &streams{source: s, open: map[string]*stream{}} }

// stream is one view, as it changes. What readers get are its newest parts: one that is slow
// misses what was between.
type stream struct {
	mu      sync.Mutex
	readers int
	now     snapshot
	changed chan struct{} // closed when now is replaced
	end     chan struct{} // closed when nobody reads
}

// snapshot is a view as readers get it. It is not changed any more.
type snapshot struct {
	made          int
	title, status string
	fault         string
	parts         []Part
}

// join opens a view's stream, or joins it.
func (s *streams) join(key string, place url.Values) (*stream, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= mostStreams {
		return nil, false
	}
	s.count++
	one := s.open[key]
	if one == nil {
		one = &stream{changed: make(chan struct{}), end: make(chan struct{})}
		s.open[key] = one
		go one.follow(s.source, place)
	}
	one.readers++
	return one, true
}

func (s *streams) leave(key string, one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	if one.readers--; one.readers == 0 {
		delete(s.open, key)
		close(one.end)
	}
}

// follow makes the view again and again, until nobody reads it.
func (s *stream) follow(source Source, place url.Values) {
	clock := time.NewTicker(lookEvery)
	defer clock.Stop()
	for {
		s.look(source, place)
		select {
		case <-s.end:
			return
		case <-clock.C:
		}
	}
}

func (s *stream) look(source Source, place url.Values) {
	v, err := source.View(place)
	next := snapshot{title: v.Title, status: v.Status, parts: v.Parts}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil { // what was there stays in sight, marked
		next = s.now
		next.fault = err.Error()
	}
	if s.now.made > 0 && next.same(s.now) {
		return
	}
	next.made = s.now.made + 1
	s.now = next
	close(s.changed)
	s.changed = make(chan struct{})
}

func (a snapshot) same(b snapshot) bool {
	if a.title != b.title || a.status != b.status || a.fault != b.fault || len(a.parts) != len(b.parts) {
		return false
	}
	for i := range a.parts {
		if a.parts[i] != b.parts[i] {
			return false
		}
	}
	return true
}

// latest is the newest snapshot, and what tells of the next one.
func (s *stream) latest() (snapshot, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.changed
}

// message is what the page's script gets: parts that have changed, and the order of all.
type message struct {
	Title  string                   `json:"title"`
	Status string                   `json:"status"`
	Fault  string                   `json:"fault"` // why what is shown is old; empty: it is not
	Order  []string                 `json:"order"`
	Parts  map[string]template.HTML `json:"parts"`
}

// serve sends a view's parts as they change. Whoever comes, or comes back, first gets all of
// it: nothing has to be remembered of those who are away.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	place := r.URL.Query()
	key := place.Encode()
	one, ok := s.join(key, place)
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer s.leave(key, one)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // that of the request; a stream has none
	say := func(format string, args ...any) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // refused only by writers that have none
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && control.Flush() == nil
	}
	if !say("retry: 2000\n\n") {
		return
	}
	word := time.NewTicker(wordEvery)
	defer word.Stop()
	sent := map[string]template.HTML{}
	for made := 0; ; {
		now, changed := one.latest()
		if now.made > made {
			text, err := json.Marshal(now.since(sent))
			if err != nil || !say("id: %d\ndata: %s\n\n", now.made, text) {
				return
			}
			made = now.made
		}
		select {
		case <-changed:
		case <-word.C:
			if !say(": still here\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// since is what has changed of what was sent, which it notes.
func (a snapshot) since(sent map[string]template.HTML) message {
	m := message{Title: a.title, Status: a.status, Fault: a.fault, Parts: map[string]template.HTML{}, Order: []string{}}
	for _, p := range a.parts {
		m.Order = append(m.Order, p.ID)
		if old, ok := sent[p.ID]; !ok || old != p.HTML {
			m.Parts[p.ID], sent[p.ID] = p.HTML, p.HTML
		}
	}
	return m
}
