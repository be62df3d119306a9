package federation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// TestSilosOverTheNetwork: on real data, too, personal models under example-level privacy
// are those of the simulation, bit for bit, and stay with their owners.
func TestSilosOverTheNetwork(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set")
	}
	runs := map[string]string{"mr-mtl": federationtest.SiloRun} // a linear SVM
	if *federationtest.Soak {
		runs["logistic"] = strings.Replace(federationtest.SiloRun, "batch: 64", "batch: 64, loss: cross-entropy", 1)
		runs["pictures"] = strings.Replace(federationtest.SiloRun, "kind: vehicle, standardise: none", "kind: rotated-mnist, silos: 4, train_limit: 20", 1)
		runs["auto"] = strings.Replace(federationtest.SiloRun, "lambda: 1", "lambda: auto", 1)
		runs["mocha"] = strings.Replace(federationtest.SiloRun, "mr-mtl", "mocha", 1)
		// Of so many models some are chosen by nobody, and take over half a cluster.
		runs["split"] = strings.Replace(federationtest.SiloRun, "rounds: 3", "rounds: 4, warm_start: 0.9, hypotheses: 16, empty: split", 1)
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) { agrees(t, data.NewFolder(folder), run) })
	}
}

// TestSiloDeclinesBeforeTraining: a plan whose rounds together cost more than the
// ceiling is declined when joining, though its first rounds would fit.
func TestSiloDeclinesBeforeTraining(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set")
	}
	l := newLoopback(t)
	l.write("run.yaml", federationtest.SiloRun)
	real := data.NewFolder(folder)
	run, err := plan.Resolve([]byte(federationtest.SiloRun))
	if err != nil {
		t.Fatal(err)
	}
	federation, err := real.Load(run.Data, run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, names, ended := l.serveSilos(ctx, real, len(federation.Train))
	l.enrol(ctx, a, names[0])
	own, err := plan.LoadJoinFile([]byte("{}"), filepath.Join(l.dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := plan.LoadPolicy([]byte(strings.Replace(federationtest.SiloPolicy, "epsilon: 7", "epsilon: 5.5", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = participant.Join(ctx, participant.JoinOptions{File: own, Policy: policy, Seeded: true, Folder: real, Log: l.log})
	if !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "epsilon") {
		t.Errorf("a plan of epsilon 6 under a ceiling of 5.5 ends with %v; want a refusal that says why", err)
	}
	book, err := ledger.Read(own.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	if entries := book.Entries(); len(entries) > 0 {
		t.Errorf("%d releases were paid for, though all rounds together do not fit", len(entries))
	}
	cancel()
	<-ended
}
