package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// projected is a projection on age and on the two wards' difference.
func projected(t *testing.T, method string) (Description, model.Tensor[float64]) {
	t.Helper()
	d := describe(t, method, func(run *config.Run) {
		run.Model = config.Model{Kind: "projection"}
		run.Algorithm.Components = 2
	})
	r := math.Sqrt2 / 2
	return d, vector("hypothesis.0", 1, 0, 0, 0, 0, 0, 0, 0, 0, r, -r, 0, 9, 4)
}

const wardRows = "age,bmi,ward,smoker,back\n100,30,A,no,yes\n0,30,B,no,no\n50,50,A,yes,no\n"

func wardsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(wardRows), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProjectionFolder: a folder of a projection gives parts along its directions and what
// they capture, its file has the directions as a matrix, and others can use it.
func TestProjectionFolder(t *testing.T) {
	fl.RegisterMethod(fl.MethodKind{Name: "pca", Common: fl.CommonGlobal})
	d, theta := projected(t, "pca")
	d.Server(1)
	m := folder(t, d, theta)
	if m.Outputs() != 2 || m.Task != "projection" {
		t.Errorf("%d outputs of the task %s", m.Outputs(), m.Task)
	}
	file, err := os.ReadFile(filepath.Join(m.Path, ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	tensors, err := model.ReadTensors[float64](bytes.NewReader(file), 100)
	if err != nil || len(tensors) != 2 || tensors[0].Name != "hypothesis.0.directions" || !slices.Equal(tensors[0].Shape, []int{2, 6}) ||
		tensors[1].Name != "hypothesis.0.eigenvalues" || !slices.Equal(tensors[1].Values, []float64{9, 4}) {
		t.Errorf("the file has %v, %v", tensors, err)
	}
	table := Table{Source: config.Source{Path: wardsFile(t)}}
	var out bytes.Buffer
	if _, err := m.PredictTable(context.Background(), &out, table); err != nil {
		t.Fatal(err)
	}
	if want := "row,component 1,component 2\n1,1,0.707106781\n2,-1,-0.707106781\n3,0,0.707106781\n"; out.String() != want {
		t.Errorf("predicted is\n%s, want\n%s", out.String(), want)
	}
	found, err := m.EvaluateTable(context.Background(), table)
	// Squared lengths are 1+1, 1+1, 1+1+1; captured are 1.5, 1.5 and 0.5 of them.
	if err != nil || found.Metrics.Captured == nil || math.Abs(float64(found.Metrics.Captured.Value)-3.5/7) > 1e-12 || found.Metrics.AUC != nil {
		t.Errorf("captured are %+v, %v", found.Metrics.Captured, err)
	}
	p, err := data.ReadProjection(m.Path)
	if err != nil || p.Claim != event.ClaimNone || len(p.Directions) != 2 || p.Directions[1][3] != math.Sqrt2/2 {
		t.Errorf("the folder's projection is %+v, %v", p, err)
	}

	// Directions that are not those of the tensors are refused.
	path := filepath.Join(m.Path, DescriptionFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	whole["directions"].([]any)[0].([]any)[0] = 0.5
	if text, err = json.Marshal(whole); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(m.Path); err == nil || !strings.Contains(err.Error(), "direction 1 is not") {
		t.Errorf("another direction than that of the tensors: %v", err)
	}
}

// TestProjectionsHaveNoMean: whoever was not there gets none of others' own.
func TestProjectionsHaveNoMean(t *testing.T) {
	fl.RegisterMethod(fl.MethodKind{Name: "pca-local", Common: fl.CommonNothing})
	d, theta := projected(t, "pca-local")
	d.Server(1)
	d.Client(0, "north", nil, false)
	theta.Name = "client.0"
	d.Client(1, "south", nil, false)
	other := theta
	other.Name = "client.1"
	m := folder(t, d, theta, other)
	if _, err := m.Choose("east"); err == nil || !strings.Contains(err.Error(), "north, south") {
		t.Errorf("a newcomer gets a model: %v", err)
	}
	if c, err := m.Choose("south"); err != nil || c.Client != "south" {
		t.Error(err)
	}
	if _, err := data.ReadProjection(m.Path); err == nil || !strings.Contains(err.Error(), "no projection of a table for everybody") {
		t.Errorf("a folder of everybody's own serves as a projection: %v", err)
	}
}

// TestModelsOnProjectedRows: a model that was trained on components carries the projection,
// and new rows go the same way.
func TestModelsOnProjectedRows(t *testing.T) {
	run := config.Run{Name: "test", Data: wards(), Model: config.Model{Kind: "linear"}}
	run.Algorithm.Kind, run.Algorithm.Local.Loss = "fedavg", "cross-entropy"
	encoding, err := EncodingOf(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := encoding.Project(&data.Projection{Inputs: encoding.Inputs, Directions: [][]float64{{1, 0, 0, 0, 0, 0}}, Claim: event.ClaimProved}); err != nil {
		t.Fatal(err)
	}
	d, err := Describe(run, encoding.Shape(), encoding, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Newcomer = RoleGlobal
	d.Models = []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	m := folder(t, d, vector("hypothesis.0", 2))
	var out bytes.Buffer
	if _, err := m.PredictTable(context.Background(), &out, Table{Source: config.Source{Path: wardsFile(t)}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "1,0.119202922,0.880797078,yes\n2,0.880797078,0.119202922,no\n3,0.5,0.5,no") { // logits of 2*age
		t.Errorf("predicted is\n%s", out.String())
	}
}
