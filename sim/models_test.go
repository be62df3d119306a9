package sim_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// TestModelsOfEveryMethod: what every method leaves can be opened; known clients get the
// tensor of their number, newcomers what the method gives.
func TestModelsOfEveryMethod(t *testing.T) {
	newcomers := map[string]artifact.Role{
		"central": artifact.RoleGlobal, "fedavg": artifact.RoleGlobal, "ditto": artifact.RoleGlobal, "finetune": artifact.RoleGlobal, "mr-mtl": artifact.RoleMean, "mocha": artifact.RoleMean,
		"local": artifact.RoleMean, "ifca": artifact.RoleCluster, "group-private": artifact.RoleCluster,
	}
	table := filepath.Join(t.TempDir(), "visits.csv")
	if err := os.WriteFile(table, visits(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, method := range fl.Methods() {
		if strings.HasPrefix(method, "pca") { // its projections have tests of their own
			continue
		}
		run, err := config.Resolve(fmt.Appendf(nil, `
data:
  kind: table
  source: {path: %s, client: clinic}
  target: back
  task: yes/no
  features: [{name: age, type: number, range: [0, 100]}, {name: ward, type: category, values: [A, B]}]
algorithm: {kind: %s, mode: sound, rounds: 3}
privacy: {protects: nothing}
`, table, method), nil, sim.Checks()...)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		d, tensors := executed(t, run)
		m, err := artifact.Open(d)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		x, role := []float64{0.4, 1, 0}, artifact.RoleClient
		if method == "central" {
			role = artifact.RoleGlobal
		}
		for i, name := range []string{"north", "south", "west"} {
			var p [2]float64
			c, err := m.Predict(p[:], x, name)
			own, whose := tensors[fmt.Sprintf("client.%d", i)], name
			if role == artifact.RoleGlobal {
				own, whose = tensors["hypothesis.0"], ""
			}
			want := 1 / (1 + math.Exp(-(0.4*own[0] + own[1] + own[3])))
			if err != nil || c.Role != role || c.Client != whose || math.Abs(p[1]-want) > 1e-12 {
				t.Errorf("%s: %s is answered %v by %v (%v), want %v", method, name, p, &c, err, want)
			}
		}
		want, ok := newcomers[method]
		if !ok || m.Newcomer != want {
			t.Errorf("%s: newcomers get the model %q, want %q", method, m.Newcomer, want)
		}
		c, err := m.Choose("east")
		switch {
		case want == artifact.RoleCluster:
			if !errors.Is(err, artifact.ErrNeedsLabels) {
				t.Errorf("%s: %v (%v)", method, &c, err)
			}
			continue
		case err != nil || c.Role != want:
			t.Errorf("%s: %v (%v)", method, &c, err)
			continue
		}
		shared := tensors["hypothesis.0"]
		if method == "local" { // the server's was never trained
			shared = make([]float64, len(shared))
			for i := range 3 {
				for j, v := range tensors[fmt.Sprintf("client.%d", i)] {
					shared[j] += v / 3
				}
			}
		}
		for j, v := range c.Parameters() {
			if math.Abs(v-shared[j]) > 1e-12 {
				t.Errorf("%s: a newcomer gets %v, want %v", method, c.Parameters(), shared)
				break
			}
		}
	}
}

// executed is a run's directory and its tensors by name.
func executed(t *testing.T, run config.Run) (dir string, tensors map[string][]float64) {
	t.Helper()
	s, err := sim.New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := sim.CreateDirectory(filepath.Join(t.TempDir(), "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := s.Execute(t.Context(), d, func(sim.Moment) {}); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(d.File(sim.ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := model.ReadTensors[float64](file, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	tensors = map[string][]float64{}
	for _, one := range all {
		tensors[one.Name] = one.Values
	}
	return d.Path, tensors
}

// TestModelsOfOtherData: drawn rows and networks describe themselves, too.
func TestModelsOfOtherData(t *testing.T) {
	for name, text := range map[string]string{
		"rows":    "data: {kind: synthetic, users: 20, validation_users: 5}\nalgorithm: {kind: ifca, rounds: 2, clients_per_round: 5}\n",
		"network": "data: {kind: synthetic, users: 20, validation_users: 5}\nalgorithm: {kind: fedavg, rounds: 2, clients_per_round: 5}\nmodel: {kind: network, layers: [{kind: linear, units: 3}, {kind: tanh}, {kind: linear, units: 1}]}\n",
	} {
		run, err := config.Resolve([]byte(text), nil, sim.Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		d, tensors := executed(t, run)
		m, err := artifact.Open(d)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Encoding != nil || m.Task != "number" || m.Outputs() != 1 || m.Privacy == nil || len(tensors) == 0 {
			t.Errorf("%s: %+v", name, m.Description)
		}
		if name == "network" {
			if c, err := m.Predict(make([]float64, 1), []float64{0.1, 0.2}, ""); err != nil || c.Role != artifact.RoleGlobal {
				t.Errorf("%v (%v)", &c, err)
			}
		}
	}
}
