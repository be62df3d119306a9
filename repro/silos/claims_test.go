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
	for worse, want := range map[float64]study.Verdict{2.2: study.Agrees, 1.9: study.Differs} {
		rows := tradeoffClaims("s", 1, 3, true, row(worse, worse*1.01, worse*0.99), "Ditto")
		if got := verdictOf(t, rows, "FedAvg over MR-MTL"); got != want {
			t.Errorf("MR-MTL at %v beside FedAvg's 2, high privacy: %s, want %s", worse, got, want)
		}
	}
	for mtl, want := range map[float64]study.Verdict{1.9: study.Agrees, 2: study.Differs} {
		if got := interest("s", 6, true, row(mtl, mtl*1.001, mtl*0.999)).Verdict; got != want {
			t.Errorf("MR-MTL at %v beside 2, around epsilon 6: %s, want %s", mtl, got, want)
		}
	}
}

// TestMissing: a sentence that nothing is held against is told, and not judged.
func TestMissing(t *testing.T) {
	for _, r := range append(notRun(), adni()...) {
		if r.Verdict != study.Incomparable || r.Sentence != "" || r.Measured != nil || r.Note == "" {
			t.Errorf("%+v", r)
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
	labels := []string{"MR-MTL over the better end", "best lambda: ", "best lambda, ", "MR-MTL over FedAvg", "MR-MTL over local",
		"what privacy costs MR-MTL, epsilon 1: lambda", "what privacy costs MR-MTL, epsilon 1: its way", "what privacy costs MR-MTL, epsilon 6: lambda"}
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
	grows := shrinking("s", spectrumOf(0, 1, 2, [4]float64{1, 1, 1, 1}), spectrumOf(6, 3, 2.5, [4]float64{2, 3, 2.5, 4}))
	for _, r := range grows {
		if r.Verdict != study.Differs {
			t.Errorf("a cost that grows with lambda, %s: %s", r.Label, r.Verdict)
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
	rows := f.clusterClaims("s", 0, row(0.7), nil)
	for _, r := range rows {
		if r.Verdict != study.Agrees {
			t.Errorf("%s: %s", r.Label, r.Verdict)
		}
	}
	if v := verdictOf(t, f.clusterClaims("s", 0, row(0.8), nil), "local after"); v != study.Differs {
		t.Errorf("training alone that gains by the start: %s", v)
	}
	if v := verdictOf(t, f.clusterClaims("s", 0.5, row(0.95), nil), "warm MR-MTL"); v != study.Differs {
		t.Errorf("warm MR-MTL behind another: %s", v)
	}
	if v := f.dropping([][]outcome{row(0.7), row(0.7)}).Verdict; v != study.Differs {
		t.Errorf("a gain that does not drop: %s", v)
	}
}

// TestOverheadClaims: noise is the same where nothing looks twice, and more where something does;
// a method that is worse loses in the figure.
func TestOverheadClaims(t *testing.T) {
	noisy := func(name string, noise float64, figures ...float64) outcome {
		o := of(name, figures...)
		for i := range o.cells {
			o.cells[i].Noise = event.Number(noise * (1 + 0.001*float64(i)))
		}
		return o
	}
	const some, always = "IFCA, choosing in 10 % of rounds", "IFCA, choosing in every round"
	row := func(fedavg, ditto, rare, every, rareFigure float64) func(name string) outcome {
		all := []outcome{
			noisy("local", 2, 5, 5.1, 4.9), noisy("FedAvg", fedavg, 2, 2.1, 1.9), noisy("MR-MTL", fedavg, 1, 1.1, 0.9), noisy("Ditto", ditto, 2, 2.1, 1.9),
			noisy(some, rare, rareFigure, rareFigure+0.1, rareFigure-0.1), noisy(always, every, 4, 4.1, 3.9),
		}
		return func(name string) outcome { return named(all, name) }
	}
	both := func(row func(string) outcome) []study.Row {
		return append(overheadRows("s", "squared", 1, row), noiseClaims("s", row)...)
	}
	for _, r := range both(row(2, 3, 2.1, 2.5, 2.5)) {
		if r.Verdict != study.Agrees {
			t.Errorf("%s: %s", r.Label, r.Verdict)
		}
	}
	wrong := both(row(2.1, 2, 2, 2.1, 1.9))
	for _, label := range []string{"IFCA in 10 % of rounds against", "noise: FedAvg", "noise: MR-MTL", "noise: Ditto", "noise: IFCA in 10 %", "noise: IFCA in every"} {
		if v := verdictOf(t, wrong, label); v != study.Differs {
			t.Errorf("the other way round, %s: %s", label, v)
		}
	}
}

// TestFinetuneClaims: what privacy costs training alone more, and what fine-tuning gains less.
func TestFinetuneClaims(t *testing.T) {
	at := func(epsilon, local, fedavg, tuned float64) finetuning {
		f := finetuning{epsilon: epsilon, shares: []float64{0.5}, local: of("local", local, local*1.01), fedavg: of("FedAvg", fedavg, fedavg*1.01), tuned: []outcome{of("fine-tuned", tuned, tuned*1.01)}}
		for i := range f.tuned[0].cells {
			f.tuned[0].cells[i].Rounds, f.tuned[0].cells[i].Curve = []int{1, 2}, []event.Number{1, 1}
		}
		return f
	}
	free := at(0, 1, 2, 1)
	good, bad := at(1, 5, 3, 4).rows("s", "m", true, free), at(1, 2, 4, 1.5).rows("s", "m", true, free)
	for _, label := range []string{"what privacy costs: local", "fine-tuned: gain over FedAvg"} {
		if verdictOf(t, good, label) != study.Agrees || verdictOf(t, bad, label) != study.Differs {
			t.Errorf("%s: %s where it is so, %s where not", label, verdictOf(t, good, label), verdictOf(t, bad, label))
		}
	}
}

// withLambdas is MR-MTL with one figure a lambda, two seeds alike.
func withLambdas(figures ...float64) outcome {
	o := outcome{name: "MR-MTL"}
	for _, f := range figures {
		o.all = append(o.all, of("", f, f*1.001).cells)
	}
	o.best = bestOf(o.all, true)
	o.cells = o.all[o.best]
	return o
}

// TestLooseTrend: what the text says across large budgets, and the other way round.
func TestLooseTrend(t *testing.T) {
	row := func(local, shared float64, mtl ...float64) []outcome {
		return []outcome{of("local", local, local*1.001), of("FedAvg", shared, shared*1.002), of("IFCA (10 %)", 9, 9), withLambdas(mtl...)}
	}
	strict, loose := row(4, 2, 4, 1.9), row(1, 2, 1.001, 1.5)
	for _, c := range []struct {
		rows []study.Row
		want study.Verdict
	}{
		{looseTrend("s", true, []float64{1, 10}, []float64{0.1, 1}, [][]outcome{strict, loose}), study.Agrees},
		{looseTrend("s", true, []float64{1, 10}, []float64{0.1, 1}, [][]outcome{loose, row(4, 2, 3, 1.9)}), study.Differs},
	} {
		if len(c.rows) != 3 {
			t.Errorf("%d rows", len(c.rows))
		}
		for _, r := range c.rows {
			if r.Verdict != c.want {
				t.Errorf("%s: %s, want %s", r.Label, r.Verdict, c.want)
			}
		}
	}
}

// TestLessDataClaims: figure G.7's sentences, and the other way round.
func TestLessDataClaims(t *testing.T) {
	row := func(local, fedavg, tuned float64, mtl ...float64) [][]outcome {
		return [][]outcome{{of("local", local, local*1.001), of("FedAvg", fedavg, fedavg*1.002), of("fine-tuning", tuned, tuned*1.001), withLambdas(mtl...)}}
	}
	labels := []string{"20 % for training, all epsilons together: FedAvg over local", "20 % for training, all epsilons together: FedAvg over fine-tuning", "from 80 to 20 % for training: best lambda"}
	much, little := row(1, 2, 1.5, 1, 1.2), row(4, 2, 3, 3.5, 2.5)
	for want, outcomes := range map[study.Verdict][][][]outcome{study.Agrees: {much, little}, study.Differs: {little, much}} {
		rows := crossingRows([]float64{0.2, 0.8}, []float64{6}, []float64{0.1, 1}, outcomes)
		for _, label := range labels {
			if got := verdictOf(t, rows, label); got != want {
				t.Errorf("%s: %s, want %s", label, got, want)
			}
		}
	}
}

// TestClaimsApart: claims leave the table of figures, and stay where there are none.
func TestClaimsApart(t *testing.T) {
	rows := claimsApart([]study.Row{{Section: "a", Verdict: study.NoNumber}, {Section: "a", Verdict: study.Agrees}, {Section: "b", Verdict: study.Differs}})
	for i, want := range []string{"a", "a: what the text claims", "b"} {
		if rows[i].Section != want {
			t.Errorf("row %d in %q, want %q", i, rows[i].Section, want)
		}
	}
}
