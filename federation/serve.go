package federation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/fl"
)

// ServeOptions are what `coterie serve` takes.
type ServeOptions struct {
	File   ServeFile
	New    bool // begin another run, even if the store's last one was this
	Seeded bool // allow noise that everybody can repeat
	Folder *data.Folder
	Log    *slog.Logger
	// Listening is told the address, once connections are taken.
	Listening func(address string)
}

// Serve runs a server until its run has ended, or ctx ends: then the error wraps
// ErrInterrupted, and serving the same file again goes on.
func Serve(ctx context.Context, o ServeOptions) (ServeResult, error) {
	run, err := readRun(o.File.Run)
	if err != nil {
		return ServeResult{}, err
	}
	if err := Suitable(run); err != nil {
		return ServeResult{}, fmt.Errorf("%s: %w: %w", o.File.Run, config.ErrInvalid, err)
	}
	if Seeded(run) && !o.Seeded {
		return ServeResult{}, fmt.Errorf("%w: privacy.noise is %s: whoever knows the seed can subtract the noise; only --unsafe-seeded-noise allows that", fl.ErrRefused, run.Privacy.Noise)
	}
	authority, err := identity.Open(o.File.CA, identity.Options{})
	if err != nil {
		return ServeResult{}, err
	}
	plan, err := newPlan(&o, run, authority.Federation())
	if err != nil {
		return ServeResult{}, err
	}
	// Releases lie beside the database; of one that is elsewhere, with the models.
	scratch, spool := o.File.Out, filepath.Join(o.File.Out, "spool")
	if path, ok := sqlitePath(o.File.Store); ok {
		scratch, spool = filepath.Dir(path), ""
	}
	for _, dir := range []string{scratch, spool} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return ServeResult{}, fmt.Errorf("make room for the store: %w", err)
		}
	}
	kept, err := store.Open(ctx, o.File.Store, store.Options{Spool: spool})
	if err != nil {
		return ServeResult{}, err
	}
	defer kept.Close()
	if plan.Run, err = chooseRun(ctx, kept, plan, run.Name, o.New); err != nil {
		return ServeResult{}, err
	}
	tracer, flush, err := newTracer(ctx, o.File.Traces)
	if err != nil {
		return ServeResult{}, err
	}
	defer flush()
	c, err := NewCoordinator(ctx, Terms{
		Scratch: scratch, Tracer: tracer, Plan: plan, Names: o.File.Participants, Start: o.File.Start, Store: kept, Signer: authority.ReceiptKey(), Log: o.Log,
	})
	if err != nil {
		return ServeResult{}, err
	}
	end, err := serve(ctx, o, c, authority)
	if err != nil {
		return ServeResult{}, err
	}
	return c.leave(ctx, o.File.Out, end)
}

// serve runs the coordinator with its network around it.
func serve(ctx context.Context, o ServeOptions, c *Coordinator, a *identity.Authority) (Finished, error) {
	o.File.Limits.apply()
	l, err := net.Listen("tcp", o.File.Listen)
	if err != nil {
		return Finished{}, fmt.Errorf("listen on %s: %w", o.File.Listen, err)
	}
	s := NewServer(c, a, o.File.Limits, o.Log)
	closeAdmin, err := s.serveAdmin(o.File.Admin)
	if err != nil {
		l.Close()
		return Finished{}, err
	}
	defer closeAdmin()
	o.Listening(l.Addr().String())

	network, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	rounds, failed := context.WithCancelCause(ctx)
	go func() {
		err := s.Serve(network, l)
		failed(err)
		served <- err
	}()
	end, err := c.Run(rounds)
	if err == nil || errors.Is(err, ErrNothing) {
		c.Linger(ctx, time.Duration(o.File.LingerSeconds*float64(time.Second)))
	}
	stop()
	return end, errors.Join(err, <-served)
}

// serveAdmin answers operators on an address of their own, if one is given.
func (s *Server) serveAdmin(address string) (end func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for operators: %w", address, err)
	}
	srv := &http.Server{Handler: s.Admin(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = srv.Serve(l) }() // ends with Close
	s.log.Info("operators are answered", "address", l.Addr().String())
	return func() { _ = srv.Close() }, nil
}

// readRun reads a run file and lists all that is wrong with it.
func readRun(path string) (config.Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return config.Run{}, fmt.Errorf("%w: read the run file: %w", config.ErrInvalid, err)
	}
	run, err := config.Resolve(text, nil, checks()...)
	if err != nil {
		return config.Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// newPlan is the plan, but for the run's ID.
func newPlan(o *ServeOptions, run config.Run, federation string) (Plan, error) {
	n := len(o.File.Participants)
	cohort := asked(run, n)
	var c config.Checker
	c.Require(cohort <= n, "algorithm.clients_per_round", "%d is more than the %d participants", cohort, n)
	if k, err := data.KindOf(run.Data); err == nil && k.Clients != nil {
		train, _ := k.Clients(run.Data)
		c.Require(train == n, "data.users", "is %d, but %d participants are listed: every one of them is one client of the %s data", train, n, k.Name)
	}
	if faults := c.Faults(); faults != nil {
		return Plan{}, fmt.Errorf("%s: %w", o.File.Run, faults)
	}
	if err := o.File.settle(cohort); err != nil {
		return Plan{}, err
	}
	if o.File.Shape == (data.Shape{}) {
		f, err := o.Folder.Load(run.Data, run.Seed)
		if err != nil {
			return Plan{}, fmt.Errorf("%w: shape says nothing about the data, and the server has none to look at: %w", config.ErrInvalid, err)
		}
		o.File.Shape = f.Shape()
	}
	text, err := run.Encode()
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Version: planVersion, Federation: federation, RunFile: string(text), Participants: n, Shape: o.File.Shape,
		Quorum: o.File.Quorum, Minimum: o.File.Minimum, DeadlineSeconds: o.File.DeadlineSeconds,
	}, nil
}

// chooseRun goes on with the store's last run if it had this plan, or begins one.
func chooseRun(ctx context.Context, s store.Store, p Plan, name string, fresh bool) (string, error) {
	runs, err := s.Runs(ctx)
	if err != nil {
		return "", err
	}
	if len(runs) > 0 && !fresh {
		last := runs[len(runs)-1]
		p.Run = last.ID
		_, sum, err := p.Encode()
		if err != nil {
			return "", err
		}
		if last.SHA256 == hex.EncodeToString(sum[:]) {
			return last.ID, nil
		}
		if last.Status == store.Running {
			return "", fmt.Errorf("run %s in this store was begun with other settings and has not ended: serve it with its own files, or begin another run with --new, or choose another store", last.ID)
		}
	}
	tail := make([]byte, 4)
	if _, err := rand.Read(tail); err != nil {
		return "", fmt.Errorf("name the run: %w", err)
	}
	return fmt.Sprintf("%s-%s-%x", time.Now().UTC().Format("20060102-150405"), name, tail), nil
}
