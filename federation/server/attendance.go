package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/federation/transfer"
)

const (
	// grace is for how long a participant may be without a connection and not be missed:
	// a renewed certificate needs a new one, and a network hiccup makes one.
	grace = 2 * time.Second
	// reviewEvery is how often connections are looked at.
	reviewEvery = 500 * time.Millisecond
	// returnTime is how long those who took part before have to come back to a server that
	// was started again: longer than they pause between two attempts.
	returnTime = time.Minute
)

// attendance is who is there, by their connections: a participant that trains for an hour
// and asks for nothing is there, and one that was killed is not.
type attendance struct {
	c       *Coordinator
	contact func(participant string) contact
	started time.Time

	mu   sync.Mutex
	over bool        // the server stops: whoever goes now is sent away
	of   []attending // by participant
}

// attending is one participant, as last reviewed.
type attending struct {
	here  bool
	since time.Time // it is here or missing; zero: it was never here
	heard time.Time
	told  bucket // lines of the log
}

// tellPace is how often the log tells of one participant's comings and goings at once.
// Who comes and goes on and on is told of seldom, as everything that others can cause.
var tellPace = pace{burst: 6, every: time.Minute}

// tell writes a line about a participant.
func (a *attendance) tell(i int, level slog.Level, line string, args ...any) {
	p, name := &a.of[i], a.c.names[i]
	args = append([]any{"participant", name}, args...)
	if now := time.Now(); p.told.wait(tellPace, now) <= 0 {
		p.told.take(tellPace, now)
		a.c.log.Log(context.Background(), level, line, args...)
		return
	}
	a.c.seldom.write(level, name, line, args...)
}

func newAttendance(c *Coordinator) *attendance {
	return &attendance{
		c: c, started: time.Now(), of: make([]attending, len(c.names)),
		contact: func(string) contact { return contact{} }, // until there is a door
	}
}

// watch looks at a door's connections until ctx ends.
func (a *attendance) watch(ctx context.Context, d *door) {
	a.mu.Lock()
	a.contact = d.contact
	a.mu.Unlock()
	for {
		a.review(time.Now())
		if transfer.Wait(ctx, nil, reviewEvery) != nil {
			a.mu.Lock()
			a.over = true
			a.mu.Unlock()
			return
		}
	}
}

// review compares everybody's connections with what was known, and says who came and
// who went.
func (a *attendance) review(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	for i, name := range a.c.names {
		p, k := &a.of[i], a.contact(name)
		if k.heard.After(p.heard) {
			p.heard = k.heard
		}
		switch alive := k.alive(now); {
		case alive && !p.here:
			a.comes(i, k.came, now)
		case !alive && p.here && now.Sub(k.lost()) >= grace:
			a.goes(i, k.lost())
		case !alive && p.since.IsZero() && now.Sub(a.started) >= returnTime && a.expected(i):
			a.goes(i, a.started)
		}
	}
}

// expected says whether a participant took part before this server was started, and the
// run still needs it.
func (a *attendance) expected(i int) bool {
	return a.c.over == "" && a.c.chronicle.seen(i) && !a.c.presence.done(i)
}

// comes notes and says that a participant is there.
func (a *attendance) comes(i int, at, now time.Time) {
	var args []any
	p := &a.of[i]
	if !p.since.IsZero() {
		if at.Before(p.since) { // it was only silent
			at = now
		}
		args = append(args, "away", at.Sub(p.since).Round(time.Millisecond).String())
	}
	p.here, p.since = true, at
	a.tell(i, slog.LevelInfo, "participant is there", args...)
	a.c.presence.misses(i, false)
	a.c.progress.ring()
}

// goes notes and says that a participant is missing, or that it has left for good.
func (a *attendance) goes(i int, at time.Time) {
	a.of[i].here, a.of[i].since = false, at
	level, line := slog.LevelWarn, "participant is missing"
	if a.c.presence.done(i) {
		level, line = slog.LevelInfo, "participant has left"
	}
	a.tell(i, level, line, "since", at.UTC().Format(time.RFC3339))
	a.c.presence.misses(i, true)
	a.c.progress.ring()
}

// all is everybody as of now.
func (a *attendance) all() []attending {
	a.review(time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]attending(nil), a.of...)
}
