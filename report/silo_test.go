package report

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

func siloFixture() sim.SiloResult {
	num := func(x float64) *event.Number { n := event.Number(x); return &n }
	statement := event.Statement{
		Claim: event.ClaimHeuristic, Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal,
		Epsilon: 6, Delta: 1e-3, Sampling: "shuffle, accounted as poisson", NotCovered: []string{"tuning"},
	}
	proved := statement
	proved.Claim, proved.Relation, proved.Epsilon = event.ClaimProved, event.ReplaceOne, 55.2
	r := sim.SiloResult{SiloSummary: sim.SiloSummary{
		Family: sim.FamilySilos, Name: "school", Algorithm: "mr-mtl", Mode: "paper", Rounds: 3, Clients: 2, Parameters: 29,
		Metrics: sim.SiloMetrics{TestMSE: num(0.0233), TestLoss: 0.0233, Lambda: num(math.Inf(1)), Shared: num(0.8)},
		Privacy: fl.SiloPrivacy{Statement: statement, Proved: &proved, Assumes: []string{"nobody is in two silos"}},
		Silos: []sim.SiloLine{
			{Name: "north <b>", Examples: 90, TestExamples: 22, Target: sim.SiloTarget{Epsilon: 6, Delta: 1e-3, RecordsPerPerson: 2}, Noise: 4.8,
				Epsilon: 6, Delta: 1e-3, Relation: "add-remove", Sampling: "shuffle", Proved: num(40), TestMSE: num(0.02), Comparable: true},
			{Name: "south", Examples: 9, TestExamples: 3, Relation: "add-remove", TestMSE: num(0.05)},
		},
	}}
	for i, loss := range []float64{0.1, 0.05, 0.0233} {
		r.History.Rounds = append(r.History.Rounds, sim.SiloRound{Round: i + 1, Loss: event.Number(loss)})
	}
	return r
}

func TestSiloPageTellsWhatItMust(t *testing.T) {
	var page bytes.Buffer
	if err := SiloHTML(&page, "school", []sim.SiloResult{siloFixture()}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, want := range []string{"MR-MTL", "heuristic", "55.2", "0.0233", "nobody is in two silos", "tuning", "north &lt;b&gt;", "south *", "for 2 records", "simulation",
		"unit example, relation add-remove, delta 0.001", "unit example, relation replace-one, delta 0.001", "with its claim, unit and relation"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, bad := range []string{"<b>", "NaN", "<script", "http://", "https://"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(text, `<svg class="chart"`); n != 2 {
		t.Errorf("%d figures, want 2", n)
	}
	if err := SiloHTML(&page, "nothing", nil); err == nil {
		t.Error("a report of nothing was written")
	}
}

// TestNothingIsCalledProvedThatIsNot: where a heuristic claim has no proved number
// beside it, the page says that nothing is proved; only a proved claim is "the same".
func TestNothingIsCalledProvedThatIsNot(t *testing.T) {
	for claim, want := range map[event.Claim]string{event.ClaimHeuristic: "nothing", event.ClaimNone: "nothing", event.ClaimProved: "the same"} {
		r := siloFixture()
		r.Privacy.Claim, r.Privacy.Proved = claim, nil
		for i := range r.Silos {
			r.Silos[i].Claim, r.Silos[i].Proved = claim, nil
		}
		var page bytes.Buffer
		if err := SiloHTML(&page, "school", []sim.SiloResult{r}); err != nil {
			t.Fatal(err)
		}
		text := page.String()
		if same := strings.Contains(text, ">the same<"); same != (claim == event.ClaimProved) || strings.Count(text, ">"+want+"<") < 3 {
			t.Errorf("%s: the page says %q %d times, and \"the same\": %v", claim, want, strings.Count(text, ">"+want+"<"), same)
		}
		if claim == event.ClaimHeuristic && strings.Contains(text, "the proved number stands beside it") {
			t.Error("the page points to a proved number that is not there")
		}
	}
}

func TestSiloTables(t *testing.T) {
	var out bytes.Buffer
	r := siloFixture().SiloSummary
	if err := SiloTable(&out, []sim.SiloSummary{r}); err != nil {
		t.Fatal(err)
	}
	if err := SiloLines(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MSE 0.02330", "55.20", "heuristic", "6, 0.001 for 2 records", "south"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

// TestSiloClustersAreTold, and models that nobody chose.
func TestSiloClustersAreTold(t *testing.T) {
	r := siloFixture()
	first := 0
	r.Clusters, r.Silos[0].Cluster, r.Silos[1].Cluster = 3, &first, &first
	var page, table bytes.Buffer
	if err := SiloHTML(&page, "school", []sim.SiloResult{r}); err != nil {
		t.Fatal(err)
	}
	if err := SiloTable(&table, []sim.SiloSummary{r.SiloSummary}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"page": page.String(), "table": table.String()} {
		if !strings.Contains(text, "Clusters of 2, 0 and 0 silos. Nobody chose 2 of 3 models") {
			t.Errorf("the %s does not tell the clusters:\n%s", name, text)
		}
	}
	if !strings.Contains(page.String(), `<th scope="col" class="n">Cluster</th>`) {
		t.Error("the page does not say where a silo is")
	}
}

// TestReportsOfOneFamily: a page about runs of both families would compare figures
// that cannot be compared.
func TestReportsOfOneFamily(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, result any) string {
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, sim.ResultFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	silo, group := write("silo", siloFixture()), write("group", made(paperShape("ifca")))
	out := filepath.Join(dir, "report.html")
	for _, dirs := range [][]string{{silo}, {group}, {silo, silo}} {
		if err := Rewrite(out, dirs); err != nil {
			t.Errorf("%v: %v", dirs, err)
		}
	}
	if err := Rewrite(out, []string{silo, group}); err == nil {
		t.Error("runs of both families in one report")
	}
}
