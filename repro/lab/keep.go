package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// Finish makes one run in memory, to its end. The caller closes it. What Options.For or
// somebody stops leaves a checkpoint in the experiment's folder, and goes on from it.
func (l *Lab) Finish(run config.Run) (*sim.Simulation, error) {
	own := &checkpoint{folder: filepath.Join(l.Out, "checkpoints"), of: l.Version + " " + l.Device}
	var keep sim.Keeper = own
	if l.keep != nil {
		keep = l.keep
	}
	ctx, end := l.Context, context.CancelFunc(func() {})
	if l.For > 0 {
		ctx, end = context.WithDeadline(ctx, l.began.Add(l.For))
	}
	defer end()
	s, err := sim.Finish(ctx, run, l.Folder, keep)
	if err != nil {
		return nil, err
	}
	s.Until(l.Context) // what is left to be asked is within anybody's time
	if kernel, used := s.Computed(); l.sources != nil {
		l.sources.note(kernel, used)
	}
	return s, own.drop()
}

// Placed is a model on the device that a run asks for, of cells that train without Finish, with so many
// pictures. End gives the device back.
func (l *Lab) Placed(run config.Run, m model.Model, pictures int) (placed model.Model, end func() error, err error) {
	p, err := compute.On(run, m, pictures)
	if err == nil {
		l.Note(p.Used)
	}
	return p.Model, p.Close, err
}

// outOfTime says that an error is Options.For's.
func (l *Lab) outOfTime(err error) bool {
	return l.over() && l.Context.Err() == nil && errors.Is(err, sim.ErrInterrupted)
}

// checkpoint is the file of one run under way.
type checkpoint struct {
	folder string
	of     string // program and device: another's bits are not mixed with theirs
	path   string // once it is known
}

// Load is the run's checkpoint; nil: there is none.
func (c *checkpoint) Load(id string) []byte {
	sum := sha256.Sum256([]byte(c.of))
	c.path = filepath.Join(c.folder, fmt.Sprintf("%s-%s", id, hex.EncodeToString(sum[:6])))
	raw, err := os.ReadFile(c.path)
	if err != nil {
		return nil
	}
	return raw
}

// Save writes one. What cannot be written is begun anew by the next command: it costs time
// and no result.
func (c *checkpoint) Save(_ string, _ int, write func(w io.Writer) error) {
	if os.MkdirAll(c.folder, 0o755) == nil {
		_ = durable.Replace(c.path, 0o600, write)
	}
}

// Every is the least time between two.
func (c *checkpoint) Every() time.Duration { return 2 * time.Minute }

// drop removes the file of a run that is at its end.
func (c *checkpoint) drop() error {
	if c.path == "" {
		return nil
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_ = os.Remove(c.folder) // once it is empty
	return nil
}
