package federation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

const siloRun = `name: silos
seed: 3
data: {kind: vehicle, standardise: none}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 1, local: {epochs: 1, step: 0.01, batch: 64}}
privacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}
`

const siloPolicy = `ceilings:
  - {unit: example, relation: replace-one, claim: proved, epsilon: 7, delta: 1.0e-4}
methods: [mr-mtl, mocha]
`

// TestSilosOverTheNetwork: personal models under example-level privacy are those of
// the simulation, bit for bit, and stay with their owners.
func TestSilosOverTheNetwork(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set")
	}
	runs := map[string]string{"mr-mtl": siloRun}
	if *soak {
		runs["auto"] = strings.Replace(siloRun, "lambda: 1", "lambda: auto", 1)
		runs["mocha"] = strings.Replace(siloRun, "mr-mtl", "mocha", 1)
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) { siloFederation(t, folder, run) })
	}
}

func siloFederation(t *testing.T, folder, text string) {
	l := newLoopback(t)
	l.write("run.yaml", text)
	run, err := config.Resolve([]byte(text), nil, checks()...)
	if err != nil {
		t.Fatal(err)
	}
	real := data.NewFolder(folder)
	s, err := sim.NewSilos(run, real)
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
	n := len(s.Federation().Train)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("silo-%d", i)
	}
	a, err := identity.Init(filepath.Join(l.dir, "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f, err := LoadServeFile([]byte("run: run.yaml\nlisten: 127.0.0.1:0\nparticipants: ["+strings.Join(names, ", ")+"]\n"), l.dir)
	if err != nil {
		t.Fatal(err)
	}
	server := make(chan error, 1)
	go func() {
		_, err := Serve(ctx, ServeOptions{
			File: f, Seeded: true, Folder: real, Log: l.log, Listening: func(address string) { l.address <- address },
		})
		server <- err
	}()
	select {
	case l.server = <-l.address:
	case err := <-server:
		t.Fatal(err)
	}
	policy, err := LoadPolicy([]byte(siloPolicy))
	if err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, n)
	for _, name := range names {
		l.enrol(ctx, a, name)
		own, err := LoadJoinFile([]byte("{}"), filepath.Join(l.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := Join(ctx, JoinOptions{File: own, Policy: policy, Seeded: true, Folder: real, Log: l.log})
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
	compare(t, filepath.Join(l.dir, "server", "model.safetensors"), wanted["server.0"])
	for i, name := range names {
		compare(t, filepath.Join(l.dir, name, "out", "personal.safetensors"), wanted[fmt.Sprintf("silo.%d", i)])
	}
}

// compare holds a file's only tensor against values.
func compare(t *testing.T, path string, want []float64) {
	t.Helper()
	got := tensors(t, path)
	if len(got) != 1 || len(want) == 0 || !slices.Equal(got[0].Values, want) {
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
