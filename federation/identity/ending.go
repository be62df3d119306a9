package identity

import (
	"cmp"
	"slices"
	"time"
)

// Ending is somebody whose last certificate ends soon: renewal has not worked, or they
// have been away.
type Ending struct {
	Name    string    `json:"name"`
	Expires time.Time `json:"expires"`
}

// soon is how long before their end certificates are warned about. Those that last a
// quarter of a year are renewed a month before; of short-lived ones, the last sixth
// counts.
const soon = 14 * 24 * time.Hour

// Ending are those whose last valid certificate ends soon, by name.
func (a *Authority) Ending() ([]Ending, error) {
	all := []Ending{}
	err := a.registry.view(func(r *registry) error {
		now := a.now()
		for name, c := range r.held(now) {
			if c.Expires.Sub(now) < min(soon, c.Expires.Sub(c.Issued)/6) {
				all = append(all, Ending{name, c.Expires})
			}
		}
		return nil
	})
	slices.SortFunc(all, func(x, y Ending) int { return cmp.Compare(x.Name, y.Name) })
	return all, err
}
