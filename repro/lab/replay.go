package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/inputs"
)

// experimentKind is the kind of cells that are cells of experiments.
const experimentKind = "experiment"

// ordered is a cell of an experiment as it travels: a worker runs the experiment's own
// program up to it.
type ordered struct {
	Launch launch          `json:"launch"`
	Key    json.RawMessage `json:"key"`
}

// launch is an experiment and how it is run.
type launch struct {
	ID    string       `json:"id"`
	Scale string       `json:"scale"`
	Seeds int          `json:"seeds"`
	Set   []string     `json:"set"`
	Anew  bool         `json:"anew"`
	Parts inputs.Parts `json:"parts"`
	// Device is what the worker's networks are computed on, as --device has it.
	Device string `json:"device,omitempty"`
}

// identity is what a cell's result depends on: however many seeds there are beside it.
func (o ordered) identity() any {
	if o.Launch.Device == "" {
		return []any{o.Launch.ID, o.Launch.Parts, o.Key}
	}
	return []any{o.Launch.ID, o.Launch.Parts, o.Key, o.Launch.Device}
}

// order is a cell as it is handed to workers.
func (l *Lab) order(ctx context.Context, key any) (cells.Order, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return cells.Order{}, err
	}
	asked := map[string]bool{}
	for _, part := range l.needs {
		asked[part] = true
	}
	parts, err := l.post.SendParts(ctx, l.Data, asked)
	o := ordered{launch{l.id, l.Scale, l.Seeds, l.Set, l.Anew, parts, l.Device}, text}
	return cells.Order{Spec: o, Identity: o.identity()}, err
}

// Makers make cells of experiments on one slot of a worker, which keeps the last
// experiment's program running from cell to cell.
func Makers(experiments []Experiment, cache *inputs.Cache, version string) map[string]cells.Maker {
	var last *replay
	return map[string]cells.Maker{experimentKind: func(ctx context.Context, b cells.Bench, spec json.RawMessage) (any, error) {
		var o ordered
		if err := json.Unmarshal(spec, &o); err != nil {
			return nil, err
		}
		how, err := json.Marshal(o.Launch)
		if err != nil {
			return nil, err
		}
		if last == nil || last.how != string(how) || last.ended() {
			last.end()
			if last, err = begin(ctx, experiments, o.Launch, cache, version); err != nil {
				return nil, err
			}
			last.how = string(how)
		}
		return last.make(ctx, b, o)
	}}
}

// replay is an experiment's program on a worker. It is the coordinator's own, with the same
// options, and meets the same cells in the same order; but of each stage, one call of All,
// it makes those only that it is asked for. It goes on to the next stage when it is asked
// for a cell of that: the results of the one before are with the queue by then.
type replay struct {
	how    string
	lab    *Lab
	launch launch
	asks   chan ask
	over   chan struct{} // closed when the program has ended
	err    error         // that it ended with

	// Of the program's goroutine.
	listing bool                           // cells are told, not made
	listed  map[string]func() (any, error) // by key: how a cell of this stage is made
	bench   cells.Bench                    // of the cell that was asked for last
	ctx     context.Context
}

type ask struct {
	ctx    context.Context
	bench  cells.Bench
	key    string
	answer chan answer
}

type answer struct {
	value any
	err   error
}

// errListed says that a cell was told and not made; errOver that no more are asked for.
var (
	errListed = errors.New("a cell that is made elsewhere")
	errOver   = errors.New("no more cells are asked for")
)

func begin(ctx context.Context, experiments []Experiment, how launch, cache *inputs.Cache, version string) (*replay, error) {
	i := slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == how.ID })
	if i < 0 {
		return nil, fmt.Errorf("experiment %q: %w", how.ID, ErrUnknown)
	}
	folder, err := cache.ReceiveParts(ctx, how.Parts)
	if err != nil {
		return nil, err
	}
	out, err := os.MkdirTemp(cache.Folder, "experiment-")
	if err != nil {
		return nil, err
	}
	l := &Lab{
		Options: Options{Scale: how.Scale, Seeds: how.Seeds, Set: how.Set, Out: out, Data: folder, Workers: runtime.GOMAXPROCS(0), Anew: how.Anew, Device: how.Device, Version: version, Tick: func(int, int) {}},
		id:      how.ID, Context: ctx, Folder: data.NewFolder(folder), cells: filepath.Join(out, "cells"),
	}
	r := &replay{lab: l, launch: how, asks: make(chan ask), over: make(chan struct{})}
	l.replay = r
	go func() {
		defer os.RemoveAll(out)
		defer close(r.over)
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("it panicked: %v", p)
			}
		}()
		if err := os.MkdirAll(l.cells, 0o755); err != nil {
			r.err = err
			return
		}
		_, r.err = experiments[i].Launch(l)
	}()
	return r, nil
}

// end ends the program, which waits to be asked.
func (r *replay) end() {
	if r == nil || r.ended() {
		return
	}
	close(r.asks)
	<-r.over
}

func (r *replay) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// make asks the program for a cell.
func (r *replay) make(ctx context.Context, b cells.Bench, o ordered) (any, error) {
	a := ask{ctx, b, string(o.Key), make(chan answer, 1)}
	select {
	case r.asks <- a:
	case <-r.over:
		return nil, fmt.Errorf("experiment %s ended before this cell: %w", r.launch.ID, errors.Join(r.err, errOver))
	}
	select {
	case got := <-a.answer:
		return got.value, got.err
	case <-r.over:
		select {
		case got := <-a.answer:
			return got.value, got.err
		default:
		}
		return nil, fmt.Errorf("experiment %s has no such cell, or ended before it: %w", r.launch.ID, errors.Join(r.err, errOver))
	}
}

// all is a stage: the program tells its cells, and makes those that it is asked for until
// it is asked for one that is not among them. Then it takes up what came of all of them.
func (r *replay) all(jobs []func() error) error {
	r.listed, r.listing = map[string]func() (any, error){}, true
	for _, job := range jobs {
		if err := job(); err != nil && !errors.Is(err, errListed) {
			return err
		}
	}
	r.listing = false
	for a := range r.asks {
		r.bench, r.ctx, r.lab.keep = a.bench, a.ctx, a.bench.Keep
		compute, ok := r.listed[a.key]
		if ok {
			value, err := compute()
			a.answer <- answer{value, err}
			continue
		}
		for _, job := range jobs {
			if err := job(); err != nil {
				a.answer <- answer{nil, err}
				return err
			}
		}
		go func() { // the same question to the next stage
			select {
			case r.asks <- a:
			case <-r.over:
			}
		}()
		return nil
	}
	return errOver
}

// meet is a cell that the program comes to.
func (r *replay) meet(key any, compute func() (any, error), into any) error {
	text, err := json.Marshal(key)
	if err != nil {
		return err
	}
	if r.listing {
		r.listed[string(text)] = compute
		return errListed
	}
	if r.bench.Made != nil {
		stored, err := r.bench.Made(r.ctx, experimentKind, ordered{r.launch, text}.identity())
		if err != nil {
			return err
		}
		if stored != nil {
			return json.Unmarshal(stored, into)
		}
	}
	value, err := compute() // not with the queue: it was made before there was one
	if err != nil {
		return err
	}
	if text, err = json.Marshal(value); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
