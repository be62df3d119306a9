package server

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
	"runtime/debug"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
)

// Options are what `coterie serve` takes.
type Options struct {
	File   plan.ServeFile
	New    bool // begin another run, even if the store's last one was this
	Seeded bool // allow noise that everybody can repeat
	Folder *data.Folder
	Log    *slog.Logger
	// Listening is told the address, once connections are taken.
	Listening func(address string)
	// Page makes the live page of a server, by how it stands; nil: there is none.
	Page func(status func() (Status, error)) Page
}

// PagePath is where operators find the live page, by their certificates.
const PagePath = "/dash/"

// Page is the live page at both of its places.
type Page struct {
	Guarded http.Handler // behind operators' certificates
	// Alone is for the admin address, which knows no certificates: it lets in by itself.
	Alone func(address string) (http.Handler, error)
}

// Serve runs a server until its run has ended, or ctx ends: then the error wraps
// ErrInterrupted, and serving the same file again goes on.
func Serve(ctx context.Context, o Options) (Result, error) {
	run, err := plan.Read(o.File.Run)
	if err != nil {
		return Result{}, err
	}
	if err := plan.Suitable(run); err != nil {
		return Result{}, fmt.Errorf("%s: %w: %w", o.File.Run, config.ErrInvalid, err)
	}
	if plan.Seeded(run) && !o.Seeded {
		return Result{}, fmt.Errorf("%w: privacy.noise is %s: whoever knows the seed can subtract the noise; only --unsafe-seeded-noise allows that", fl.ErrRefused, run.Privacy.Noise)
	}
	authority, err := identity.Open(o.File.CA, identity.Options{})
	if err != nil {
		return Result{}, err
	}
	asked, err := plan.New(&o.File, run, authority.Federation(), o.Folder)
	if err != nil {
		return Result{}, err
	}
	// Releases lie beside the database; of one that is elsewhere, with the models.
	scratch, spool := o.File.Out, filepath.Join(o.File.Out, "spool")
	if path, ok := plan.SQLiteFile(o.File.Store); ok {
		scratch, spool = filepath.Dir(path), ""
	}
	for _, dir := range []string{scratch, spool} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Result{}, fmt.Errorf("make room for the store: %w", err)
		}
	}
	kept, err := store.Open(ctx, o.File.Store, store.Options{Spool: spool})
	if err != nil {
		return Result{}, err
	}
	defer kept.Close()
	if asked.Run, err = chooseRun(ctx, kept, asked, run.Name, o.New); err != nil {
		return Result{}, err
	}
	tracer, flush, err := newTracer(ctx, o.File.Traces)
	if err != nil {
		return Result{}, err
	}
	defer flush()
	c, err := NewCoordinator(ctx, Terms{
		Scratch: scratch, Tracer: tracer, Plan: asked, Names: o.File.Participants, Start: o.File.Start, Store: kept, Signer: authority.Signer, Log: o.Log,
	})
	if err != nil {
		return Result{}, err
	}
	end, err := serve(ctx, o, c, authority)
	if err != nil {
		return Result{}, err
	}
	return c.leave(ctx, o.File.Out, end)
}

// serve runs the coordinator with its network around it.
func serve(ctx context.Context, o Options, c *Coordinator, a *identity.Authority) (Finished, error) {
	keepTo(o.File.Limits)
	l, err := net.Listen("tcp", o.File.Listen)
	if err != nil {
		return Finished{}, fmt.Errorf("listen on %s: %w", o.File.Listen, err)
	}
	s := New(c, a, o.File.Limits, o.Log)
	if o.Page != nil {
		s.page = o.Page(s.Status)
	}
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
	if err == nil || errors.Is(err, transfer.ErrNothing) {
		c.linger(ctx, time.Duration(o.File.LingerSeconds*float64(time.Second)))
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
	handler := s.Admin()
	if s.page.Alone != nil {
		page, err := s.page.Alone(l.Addr().String())
		if err != nil {
			l.Close()
			return nil, err
		}
		all := http.NewServeMux()
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			all.Handle(path, handler)
		}
		all.Handle("/", page)
		handler = all
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = srv.Serve(l) }() // ends with Close
	s.log.Info("operators are answered", "address", l.Addr().String())
	return func() { _ = srv.Close() }, nil
}

// chooseRun goes on with the store's last run if it had this plan, or begins one.
func chooseRun(ctx context.Context, s store.Store, p plan.Plan, name string, fresh bool) (string, error) {
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
			return "", fmt.Errorf("run %s in this store was begun with other settings, or by another release of coterie, and has not ended: serve it with the files and the release that began it, or begin another run with --new, or choose another store", last.ID)
		}
	}
	tail := make([]byte, 4)
	if _, err := rand.Read(tail); err != nil {
		return "", fmt.Errorf("name the run: %w", err)
	}
	return fmt.Sprintf("%s-%s-%x", time.Now().UTC().Format("20060102-150405"), name, tail), nil
}

// keepTo makes the runtime keep to the limits. Collecting early costs little here: what
// a server holds is either small or in use.
func keepTo(l plan.Limits) {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(int64(l.Megabytes) << 20)
}
