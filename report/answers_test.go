package report

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
	"github.com/coterie-fl/coterie/sim"
)

// classified is a made-up run on 2 classes with four participants.
func classified(method string, auc float64) sim.Result {
	r := made(paperShape("fedavg"))
	number := func(v float64) *event.Number { n := event.Number(v); return &n }
	of := func(v float64) *metrics.Figure {
		return &metrics.Figure{Value: event.Number(v), Low: number(v - 0.1), High: number(v + 0.1)}
	}
	r.Algorithm, r.Name, r.Judge = method, "wards", "own"
	r.Metrics.Figures = metrics.Figures{Accuracy: of(0.8), LogLoss: of(0.4), AUC: of(auc), AveragePrecision: of(0.6), Brier: of(0.15), CalibrationSlope: of(0.9), CalibrationIntercept: of(-0.2)}
	r.Metrics.Error = number(0.2)
	r.History.Curves = &metrics.Curves{
		ROC: [][2]float64{{0, 0}, {0.1, auc - 0.2}, {0.4, auc}, {1, 1}}, PR: [][2]float64{{0.1, 1}, {0.5, 0.8}, {1, 0.4}},
		Reliability: []metrics.Bin{{Low: 0, High: 0.1, Count: 20, Predicted: 0.05, Observed: 0.1}, {Low: 0.8, High: 0.9, Count: 5, Predicted: 0.85, Observed: 0.6}},
	}
	for _, name := range []string{"north", "<south>", "east", "west"} {
		own := metrics.Figures{Accuracy: of(0.75), AUC: of(auc)}
		r.Participants = append(r.Participants, sim.Line{Name: name, Examples: 100, TestExamples: 43, Error: number(0.25), Figures: &own, Comparable: true})
	}
	return r
}

// TestAnswersAndComparisonsInTheReport: one colour a method in every picture, the tables
// of clients, and who gained; nothing of it where there is nothing to show.
func TestAnswersAndComparisonsInTheReport(t *testing.T) {
	run, local := classified("mr-mtl", 0.9), classified("local", 0.7)
	run.Comparison = []sim.Comparison{comparedWith("local", "auc"), comparedWith("fedavg", "rmse")}
	page := render(t, "Wards", run, local, made(paperShape("ifca")))
	for _, f := range layouttest.Faults(page) {
		t.Error(f)
	}
	for _, want := range []string{
		`id="answers-roc-t"`, `id="answers-pr-t"`, `id="answers-reliability-t"`, "MR-MTL: AUC 0.9. Local training: AUC 0.7.", "MR-MTL: calibration slope 0.9, intercept −0.2.",
		"IFCA</strong>: no curve", `id="compared-1-1-t"`, "MR-MTL against local training", "gain in AUC", "fall of the RMSE",
		"Taking part paid for 1 of 4 participants", "&lt;south&gt;", "&#43;0.1", "&#43;0.05 to &#43;0.15", "Figures of their own held-out examples", "Brier score", "Calibration intercept",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
	section := page[strings.Index(page, `<section id="answers"`):]
	section = section[:strings.Index(section, "</section>")]
	// Three panels and the legend, a curve of either method in each.
	for i, class := range []string{"curve s0", "curve s1"} {
		if n := strings.Count(section, `class="`+class); n != 4 {
			t.Errorf("method %d has %d curves", i, n)
		}
	}
	if strings.Contains(section, "curve s2") {
		t.Error("a run without classes has a curve")
	}
	for _, absent := range []string{`id="answers"`, `id="compared"`, "Figures of their own"} {
		if strings.Contains(render(t, "Demo", paperRuns()...), absent) {
			t.Errorf("%s without anything to show", absent)
		}
	}
}

// TestWhoGains: for a figure that should fall, the fall is the gain; in the table and in
// the picture who gained most stands first, and who cannot be compared last.
func TestWhoGains(t *testing.T) {
	names := func(c sim.Comparison) (out []string) {
		for _, p := range byGain(c) {
			out = append(out, p.Name)
		}
		return out
	}
	if got := strings.Join(names(comparedWith("local", "auc")), " "); got != "north east <south> west" {
		t.Errorf("AUC: %s", got)
	}
	if got := strings.Join(names(comparedWith("local", "rmse")), " "); got != "<south> east north west" {
		t.Errorf("RMSE: %s", got)
	}
}

// TestDamagedAnswers: a result that was changed by hand is drawn as far as it can be.
func TestDamagedAnswers(t *testing.T) {
	r := classified("mr-mtl", 0.9)
	inf, none := event.Number(math.Inf(1)), event.Number(math.NaN())
	r.History.Curves.ROC = [][2]float64{{-5, 9}, {math.NaN(), 0.5}, {0.5, 0.5}}
	r.History.Curves.PR, r.History.Curves.Reliability = nil, []metrics.Bin{{Predicted: 4, Observed: -1}}
	r.Metrics.AUC, r.Metrics.CalibrationSlope = nil, nil
	r.Participants[1].Figures = nil
	r.Comparison = []sim.Comparison{{Algorithm: "<x>", Figure: "?", Participants: []sim.Compared{
		{Name: "a", Difference: &metrics.Figure{Value: 0.1, Low: &inf, High: &none}, Verdict: "perhaps"}, {Name: "b", Difference: &metrics.Figure{Value: none}},
	}}, {Algorithm: "local"}}
	for _, f := range layouttest.Faults(render(t, "Damaged", r)) {
		t.Error(f)
	}
}
