package artifact

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/source"
)

func tableFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// predicted is what PredictTable writes, cell by cell.
func predicted(t *testing.T, m *Model, table Table) ([][]string, Predictions) {
	t.Helper()
	var out bytes.Buffer
	made, err := m.PredictTable(t.Context(), &out, table)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return cells, made
}

// TestPredictTable: by hand, from cells to the chosen class; columns stand in another
// order than in training.
func TestPredictTable(t *testing.T) {
	m := meanFolder(t, nil)
	path := tableFile(t, "\ufeffsmoker,ward,id,bmi,age,site\nyes,A,\"x,1\",,75,north\nno,C,\"say \"\"b\"\"\",60,-3,south\nno,B,c,20,50,east\n")
	table := Table{Source: config.Source{Path: path, Client: "site"}, Keep: []string{"id", "site"}}
	cells, made := predicted(t, m, table)
	if want := "id site probability no probability yes predicted model"; strings.Join(cells[0], " ") != want {
		t.Errorf("the header is %q, want %q", cells[0], want)
	}
	outs := []float64{
		3*0.5 - 1 + 2 + 0.25 - 0.75, // age 75 is 0.5, bmi is missing, ward A, smoker
		-3*-1 + 0.5*1 - 0.75,        // age below its range, bmi above its range, another ward
		0.5*-0.5 - 2 - 0.75,         // age in the middle, bmi 20 is -0.5, ward B; by the mean
	}
	for i, out := range outs {
		row, p := cells[i+1], 1/(1+math.Exp(-out))
		got, err := strconv.ParseFloat(row[3], 64)
		if err != nil || math.Abs(got-p) > 1e-8 {
			t.Errorf("row %d: %v, want %v", i+1, row, p)
		}
		no, err := strconv.ParseFloat(row[2], 64)
		if err != nil || math.Abs(no+got-1) > 1e-8 {
			t.Errorf("row %d: %v", i+1, row)
		}
		if want := map[bool]string{true: "yes", false: "no"}[p > 0.5]; row[4] != want {
			t.Errorf("row %d: %v, want %s", i+1, row, want)
		}
	}
	if cells[1][0] != "x,1" || cells[2][0] != `say "b"` || cells[1][5] != "client north" || cells[2][5] != "client south" || cells[3][5] != "mean" {
		t.Errorf("%q", cells)
	}
	if made.Rows != 3 || len(made.Models) != 3 || made.Models[2].Client != "east" || made.Models[2].Rows != 1 || !strings.Contains(made.Models[2].Why, "was not there") {
		t.Errorf("%+v", made)
	}
	table = Table{Source: config.Source{Path: path}, Client: "south"}
	cells, made = predicted(t, m, table)
	if strings.Join(cells[0], " ") != "row probability no probability yes predicted" || cells[3][0] != "3" || len(made.Models) != 1 || made.Models[0].Rows != 3 {
		t.Errorf("%q, %+v", cells, made)
	}
}

// TestManyMixedRows: the clients' rows stand among each other, over many chunks, and
// every row gets its own client's answer in its own place.
func TestManyMixedRows(t *testing.T) {
	m := meanFolder(t, nil)
	names := []string{"north", "south", "east"}
	src := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	text.WriteString("age,bmi,ward,smoker,site\n")
	rows := 2*chunkRows + 100
	var ages []float64
	var sites []string
	for range rows {
		ages, sites = append(ages, float64(src.IntN(101))), append(sites, names[src.IntN(3)])
		fmt.Fprintf(&text, "%v,30,A,no,%s\n", ages[len(ages)-1], sites[len(sites)-1])
	}
	cells, made := predicted(t, m, Table{Source: config.Source{Path: tableFile(t, text.String()), Client: "site"}})
	if len(cells) != rows+1 || made.Rows != rows {
		t.Fatalf("%d lines, %d rows", len(cells), made.Rows)
	}
	for i := range rows {
		first := map[string]float64{"north": 3, "south": -3, "east": 0}[sites[i]]
		want := 1 / (1 + math.Exp(-(first*(ages[i]-50)/50 + 2 - 0.75)))
		if got, err := strconv.ParseFloat(cells[i+1][2], 64); err != nil || math.Abs(got-want) > 1e-8 || cells[i+1][0] != strconv.Itoa(i+1) {
			t.Fatalf("row %d of %s: %v, want %v", i+1, sites[i], cells[i+1], want)
		}
	}
}

// TestTableFaults: all of them, by name, and a model that cannot read tables says so.
func TestTableFaults(t *testing.T) {
	m := meanFolder(t, nil)
	fails := func(m *Model, table Table, want error, words ...string) {
		t.Helper()
		_, err := m.PredictTable(t.Context(), &bytes.Buffer{}, table)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v; want %q in it", err, w)
			}
		}
	}
	from := func(text string) Table { return Table{Source: config.Source{Path: tableFile(t, text)}} }
	fails(m, from("age,bmi,ward,smokes\n1,2,A,no\n"), source.ErrTable, "column smoker")
	fails(m, from("age,bmi,ward,smoker\nold,2,A,no\n1,2,A,perhaps\n"), source.ErrTable, "line 2, column age", "line 3, column smoker")
	clash := from("age,bmi,ward,smoker,predicted\n1,2,A,no,x\n")
	clash.Keep = []string{"predicted"}
	fails(m, clash, nil, `"predicted" cannot be kept`)
	rows := describe(t, "fedavg", func(run *config.Run) {
		run.Data = config.Data{Kind: "synthetic"}
		run.Algorithm.Local.Loss = "squared-error"
	})
	rows.Newcomer, rows.Models = RoleGlobal, []Entry{{File: ModelFile, Tensor: "hypothesis.0", Role: RoleGlobal}}
	fails(folder(t, rows, vector("hypothesis.0", theta(0)...)), from("a\n1\n"), nil, "not trained on a table")
}

// TestNewcomersOfATableChooseClusters: each by its own labelled rows, where all are;
// without labels by --cluster alone.
func TestNewcomersOfATableChooseClusters(t *testing.T) {
	m := clusterFolder(t)
	text := "age,bmi,ward,smoker,site,back\n100,30,A,no,east,yes\n0,30,A,no,west,yes\n0,30,A,no,east,no\n100,30,A,no,west,no\n100,30,A,no,west,\n100,30,A,no,north,\n"
	table := Table{Source: config.Source{Path: tableFile(t, text), Client: "site"}}
	cells, _ := predicted(t, m, table)
	var models []string
	for _, row := range cells[1:] {
		models = append(models, row[3]+" "+row[4])
	}
	if got, want := strings.Join(models, ", "), "yes cluster 0, yes cluster 1, no cluster 0, no cluster 1, no cluster 1, no client north"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	unlabelled := Table{Source: config.Source{Path: tableFile(t, "age,bmi,ward,smoker,site\n100,30,A,no,north\n100,30,A,no,east\n"), Client: "site"}}
	if _, err := m.PredictTable(t.Context(), &bytes.Buffer{}, unlabelled); !errors.Is(err, ErrNeedsLabels) || !strings.Contains(err.Error(), "east") {
		t.Errorf("no labels: %v", err)
	}
	zero := 0
	unlabelled.Cluster = &zero
	if cells, _ := predicted(t, m, unlabelled); cells[2][4] != "cluster 0" || cells[1][4] != "client north" {
		t.Errorf("%q", cells)
	}
	wrong := Table{Source: config.Source{Path: tableFile(t, "age,bmi,ward,smoker,site,back\n100,30,A,no,east,maybe\n"), Client: "site"}}
	if _, err := m.PredictTable(t.Context(), &bytes.Buffer{}, wrong); !errors.Is(err, source.ErrTable) || !strings.Contains(err.Error(), "maybe") {
		t.Errorf("a label that is none: %v", err)
	}
	// Where there are no lines, or blank ones first, faults in rows and a missing column are
	// told apart all the same.
	rows := filepath.Join(t.TempDir(), "new.parquet")
	if err := parquet.WriteFile(rows, []struct {
		Age    float64 `parquet:"age"`
		BMI    float64 `parquet:"bmi"`
		Ward   string  `parquet:"ward"`
		Smoker string  `parquet:"smoker"`
		Site   string  `parquet:"site"`
		Back   string  `parquet:"back"`
	}{{100, 30, "A", "no", "east", "maybe"}}); err != nil {
		t.Fatal(err)
	}
	wrong.Source.Path = rows
	if _, err := m.PredictTable(t.Context(), &bytes.Buffer{}, wrong); !errors.Is(err, source.ErrTable) || !strings.Contains(err.Error(), "row 1, column back") {
		t.Errorf("a label of Parquet that is none: %v", err)
	}
	blank := Table{Source: config.Source{Path: tableFile(t, "\n\nage,bmi,ward,smoker,site\n100,30,A,no,east\n"), Client: "site"}}
	if _, err := m.PredictTable(t.Context(), &bytes.Buffer{}, blank); !errors.Is(err, ErrNeedsLabels) {
		t.Errorf("no labels, after blank lines: %v", err)
	}
	// A known client alone needs no labels.
	known := Table{Source: config.Source{Path: unlabelled.Source.Path}, Client: "north"}
	if cells, _ := predicted(t, m, known); cells[1][3] != "no" {
		t.Errorf("%q", cells)
	}
}

// TestEvaluateTable: figures by hand, and of newcomers' clusters honest ones.
func TestEvaluateTable(t *testing.T) {
	m := meanFolder(t, nil)
	path := tableFile(t, "age,bmi,ward,smoker,site,back\n100,30,C,no,north,yes\n0,30,C,no,north,no\n0,30,C,no,south,no\n100,30,C,no,south,\n")
	found, err := m.EvaluateTable(t.Context(), Table{Source: config.Source{Path: path, Client: "site"}})
	if err != nil {
		t.Fatal(err)
	}
	if found.Rows != 3 || found.LeftOut != 1 || len(found.Clients) != 2 || found.Clients[0].Rows != 2 || found.Clients[1].Model != "client south" || len(found.NotCovered) != 1 {
		t.Errorf("%+v", found)
	}
	// North is right twice; south's model says yes to age 0.
	if a, b, all := float64(found.Clients[0].Metrics.Accuracy.Value), float64(found.Clients[1].Metrics.Accuracy.Value), float64(found.Metrics.Accuracy.Value); a != 1 || b != 0 || !near(all, 2.0/3) {
		t.Errorf("accuracies %v and %v, of all %v", a, b, all)
	}
	want := (math.Log1p(math.Exp(-2.25)) + math.Log1p(math.Exp(-3.75))) / 2
	if got := float64(found.Clients[0].Metrics.LogLoss.Value); !near(got, want) {
		t.Errorf("north's log loss is %v, want %v", got, want)
	}
	// A client with rows of both clusters: each row is judged by what fits the other.
	c := clusterFolder(t)
	text := "age,bmi,ward,smoker,site,back\n100,30,A,no,east,yes\n0,30,A,no,east,yes\n100,30,A,no,west,yes\n"
	found, err = c.EvaluateTable(t.Context(), Table{Source: config.Source{Path: tableFile(t, text), Client: "site"}})
	if err != nil {
		t.Fatal(err)
	}
	if found.Rows != 2 || float64(found.Metrics.Accuracy.Value) != 0 || len(found.Unjudged) != 1 || found.Unjudged[0] != "west" {
		t.Errorf("%+v: accuracy %v", found, found.Metrics.Accuracy.Value)
	}
	single := Table{Source: config.Source{Path: tableFile(t, "age,bmi,ward,smoker,site,back\n100,30,A,no,west,yes\n100,30,A,no,west,\n"), Client: "site"}}
	if _, err := c.EvaluateTable(t.Context(), single); err == nil || !strings.Contains(err.Error(), "(west) have one example each") {
		t.Errorf("one labelled row: %v", err)
	}
	if _, err := m.EvaluateTable(t.Context(), Table{Source: config.Source{Path: tableFile(t, "age,bmi,ward,smoker,back\n1,30,A,no,\n")}}); err == nil || !strings.Contains(err.Error(), "no row has a target") {
		t.Errorf("no targets: %v", err)
	}
}
