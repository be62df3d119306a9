package boundeddp

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// pictures are what one seed trains and judges on.
type pictures struct {
	writers []data.Client // that train
	pool    data.Client   // all of theirs
	test    data.Client   // of other writers
}

// mostJudged is how many pictures accuracies are of.
const mostJudged = 6000

// load reads the pictures and holds some writers out.
func load(l *lab.Lab, run config.Run, seed uint64) (pictures, error) {
	f, err := l.Folder.Load(run.Data, seed)
	if err != nil {
		return pictures{}, err
	}
	join := func(clients []data.Client) (all data.Client) {
		for _, c := range clients {
			all.Images, all.Index = c.Images, append(all.Index, c.Index...)
		}
		return all
	}
	p := pictures{f.Train, join(f.Train), join(f.Validation)}
	p.test.Index = p.test.Index[:min(mostJudged, len(p.test.Index))]
	return p, nil
}

// training is a federation among clients that this package dealt the pictures to.
type training struct {
	rounds    *sim.Rounds
	model     model.Model
	learner   model.Learner
	everybody []int
	giveBack  func() error // the device that it is made on
}

// Close ends it.
func (t *training) Close() error {
	t.rounds.Close()
	return t.giveBack()
}

func begin(l *lab.Lab, run config.Run, clients []data.Client) (t *training, err error) {
	m, err := model.Of(run, data.Shape{Classes: 10, Height: 28, Width: 28, Channels: 1})
	if err != nil {
		return nil, err
	}
	t = new(training)
	if m, t.giveBack, err = l.Placed(run, m, data.PictureCount(clients)); err != nil {
		return nil, err
	}
	giveBack := t.giveBack
	defer func() {
		if err != nil {
			err = errors.Join(err, giveBack())
		}
	}()
	t.model = m
	if t.learner, err = m.Learner(); err != nil {
		return nil, err
	}
	a, err := fl.New(run, m, len(clients))
	if err != nil {
		return nil, err
	}
	participants := make([]fl.Participant, len(clients))
	for i := range clients {
		participants[i].ID, participants[i].Data = i, &clients[i]
		t.everybody = append(t.everybody, i)
	}
	var stop atomic.Bool
	context.AfterFunc(l.Context, func() { stop.Store(true) })
	t.rounds, err = sim.NewRounds(a, participants, 1, &stop) // cells are what is spread over the cores
	return t, err
}

// accuracy is the share of right answers of the common model.
func (t *training) accuracy(test data.Client) (float64, error) {
	_, wrong, err := t.learner.Judge(t.rounds.State.Hypotheses, &test)
	return 1 - float64(wrong)/float64(test.Len()), err
}

// reached is what came of one protected training.
type reached struct {
	Accuracy float64
	Noise    float64 // by half of what one participant in another's place may move
	Epsilon  float64
}

// train makes one protected training.
func train(l *lab.Lab, run config.Run, p pictures, clients []data.Client) (out reached, err error) {
	t, err := begin(l, run, clients)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for range run.Algorithm.Rounds {
		if err := t.rounds.Make(t.everybody); err != nil {
			return out, err
		}
	}
	one := &t.rounds.Participants[0]
	spent, _, err := t.rounds.Algorithm.Spend(one)
	if err != nil {
		return out, err
	}
	out.Noise, out.Epsilon = one.Plan.Noise, spent.Epsilon
	out.Accuracy, err = t.accuracy(p.test)
	return out, err
}
