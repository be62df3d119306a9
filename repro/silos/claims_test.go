package silos

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
)

// of is an outcome with these figures, a seed each.
func of(name string, figures ...float64) outcome {
	o := outcome{name: name}
	for _, f := range figures {
		o.cells = append(o.cells, cell{Figure: event.Number(f)})
	}
	o.all = [][]cell{o.cells}
	return o
}

// verdicts by the part of a label that a row begins with.
func verdictOf(t *testing.T, rows []study.Row, label string) study.Verdict {
	t.Helper()
	i := slices.IndexFunc(rows, func(r study.Row) bool { return len(r.Label) >= len(label) && r.Label[:len(label)] == label })
	if i < 0 {
		t.Fatalf("no row %q", label)
	}
	return rows[i].Verdict
}

// TestTradeoffClaims: MR-MTL must not be worse than the better end by its whole interval, and
// must be better than the best rival; at high privacy the first is not judged.
func TestTradeoffClaims(t *testing.T) {
	row := func(mtl ...float64) []outcome {
		return []outcome{of("local", 3, 3.1, 2.9), of("FedAvg", 2, 2.02, 1.98), of("Ditto", 2.5, 2.4, 2.6), of("MR-MTL", mtl...)}
	}
	for _, c := range []struct {
		epsilon     float64
		mtl         []float64
		ends, rival study.Verdict
	}{
		{6, []float64{1.9, 1.92, 1.88}, study.Agrees, study.Agrees},
		{6, []float64{2.01, 2.03, 1.99}, study.Agrees, study.Agrees},  // half a hundredth worse
		{6, []float64{2.2, 2.22, 2.18}, study.Differs, study.Agrees},  // worse than FedAvg
		{6, []float64{2.6, 2.55, 2.65}, study.Differs, study.Differs}, // and than Ditto
		{6, []float64{1.9, 2.5, 1.3}, study.Differs, study.Differs},   // better on average alone
		{1, []float64{1.9, 1.92, 1.88}, study.Incomparable, study.Agrees},
	} {
		rows := tradeoffClaims("s", c.epsilon, 3, true, row(c.mtl...), "Ditto")
		if got := verdictOf(t, rows, "MR-MTL over FedAvg"); got != c.ends {
			t.Errorf("%v at %v against the ends: %s, want %s", c.mtl, c.epsilon, got, c.ends)
		}
		if got := verdictOf(t, rows, "MR-MTL over Ditto"); got != c.rival {
			t.Errorf("%v against the rival: %s, want %s", c.mtl, got, c.rival)
		}
	}
}

// spectrumOf is MR-MTL's errors by lambda 0.1, 1, 10, two seeds alike, and the ends.
func spectrumOf(epsilon, local, fedavg float64, mtl [4]float64) spectrum {
	sp := spectrum{epsilon: epsilon, lambdas: []float64{0.01, 0.1, 1, 10}, lower: true, local: of("local", local, local*1.01), fedavg: of("FedAvg", fedavg, fedavg*1.01)}
	for _, v := range mtl {
		sp.mtl.all = append(sp.mtl.all, of("", v, v*1.01).cells)
	}
	sp.mtl.best = bestOf(sp.mtl.all, true)
	sp.mtl.cells = sp.mtl.all[sp.mtl.best]
	return sp
}

// TestSpectraRows: each observation across budgets agrees where it is so, and differs where
// it is the other way round.
func TestSpectraRows(t *testing.T) {
	free := spectrumOf(0, 1, 2, [4]float64{0.99, 1.1, 1.5, 1.9})
	strict := spectrumOf(1, 9, 3, [4]float64{8, 5, 4, 2.9})
	loose := spectrumOf(6, 3, 2.5, [4]float64{2.9, 2.4, 1.5, 2})
	rows := spectraRows("s", []spectrum{free, strict, loose})
	labels := []string{"MR-MTL over the better end", "best lambda: ", "best lambda, ", "MR-MTL over FedAvg", "MR-MTL over local"}
	for _, label := range append(labels, "epsilon 1: ", "epsilon 6: ") {
		if v := verdictOf(t, rows, label); v != study.Agrees {
			t.Errorf("%s: %s", label, v)
		}
	}
	// Exchanged: without privacy it is as with, and the strict one as the loose.
	free, strict, loose = loose, loose, strict
	free.epsilon, strict.epsilon, loose.epsilon = 0, 1, 6
	rows = spectraRows("s", []spectrum{free, strict, loose})
	for _, label := range []string{"MR-MTL over the better end", "best lambda, ", "MR-MTL over FedAvg", "MR-MTL over local"} {
		if v := verdictOf(t, rows, label); v != study.Differs {
			t.Errorf("exchanged, %s: %s", label, v)
		}
	}
	for _, r := range spectrumOf(6, 3, 2, [4]float64{2.9, 2.4, 2.3, 2.1}).interpolates("s") {
		if r.Verdict != study.Agrees {
			t.Errorf("%s: %s", r.Label, r.Verdict)
		}
	}
	for _, r := range spectrumOf(6, 3, 2, [4]float64{2.1, 2.4, 2.3, 2.9}).interpolates("s") {
		if r.Verdict != study.Differs {
			t.Errorf("the other way round, %s: %s", r.Label, r.Verdict)
		}
	}
	if two := spectrumOf(6, 3, 2.5, [4]float64{1, 2.4, 1.1, 2}); two.astray()[0] < 0.5 {
		t.Errorf("a curve with two bumps goes astray by %v of its range", two.astray()[0])
	}
}

// TestCrossings: from where on training alone stays better.
func TestCrossings(t *testing.T) {
	at := func(local, fedavg float64) []outcome { return []outcome{of("local", local), of("FedAvg", fedavg)} }
	for _, c := range []struct {
		rows [][]outcome
		want float64
	}{
		{[][]outcome{at(3, 1), at(2, 3), at(1, 3)}, 3},
		{[][]outcome{at(1, 3), at(3, 2), at(1, 3)}, 10}, // what comes before a setback does not count
		{[][]outcome{at(3, 1), at(3, 1), at(3, 1)}, 20},
	} {
		if got := crossings([]float64{1, 3, 10}, c.rows); math.Abs(got[0]-math.Log2(c.want)) > 1e-12 {
			t.Errorf("crossing at %v, want %v", math.Exp2(got[0]), c.want)
		}
	}
}

// TestClusterClaims: figure 1.6's sentences, of which one asks for no gain.
func TestClusterClaims(t *testing.T) {
	f := figure16{warm: 0.05, masks: []float64{0, 0.5}}
	row := func(warmLocal float64) []outcome {
		return []outcome{
			of("MR-MTL (IFCA 5 %)", 0.9, 0.91, 0.9), of("IFCA", 0.9, 0.905, 0.9), of("local", 0.7, 0.7, 0.701), of("FedAvg", 0.6, 0.6, 0.6),
			of("MR-MTL", 0.8, 0.81, 0.8), of("local (IFCA 5 %)", warmLocal, warmLocal, warmLocal+0.001),
		}
	}
	rows := f.clusterClaims("s", 0, row(0.7))
	for _, r := range rows {
		if r.Verdict != study.Agrees {
			t.Errorf("%s: %s", r.Label, r.Verdict)
		}
	}
	if v := verdictOf(t, f.clusterClaims("s", 0, row(0.8)), "local after"); v != study.Differs {
		t.Errorf("training alone that gains by the start: %s", v)
	}
	if v := verdictOf(t, f.clusterClaims("s", 0.5, row(0.95)), "warm MR-MTL"); v != study.Differs {
		t.Errorf("warm MR-MTL behind another: %s", v)
	}
	if v := f.dropping([][]outcome{row(0.7), row(0.7)}).Verdict; v != study.Differs {
		t.Errorf("a gain that does not drop: %s", v)
	}
}
