package data

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
)

// Crowd is clients that train and are not held in memory: whoever is asked is drawn, or
// read, at that moment. Several goroutines may read at once.
type Crowd interface {
	Len() int
	// Read sets c to a client. Rows are written over that c had from an earlier Read.
	Read(c *Client, i int) error
	Close() error
}

// Clients is how many train.
func (f *Federation) Clients() int {
	if f.Crowd != nil {
		return f.Crowd.Len()
	}
	return len(f.Train)
}

// LoadCrowd is Load without the clients that train: they are in the federation's Crowd,
// with the same examples.
func (f *Folder) LoadCrowd(d config.Data, seed uint64) (*Federation, error) {
	k, err := KindOf(d)
	if err != nil {
		return nil, err
	}
	if k.Crowd == nil {
		return nil, fmt.Errorf("data: clients of the kind %s are held all at once; run.hold asked is for: %v", k.Name, crowdKinds())
	}
	fed, err := k.Crowd(f, d, seed)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if share := d.TestShare; share > 0 && !k.OwnTest {
		fed.Crowd = &heldOut{Crowd: fed.Crowd, seed: seed, share: share}
		fed.NotCovered = append(slices.Clip(fed.NotCovered), notHeldOut)
	}
	return fed, nil
}

// crowdKinds are the kinds whose clients need not be held.
func crowdKinds() (names []string) {
	for _, k := range Kinds() {
		if k.Crowd != nil {
			names = append(names, k.Name)
		}
	}
	return names
}

// heldOut is a crowd whose clients hold a share of their examples out, as
// Federation.holdOut has them.
type heldOut struct {
	Crowd
	seed  uint64
	share float64
}

func (h *heldOut) Read(c *Client, i int) error {
	var whole Client
	if err := h.Crowd.Read(&whole, i); err != nil {
		return err
	}
	*c = whole.withHeldOut(h.seed, h.share)
	return nil
}

// drawnCrowd draws clients of the synthetic kind as they are asked for.
type drawnCrowd struct {
	population
	users int
}

func (d *drawnCrowd) Len() int { return d.users }

func (d *drawnCrowd) Close() error { return nil }

func (d *drawnCrowd) Read(c *Client, i int) error {
	dimension := len(d.truth[0])
	x, y := slices.Grow(c.X[:0], d.Samples*dimension), slices.Grow(c.Y[:0], d.Samples)
	rows := Rows{X: x[:d.Samples*dimension], Y: y[:d.Samples], Features: dimension}
	*c = Client{Rows: rows, Group: d.groupOf(i)}
	d.draw(rows, i, c.Group)
	return nil
}

// settledCrowd is silos that are divided and scaled when they are asked for.
type settledCrowd struct {
	Crowd
	options SiloOptions
}

func (s *settledCrowd) Read(c *Client, i int) error {
	whole := Client{Rows: Rows{X: c.X, Y: c.Y}}
	if err := s.Crowd.Read(&whole, i); err != nil {
		return err
	}
	*c = whole.settle(s.options).Client
	return nil
}

// Crowd is Federation for silos whose rows lie elsewhere: s.All is empty. Those of whom
// every row is held out are not among the rows; tiny names them.
func (s *Silos) Crowd(rows Crowd, tiny []TinySilo, o SiloOptions) (*Federation, error) {
	if err := o.check(s); err != nil {
		return nil, err
	}
	f, report := s.begin()
	for _, silo := range tiny {
		report.leaveOutTiny(silo)
	}
	if rows.Len() == 0 {
		return nil, fmt.Errorf("no silo is left: %s", report)
	}
	f.Crowd, f.Report = &settledCrowd{rows, o}, report
	f.cover(s, o)
	return f, nil
}
