package server

import (
	"context"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// How often the server looks for certificates that end soon, and how often it speaks of
// the same one.
const (
	endingLook  = time.Minute
	endingAgain = 24 * time.Hour
)

// watchEnding warns of members whose certificates end soon, until ctx ends.
func (s *Server) watchEnding(ctx context.Context) {
	told := map[identity.Ending]time.Time{}
	for {
		s.warnEnding(told, time.Now())
		if transfer.Wait(ctx, nil, endingLook) != nil {
			return
		}
	}
}

func (s *Server) warnEnding(told map[identity.Ending]time.Time, now time.Time) {
	all, err := s.authority.Ending()
	if err != nil {
		return // every request says so
	}
	for _, e := range all {
		if last, known := told[e]; known && now.Sub(last) < endingAgain {
			continue
		}
		told[e] = now
		s.log.Warn("a certificate ends soon and was not renewed: if its holder stays away, invite it again", "holder", e.Name, "expires", e.Expires)
	}
}
