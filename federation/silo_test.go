package federation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// TestSilosOverTheNetwork: personal models under example-level privacy are those of
// the simulation, bit for bit, and stay with their owners.
func TestSilosOverTheNetwork(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set")
	}
	runs := map[string]string{
		"mr-mtl":   federationtest.SiloRun, // a linear SVM
		"logistic": strings.Replace(federationtest.SiloRun, "batch: 64", "batch: 64, loss: cross-entropy", 1),
		"pictures": strings.Replace(federationtest.SiloRun, "kind: vehicle, standardise: none", "kind: rotated-mnist, silos: 4, train_limit: 20", 1),
	}
	if *federationtest.Soak {
		runs["auto"] = strings.Replace(federationtest.SiloRun, "lambda: 1", "lambda: auto", 1)
		runs["mocha"] = strings.Replace(federationtest.SiloRun, "mr-mtl", "mocha", 1)
		// Of so many models some are chosen by nobody, and take over half a cluster.
		runs["split"] = strings.Replace(federationtest.SiloRun, "rounds: 3", "rounds: 4, warm_start: 0.9, hypotheses: 16, empty: split", 1)
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) { siloFederation(t, data.NewFolder(folder), run) })
	}
}

// siloFederation runs a file among real participants and compares what they have
// afterwards with the simulation. It returns the folder of all of them.
func siloFederation(t *testing.T, real *data.Folder, text string) string {
	l := newLoopback(t)
	l.write("run.yaml", text)
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, real)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := sim.CreateDirectory(filepath.Join(l.dir, "simulated"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := s.Execute(t.Context(), d, func(int, float64) {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a, names, server := l.serveSilos(ctx, real, len(s.Federation().Train))
	policy, err := plan.LoadPolicy([]byte(agreePolicy))
	if err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, len(names))
	for _, name := range names {
		l.enrol(ctx, a, name)
		own, err := plan.LoadJoinFile([]byte("{}"), filepath.Join(l.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := participant.Join(ctx, participant.JoinOptions{File: own, Policy: policy, Seeded: true, Folder: real, Log: l.log})
			joined <- err
		}()
	}
	for range names {
		if err := <-joined; err != nil {
			t.Fatal(err)
		}
	}
	if err := <-server; err != nil {
		t.Fatal(err)
	}
	wanted := map[string][]float64{}
	for _, one := range tensors(t, d.File(sim.ModelFile)) {
		wanted[one.Name] = one.Values
	}
	var shared [][]float64
	for j := range run.Algorithm.Hypotheses {
		shared = append(shared, wanted[fmt.Sprintf("hypothesis.%d", j)])
	}
	compare(t, filepath.Join(l.dir, "server", "model.safetensors"), shared...)
	for i, name := range names {
		own := [][]float64{wanted[fmt.Sprintf("client.%d", i)]}
		if scale := wanted[fmt.Sprintf("client.%d.scale", i)]; scale != nil {
			own = append(own, wanted[fmt.Sprintf("client.%d.centre", i)], scale)
		}
		compare(t, filepath.Join(l.dir, name, "out", "personal.safetensors"), own...)
	}
	return l.dir
}

// serveSilos starts a server of run.yaml for so many silos, and an authority.
func (l *loopback) serveSilos(ctx context.Context, real *data.Folder, n int) (a *identity.Authority, names []string, ended chan error) {
	for i := range n {
		names = append(names, fmt.Sprintf("silo-%d", i))
	}
	a, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := plan.LoadServeFile([]byte("run: run.yaml\nlisten: 127.0.0.1:0\nparticipants: ["+strings.Join(names, ", ")+"]\n"), l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() {
		_, err := server.Serve(ctx, server.Options{
			File: f, Seeded: true, Folder: real, Log: l.log, Listening: func(address string) { l.address <- address },
		})
		ended <- err
	}()
	select {
	case l.server = <-l.address:
	case err := <-ended:
		l.t.Fatal(err)
	}
	return a, names, ended
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

// compare holds a file's tensors against values.
func compare(t *testing.T, path string, want ...[]float64) {
	t.Helper()
	got := tensors(t, path)
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = len(want[i]) > 0 && slices.Equal(got[i].Values, want[i])
	}
	if !same {
		t.Errorf("%s is not what the simulation has", path)
	}
}

func tensors(t *testing.T, path string) []model.Tensor[float64] {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := model.ReadTensors[float64](file, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
