package report

import (
	"fmt"

	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// Crowd says how many clients a run asked that holds no others, and what that took; empty:
// it holds all.
func Crowd(s sim.Summary) string {
	c := s.Crowd
	if c == nil {
		return ""
	}
	words := fmt.Sprintf("%s of %s were asked at least once, and nothing is held of the others", prose.Counted(c.Asked, "client", "clients"), prose.Count(s.Clients))
	if c.Judged < s.Clients {
		words += fmt.Sprintf("; figures of clients that train are those of %s, drawn by the seed", prose.Count(c.Judged))
	}
	if s.WallSeconds > 0 {
		words += fmt.Sprintf("; %s rounds a second", prose.Rounded(float64(s.Rounds)/s.WallSeconds))
	}
	if c.PeakMemoryBytes > 0 {
		words += fmt.Sprintf("; memory at most %s MB", prose.Count(int(c.PeakMemoryBytes/1e6)))
	}
	return words + "."
}
