package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// TestWhoseModel: a client its own, a stranger the mean; and by hand what they say.
func TestWhoseModel(t *testing.T) {
	m := meanFolder(t, nil)
	x := []float64{0.5, -0.25, 0, 0, 1, 1}
	for client, first := range map[string]float64{"north": 3, "south": -3, "east": 0, "": 0} {
		out := first*0.5 - 0.25*0.5 - 2 + 0.25 - 0.75
		var p [2]float64
		c, err := m.Predict(p[:], x, client)
		if err != nil {
			t.Fatal(err)
		}
		if !near(p[1], 1/(1+math.Exp(-out))) || !near(p[0]+p[1], 1) {
			t.Errorf("%q: %v, want %v", client, p, 1/(1+math.Exp(-out)))
		}
		own := client == "north" || client == "south"
		if own != (c.Role == RoleClient) || own && c.Client != client || !own && c.Role != RoleMean || c.Why == "" {
			t.Errorf("%q: chosen is %v: %s", client, &c, c.Why)
		}
	}
}

// TestSharedModelsAreNobodysOwn: a folder lists a model for every client; one that all
// have, or a cluster, is not called its own.
func TestSharedModelsAreNobodysOwn(t *testing.T) {
	d := describe(t, "fedavg", nil)
	d.Newcomer, d.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	d.Client(0, "north", nil, false)
	d.Client(1, "south", nil, false)
	tuned := folder(t, d, vector("hypothesis.0", theta(1)...), vector("client.0", theta(1)...), vector("client.1", theta(2)...))
	for _, c := range []struct {
		m            *Model
		client, want string
	}{
		{tuned, "north", "fedavg trains one model for all, and north has it"}, {tuned, "south", "south has a model of its own"},
		{meanFolder(t, nil), "north", "north has a model of its own"}, {clusterFolder(t), "north", "north has the model of cluster 1"},
	} {
		if got, err := c.m.Choose(c.client); err != nil || got.Why != c.want || got.String() != "client "+c.client {
			t.Errorf("%s: %s, want %s; %v", c.client, got.Why, c.want, err)
		}
	}
}

// TestAnswers: what outputs mean under every loss and task.
func TestAnswers(t *testing.T) {
	x := []float64{1, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0} // outputs 3-0.75 and -3-0.75 for north
	for loss, want := range map[string][4]float64{
		"cross-entropy":      {1 / (1 + math.Exp(2.25)), 1 / (1 + math.Exp(-2.25)), 1 / (1 + math.Exp(-3.75)), 1 / (1 + math.Exp(3.75))},
		"hinge":              {0, 1, 1, 0},
		"half-squared-error": {0, 1, 1, 0},
	} {
		m := meanFolder(t, func(run *config.Run) { run.Algorithm.Local.Loss = loss })
		var p [4]float64
		if _, err := m.Predict(p[:], x, "north"); err != nil {
			t.Fatal(err)
		}
		for i := range p {
			if !near(p[i], want[i]) {
				t.Errorf("%s: %v, want %v", loss, p, want)
			}
		}
	}
	m := meanFolder(t, func(run *config.Run) { run.Algorithm.Local.Loss = "squared-error" })
	var p [2]float64
	if _, err := m.Predict(p[:], []float64{0.35, 0, 0, 0, 0, 0}, "north"); err != nil || !near(p[1], 3*0.35-0.75) || !near(p[0], 1-p[1]) {
		t.Errorf("a share: %v (%v)", p, err)
	}
	m = meanFolder(t, func(run *config.Run) {
		run.Data.Task, run.Data.TargetRange, run.Algorithm.Local.Loss = data.TaskNumber, []float64{-10, 30}, "half-squared-error"
	})
	var v [1]float64
	if _, err := m.Predict(v[:], []float64{0.5, 0, 0, 0, 0, 0}, "north"); err != nil || !near(v[0], (1.5-0.75)*40-10) {
		t.Errorf("a number: %v (%v)", v, err)
	}
	// The far ends lose no digits and are no NaN.
	m = meanFolder(t, nil)
	for _, far := range []float64{1e3, -1e3} {
		if no, yes := m.probabilities(far); no+yes != 1 || math.IsNaN(yes) || (far > 0) != (yes > no) {
			t.Errorf("an output of %v: %v and %v", far, no, yes)
		}
	}
	if no, yes := m.probabilities(50); yes != 1 || !near(no/math.Exp(-50), 1) {
		t.Errorf("an output of 50: %v and %v", no, yes)
	}
}

// networkFolder is a network of three classes: rows to 4 units to 3 scores.
func networkFolder(t *testing.T) (*Model, []float64) {
	d := describe(t, "fedavg", func(run *config.Run) {
		run.Data.Task, run.Data.Classes = data.TaskClasses, []config.Cell{"home", "ward", "icu"}
		run.Model = config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 4}, {Kind: "tanh"}, {Kind: "linear", Units: 3}}}
	})
	d.Newcomer, d.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	src := rand.New(rand.NewPCG(1, 2))
	parameters := make([]float64, 6*4+4+4*3+3)
	for i := range parameters {
		parameters[i] = src.NormFloat64()
	}
	return folder(t, d, vector("hypothesis.0", parameters...)), parameters
}

// TestNetworkOfClasses: against the layers written out.
func TestNetworkOfClasses(t *testing.T) {
	m, w := networkFolder(t)
	x := []float64{0.1, -0.7, 0, 1, 0, 1}
	var scores, p [3]float64
	for k := range scores {
		scores[k] = w[6*4+4+4*3+k]
		for j := range 4 {
			h := w[6*4+j]
			for i, v := range x {
				h += w[i*4+j] * v
			}
			scores[k] += w[6*4+4+j*3+k] * math.Tanh(h)
		}
	}
	sum := math.Exp(scores[0]) + math.Exp(scores[1]) + math.Exp(scores[2])
	c, err := m.Predict(p[:], x, "anybody")
	if err != nil || c.Role != RoleGlobal {
		t.Fatalf("%v (%v)", &c, err)
	}
	for k := range p {
		if math.Abs(p[k]-math.Exp(scores[k])/sum) > 1e-12 {
			t.Errorf("class %d: %v, want %v", k, p[k], math.Exp(scores[k])/sum)
		}
	}
}

// TestManyRows: chunks on several cores say what single rows say.
func TestManyRows(t *testing.T) {
	for name, m := range map[string]*Model{"linear": meanFolder(t, nil), "network": first(networkFolder(t))} {
		rows, out := 3*chunkRows+17, m.Outputs()
		src := rand.New(rand.NewPCG(3, 4))
		x := make([]float64, rows*6)
		for i := range x {
			x[i] = src.Float64()*2 - 1
		}
		all, one := make([]float64, rows*out), make([]float64, out)
		if _, err := m.Predict(all, x, "north"); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if _, err := m.Predict(one, x[i*6:(i+1)*6], "north"); err != nil {
				t.Fatal(err)
			}
			for k := range one {
				if !near(all[i*out+k], one[k]) {
					t.Fatalf("%s, row %d: %v, alone %v", name, i, all[i*out:(i+1)*out], one)
				}
			}
		}
		if _, err := m.Predict(all, x[1:], "north"); err == nil {
			t.Error("half a row was predicted")
		}
		if _, err := m.Predict(all[1:], x, "north"); err == nil {
			t.Error("answers were left out")
		}
		if _, err := m.Predict(nil, nil, "north"); err != nil {
			t.Errorf("no rows: %v", err)
		}
	}
}

func first(m *Model, _ []float64) *Model { return m }

// clusterFolder is two clusters, whose models say yes and no, and the client north in
// cluster 1.
func clusterFolder(t *testing.T) *Model {
	d := describe(t, "ifca", nil)
	d.Server(2)
	one := 1
	d.Client(0, "north", &one, false)
	return folder(t, d, vector("hypothesis.0", 5, 0, 0, 0, 0, 0, 0), vector("hypothesis.1", -5, 0, 0, 0, 0, 0, 0), vector("client.0", -5, 0, 0, 0, 0, 0, 0))
}

// TestClusterOfANewcomer: by its labelled rows, by name, or not at all.
func TestClusterOfANewcomer(t *testing.T) {
	m := clusterFolder(t)
	if _, err := m.Choose("east"); !errors.Is(err, ErrNeedsLabels) || !errors.Is(err, ErrWhose) || !strings.Contains(err.Error(), "--cluster") {
		t.Errorf("a newcomer without labels: %v", err)
	}
	if c, err := m.Choose("north"); err != nil || c.Role != RoleClient || c.theta[0] != -5 {
		t.Errorf("north: %v (%v)", &c, err)
	}
	x := []float64{1, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0}
	for k, y := range [][]float64{{1, 0}, {0, 1}} {
		c, err := m.Fit(x, y)
		if err != nil || c.Cluster == nil || *c.Cluster != k || !strings.Contains(c.Why, "fits the labelled rows best") {
			t.Errorf("labels %v: %v (%v)", y, &c, err)
		}
		if named, err := m.Cluster(k); err != nil || named.theta[0] != c.theta[0] {
			t.Errorf("cluster %d: %v", k, err)
		}
	}
	if _, err := m.Fit(nil, nil); !errors.Is(err, ErrNeedsLabels) {
		t.Errorf("no labels: %v", err)
	}
	for _, k := range []int{-1, 2} {
		if _, err := m.Cluster(k); !errors.Is(err, ErrWhose) {
			t.Errorf("cluster %d: %v", k, err)
		}
	}
	if _, err := meanFolder(t, nil).Cluster(0); !errors.Is(err, ErrWhose) {
		t.Errorf("a cluster of mr-mtl: %v", err)
	}
}

// TestMeanOfPersonalModels: where the server keeps none, with the mean of the constants
// that clients released; a folder without such constants is refused.
func TestMeanOfPersonalModels(t *testing.T) {
	paid := func(run *config.Run) { run.Data.Standardise = "paid" }
	d := describe(t, "local", paid)
	d.Newcomer = RoleMean
	d.Client(0, "north", nil, true)
	d.Client(1, "south", nil, true)
	zero, one := make([]float64, 6), []float64{1, 1, 1, 1, 1, 1}
	m := folder(t, d, vector("client.0", theta(2)...), vector("client.1", theta(4)...),
		vector("client.0.centre", append([]float64{1}, zero[1:]...)...), vector("client.0.scale", append([]float64{2}, one[1:]...)...),
		vector("client.1.centre", zero...), vector("client.1.scale", append([]float64{4}, one[1:]...)...))
	x := []float64{0.75, 0, 0, 0, 0, 0}
	for client, out := range map[string]float64{"north": 2 * (0.75 - 1) / 2, "south": 4 * 0.75 / 4, "east": 3 * (0.75 - 0.5) / 3} {
		var p [2]float64
		if _, err := m.Predict(p[:], x, client); err != nil || !near(p[1], 1/(1+math.Exp(-(out-0.75)))) {
			t.Errorf("%s: %v (%v), want %v", client, p, err, 1/(1+math.Exp(-(out-0.75))))
		}
	}
	server := describe(t, "fedavg", paid)
	server.Newcomer, server.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	if _, err := folder(t, server, vector("hypothesis.0", theta(1)...)).Choose("east"); !errors.Is(err, ErrWhose) || !strings.Contains(err.Error(), "participant's out folder") {
		t.Errorf("constants that nobody has: %v", err)
	}
	silo := describe(t, "fedavg", func(run *config.Run) { run.Data.Standardise = "silo" })
	silo.Newcomer, silo.Models = RoleGlobal, server.Models
	if _, err := folder(t, silo, vector("hypothesis.0", theta(1)...)).Choose("east"); !errors.Is(err, ErrWhose) || !strings.Contains(err.Error(), "silo") {
		t.Errorf("constants of every silo: %v", err)
	}
	alone := describe(t, "fedavg", nil)
	alone.Personal("north", false)
	alone.Models[0].File = ModelFile
	if _, err := folder(t, alone, vector("personal.0", theta(1)...)).Choose("east"); !errors.Is(err, ErrWhose) || !strings.Contains(err.Error(), "north") {
		t.Errorf("a folder of one: %v", err)
	}
}

// TestNoMemoryARow: linear models answer a million rows with as many allocations as one.
func TestNoMemoryARow(t *testing.T) {
	m := meanFolder(t, nil)
	rows := 20 * chunkRows
	x, p := make([]float64, rows*6), make([]float64, rows*2)
	most := testing.AllocsPerRun(5, func() {
		if _, err := m.Predict(p, x, "north"); err != nil {
			t.Fatal(err)
		}
	})
	if limit := float64(40 + 10*runtime.GOMAXPROCS(0)); most > limit {
		t.Errorf("%v allocations for %d rows, want at most %v", most, rows, limit)
	}
}

// wide is a folder with a logistic model of 50 numbers.
func wide(b *testing.B) *Model {
	d := config.Data{Kind: "table", Target: "y", Task: data.TaskYesNo, Standardise: "none"}
	for j := range 50 {
		d.Features = append(d.Features, config.Column{Name: fmt.Sprintf("x%d", j), Type: "number", Range: []float64{0, 1000}})
	}
	run := config.Run{Name: "bench", Data: d, Model: config.Model{Kind: "linear", Intercept: true}}
	run.Algorithm.Local.Loss = "cross-entropy"
	e, err := EncodingOf(run)
	if err != nil {
		b.Fatal(err)
	}
	about, err := Describe(run, e.Shape(), e, nil)
	if err != nil {
		b.Fatal(err)
	}
	about.Newcomer, about.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	theta := make([]float64, 51)
	for j := range theta {
		theta[j] = math.Sin(float64(j))
	}
	dir := b.TempDir()
	if _, err := Write(dir, about, []model.Tensor[float64]{vector("hypothesis.0", theta...)}, nil); err != nil {
		b.Fatal(err)
	}
	m, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkPredict is the public entry on rows in memory: a logistic model of 50 inputs.
func BenchmarkPredict(b *testing.B) {
	m := wide(b)
	const rows = 1_000_000
	x, p := make([]float64, rows*50), make([]float64, rows*2)
	for i := range x {
		x[i] = float64(i%97)/48 - 1
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Predict(p, x, "anybody"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkPredictTable is from a CSV of 50 columns to one of predictions.
func BenchmarkPredictTable(b *testing.B) {
	m := wide(b)
	const rows = 300_000
	var text bytes.Buffer
	for j := range 50 {
		fmt.Fprintf(&text, "x%d,", j)
	}
	text.WriteString("id\n")
	for i := range rows {
		for j := range 50 {
			text.Write(strconv.AppendFloat(text.AvailableBuffer(), float64((i*31+j*7919)%10000)/10, 'f', 1, 64))
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%d\n", i)
	}
	path := filepath.Join(b.TempDir(), "new.csv")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	text = bytes.Buffer{}
	for _, keep := range [][]string{nil, {"id"}} {
		b.Run(fmt.Sprintf("keep=%d", len(keep)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, err := os.Create(filepath.Join(b.TempDir(), "predictions.csv"))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.PredictTable(b.Context(), out, Table{Source: config.Source{Path: path}, Keep: keep}); err != nil {
					b.Fatal(err)
				}
				if err := out.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
