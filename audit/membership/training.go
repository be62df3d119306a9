package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/sim"
)

// otherModel is a model that the target is held against, with the examples that it was
// trained on.
type otherModel struct {
	models *artifact.Model
	in     []bool // by attacked example
}

// trainer trains other models like the target, each in a folder of its own, where one that
// is there is opened, and one that was interrupted goes on.
type trainer struct {
	population *population
	folder     string
	seed       uint64
	proceed    string // the command that goes on
	tick       func(name string, m sim.Moment)
}

// references are so many models of other members.
func (t *trainer) references(ctx context.Context, n int) ([]otherModel, error) {
	var out []otherModel
	for i := range n {
		f, in := t.population.reference(t.seed, i)
		m, err := t.train(ctx, fmt.Sprintf("reference-%d", i+1), i, f)
		if err != nil {
			return nil, err
		}
		out = append(out, otherModel{m, in})
	}
	return out, nil
}

// shadows are so many models of the target's own members, each with a part of them.
func (t *trainer) shadows(ctx context.Context, n int) ([]otherModel, error) {
	var out []otherModel
	for i := range n {
		f, in, err := t.population.shadow(t.seed, i, n)
		if err != nil {
			return nil, err
		}
		m, err := t.train(ctx, fmt.Sprintf("shadow-%d-of-%d", i+1, n), n+i, f)
		if err != nil {
			return nil, err
		}
		out = append(out, otherModel{m, in})
	}
	return out, nil
}

// likeTarget is the target's run for another model: the same training, another start. Its
// data block is the target's, too, but which of the data are members is not.
func (t *trainer) likeTarget(name string, at, clients int) config.Run {
	run := t.population.run
	family := rng.NewFamily(t.seed, "starts of other models")
	run.Name = fmt.Sprintf("%s-for-%s-seed-%d", name, run.Name, t.seed)
	run.Seed = uint64(family.Stream(at, int(run.Seed)).Below(1 << 31))
	run.Judge.Compare, run.Judge.Evaluate = nil, config.Evaluate{}
	if run.Algorithm.Stop.Return == "last" && run.Algorithm.Stop.Patience == 0 {
		run.Algorithm.Stop.Every = max(1, run.Algorithm.Rounds) // nobody asks how good it is
	}
	run.Algorithm.ClientsPerRound = min(run.Algorithm.ClientsPerRound, clients)
	return run
}

// ErrOtherModel means that a folder holds a model of something else.
var ErrOtherModel = errors.New("another model is there already")

func (t *trainer) train(ctx context.Context, name string, at int, f *data.Federation) (*artifact.Model, error) {
	run := t.likeTarget(name, at, len(f.Train))
	m, err := Trained(ctx, filepath.Join(t.folder, name), run, f, t.proceed, func(m sim.Moment) { t.tick(name, m) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Trained is the model of a run in a folder: the one that is there, if it was trained on these
// data, or one that is trained, from where it was interrupted. Proceed is the command that goes on after an interruption.
func Trained(ctx context.Context, path string, run config.Run, f *data.Federation, proceed string, tick func(sim.Moment)) (*artifact.Model, error) {
	d, err := open(path, run)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	digest := f.Digest()
	if _, err := os.Stat(d.File(artifact.DescriptionFile)); err == nil {
		if err := sim.SameData(path, digest); err != nil {
			return nil, fmt.Errorf("%w: %w; give another --folder, or remove it", ErrOtherModel, err)
		}
		return artifact.Open(path)
	}
	if err := sim.NoteData(path, digest); err != nil {
		return nil, err
	}
	d.Continue = proceed
	s, err := sim.NewOn(run, f, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Train(ctx, d, tick); err != nil {
		return nil, err
	}
	return artifact.Open(path)
}

// open makes the folder of a model, or opens it if it is this one's.
func open(path string, run config.Run) (*sim.Directory, error) {
	text, err := run.Encode()
	if err != nil {
		return nil, err
	}
	there, err := os.ReadFile(filepath.Join(path, sim.RunFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sim.CreateDirectory(path, text)
	case err != nil:
		return nil, err
	case !bytes.Equal(there, text):
		return nil, fmt.Errorf("%w: %s was trained for another run, seed or version; give another --folder, or remove it", ErrOtherModel, path)
	}
	d, _, err := sim.OpenDirectory(path)
	return d, err
}
