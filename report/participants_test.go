package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
	"github.com/coterie-fl/coterie/sim"
)

// schools is a result whose participants have targets and figures of their own.
func schools() sim.Result {
	num := func(x float64) *event.Number { n := event.Number(x); return &n }
	statement := event.Statement{
		Claim: event.ClaimHeuristic, Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal,
		Epsilon: 6, Delta: 1e-3, Sampling: "shuffle, accounted as poisson", NotCovered: []string{"tuning"},
	}
	proved := statement
	proved.Claim, proved.Relation, proved.Epsilon = event.ClaimProved, event.ReplaceOne, 55.2
	r := sim.Result{Summary: sim.Summary{
		Name: "school", Dataset: "school", Algorithm: "mr-mtl", Mode: "paper", Judge: "own", Rounds: 3, Returned: "last", Clients: 2, Hypotheses: 1, Parameters: 29,
		Metrics: sim.Metrics{Loss: 0.0233, Lambda: num(math.Inf(1)), Shared: num(0.8)},
		Privacy: fl.Privacy{Statement: statement, Protects: "example", Proved: &proved, Assumes: []string{"nobody is in two schools"}},
		Participants: []sim.Line{
			{Name: "north <b>", Examples: 90, TestExamples: 22, Target: sim.Target{Epsilon: 6, Delta: 1e-3, RecordsPerPerson: 2}, Noise: 4.8,
				Epsilon: 6, Delta: 1e-3, Relation: "add-remove", Sampling: "shuffle", Proved: num(40), Loss: num(0.02), Comparable: true},
			{Name: "south", Examples: 9, TestExamples: 3, Relation: "add-remove", Loss: num(0.05)},
		},
	}}
	for i, loss := range []float64{0.1, 0.05, 0.0233} {
		r.History.Rounds = append(r.History.Rounds, sim.RoundRecord{Round: i + 1, Loss: event.Number(loss)})
	}
	return r
}

func TestPageOfParticipantsTellsWhatItMust(t *testing.T) {
	var page bytes.Buffer
	if err := HTML(&page, "school", []sim.Result{schools()}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, want := range []string{"MR-MTL", "heuristic", "55.2", "0.0233", "nobody is in two schools", "tuning", "north &lt;b&gt;", "south *", "for 2 records", "simulation",
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
	if err := HTML(&page, "nothing", nil); err == nil {
		t.Error("a report of nothing was written")
	}
}

// TestNothingIsCalledProvedThatIsNot: where a heuristic claim has no proved number
// beside it, the page says that nothing is proved; only a proved claim is "the same".
func TestNothingIsCalledProvedThatIsNot(t *testing.T) {
	for claim, want := range map[event.Claim]string{event.ClaimHeuristic: "nothing", event.ClaimNone: "nothing", event.ClaimProved: "the same"} {
		r := schools()
		r.Privacy.Claim, r.Privacy.Proved = claim, nil
		for i := range r.Participants {
			r.Participants[i].Claim, r.Participants[i].Proved = claim, nil
		}
		var page bytes.Buffer
		if err := HTML(&page, "school", []sim.Result{r}); err != nil {
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

func TestTablesOfParticipants(t *testing.T) {
	var out bytes.Buffer
	r := schools().Summary
	if err := Table(&out, []sim.Summary{r}); err != nil {
		t.Fatal(err)
	}
	if err := Lines(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"test MSE", "0.02330", "55.20", "heuristic", "6, 0.001 for 2 records", "south"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

// TestClustersAreTold, and models that nobody chose.
func TestClustersAreTold(t *testing.T) {
	r := schools()
	first := 0
	r.Hypotheses, r.Participants[0].Cluster, r.Participants[1].Cluster = 3, &first, &first
	var page, table bytes.Buffer
	if err := HTML(&page, "school", []sim.Result{r}); err != nil {
		t.Fatal(err)
	}
	if err := Table(&table, []sim.Summary{r.Summary}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"page": page.String(), "table": table.String()} {
		if !strings.Contains(text, "Clusters of 2, 0 and 0 clients. Nobody chose 2 of 3 models") {
			t.Errorf("the %s does not tell the clusters:\n%s", name, text)
		}
	}
	if !strings.Contains(page.String(), `<th scope="col" class="n">Cluster</th>`) {
		t.Error("the page does not say where a silo is")
	}
}

// TestRunsOfAllKindsSideBySide: losses of different kinds stand in columns of their own,
// and no run is told what only another one has.
func TestRunsOfAllKindsSideBySide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := Rewrite(path, []string{folder(t, schools()), folder(t, made(paperShape("ifca")))}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range layouttest.Faults(string(page)) {
		t.Error(f)
	}
	text := words(t, page)
	for _, want := range []string{"Test MSE", "Validation RMSE", "Largest leakage", "Participants", "MR-MTL and IFCA, side by side"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(text, "MR-MTL: no curve") || !strings.Contains(text, "IFCA : no curve") {
		t.Errorf("leakage is told of a run whose releases are not counted, or not of the other one:\n%s", text)
	}
}

// TestWordsFitEveryCombination: whatever is protected and however models are judged, the
// page says nothing that the run has not.
func TestWordsFitEveryCombination(t *testing.T) {
	for _, protects := range []string{"update", "example", "client", "nothing"} {
		for _, judge := range []string{"own", "clients", "test"} {
			for _, method := range []string{"mr-mtl", "group-private", "fedavg", "local"} {
				r := schools()
				r.Algorithm, r.Name, r.Judge, r.Privacy.Protects, r.Dataset, r.Config = method, method, judge, protects, "synthetic", "data: {kind: synthetic}\n"
				page := render(t, "x", r)
				for _, f := range layouttest.Faults(page) {
					t.Errorf("%s, %s, %s: %s", method, protects, judge, f)
				}
				has := func(text string, want bool) {
					if strings.Contains(page, text) != want {
						t.Errorf("%s, %s, %s: %q is said: %v", method, protects, judge, text, !want)
					}
				}
				counts := protects == "update" || protects == "nothing"
				has(" silo", false)
				has("validating clients", judge == "clients")
				has("Test MSE", judge != "clients")
				has("its own held-out examples", judge == "own")
				has("one test set", judge == "test")
				has("Figure 2. Largest leakage", counts)
				has("Proved for the same releases", true) // the fixture has such a number
				has("Target (epsilon, delta)", !counts)
				has("DP-FedAvg", method == "fedavg" && protects == "client")
			}
		}
	}
}

// TestResultsOfEarlierVersionsAreRefused, of both families, with what to do.
func TestResultsOfEarlierVersionsAreRefused(t *testing.T) {
	for name, result := range map[string]map[string]any{
		"group": {"algorithm": "ifca", "metrics": map[string]any{"validation_loss": 1.5}, "privacy": map[string]any{"claim": "none"}},
		"silos": {"family": "silos", "algorithm": "mr-mtl", "metrics": map[string]any{"test_mse": 0.02}, "privacy": map[string]any{"claim": "none"}, "silos": []any{}},
	} {
		dir := folder(t, result)
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "earlier version") || !strings.Contains(err.Error(), "coterie run "+filepath.Join(dir, sim.RunFile)) {
			t.Errorf("%s: %v", name, err)
		}
		path := filepath.Join(dir, sim.ReportFile)
		if err := Rewrite(path, []string{dir}); err == nil {
			t.Errorf("%s: a report was written", name)
		}
	}
}

// TestManyParticipantsAreCut on a terminal, and it says how many are left out.
func TestManyParticipantsAreCut(t *testing.T) {
	r := schools().Summary
	one := r.Participants[1]
	for i := range 200 {
		one.Name = fmt.Sprintf("school %d", i)
		r.Participants = append(r.Participants, one)
	}
	var out bytes.Buffer
	if err := Lines(&out, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+mostLines+1 || !strings.HasPrefix(lines[mostLines+1], "and 172 more") {
		t.Errorf("%d lines, the last one is %q", len(lines), lines[len(lines)-1])
	}
}
