package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// seldomEvery is the least time between two lines of the same kind.
const seldomEvery = 10 * time.Second

// seldom writes lines that others can cause as often as they like: the first of a
// kind at once, and of those that follow only the last, with how many were left out.
type seldom struct {
	log   *slog.Logger
	every time.Duration

	mu    sync.Mutex
	kinds map[string]*repeated
}

// repeated is a kind of line that was written less than a moment ago.
type repeated struct {
	left int
	line func(left int)
}

func newSeldom(log *slog.Logger) *seldom {
	return &seldom{log: log, every: seldomEvery, kinds: map[string]*repeated{}}
}

// write a line. Its kind is the message and whom it is about: names that the server
// has given, never what a stranger says, or the kinds would have no end.
func (s *seldom) write(level slog.Level, about, message string, args ...any) {
	line := func(left int) {
		if left > 0 {
			args = append(args, "left_out", left)
		}
		s.log.Log(context.Background(), level, message, args...)
	}
	kind := about + "\x00" + message
	s.mu.Lock()
	if r := s.kinds[kind]; r != nil {
		r.left, r.line = r.left+1, line
		s.mu.Unlock()
		return
	}
	s.kinds[kind] = new(repeated)
	s.mu.Unlock()
	line(0)
	time.AfterFunc(s.every, func() { s.sumUp(kind) })
}

// sumUp ends a kind's silence, with the last of the lines that were left out.
func (s *seldom) sumUp(kind string) {
	s.mu.Lock()
	r := s.kinds[kind]
	if r.left == 0 {
		delete(s.kinds, kind)
		s.mu.Unlock()
		return
	}
	s.kinds[kind] = new(repeated)
	s.mu.Unlock()
	r.line(r.left - 1) // this line is one of them
	time.AfterFunc(s.every, func() { s.sumUp(kind) })
}
