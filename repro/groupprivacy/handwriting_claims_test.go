package groupprivacy

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// claimedOf are the verdicts on the sentences about table 2 where accuracies are as given.
func claimedOf(t *testing.T, of func(k writing) float64) map[string]study.Verdict {
	t.Helper()
	h := fullStudy(t, lab.Full, 3)
	keys, _, err := h.cells()
	if err != nil {
		t.Fatal(err)
	}
	finished := map[writing]writtenRecord{}
	for _, k := range keys {
		finished[k] = writtenRecord{Key: k, Value: written{Accuracy: event.Number(of(k))}}
	}
	out := map[string]study.Verdict{}
	for _, r := range (book{finished, func(HandwritingSet) string { return "" }, h.paper}).claims() {
		out[r.Label] = r.Verdict
		if r.Why == "" {
			t.Errorf("%s has no reason", r.Label)
		}
	}
	if len(out) != 3*2*2+1 {
		t.Errorf("%d claims: %v", len(out), out)
	}
	return out
}

func TestClaimsOfTable2CanFail(t *testing.T) {
	few := 0.001 // what seeds differ by
	for label, v := range claimedOf(t, func(k writing) float64 {
		a := 0.8 + few*float64(k.Seed)
		switch {
		case k.Task == strict && k.Nu > 0:
			a -= 0.7
		case k.Nu == 3:
			a += 0.02 + few*float64(k.Seed%2)
		}
		return a
	}) {
		if v != study.Agrees {
			t.Errorf("as the thesis has it, %s: %s", label, v)
		}
	}
	for label, v := range claimedOf(t, func(k writing) float64 {
		a := 0.8 + 0.05*float64(k.Seed)
		if k.Nu > 0 && k.Task == federated {
			a -= 0.02 + few*float64(k.Seed)
		}
		return a
	}) {
		if v != study.Differs {
			t.Errorf("otherwise, %s: %s", label, v)
		}
	}
}

// TestLeakageRows: the network's parameters are counted, and the lost digit is seen.
func TestLeakageRows(t *testing.T) {
	n, err := papersParameters()
	if err != nil {
		t.Fatal(err)
	}
	for parameters, want := range map[int]string{n: "agrees differs agrees", 206590: "differs agrees agrees", 11: "differs differs differs"} {
		var got []string
		for _, r := range leakageRows(parameters) {
			got = append(got, string(r.Verdict))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%d parameters: %s, want %s", parameters, s, want)
		}
	}
}

// TestSmallParameters: at its own number of parameters the small network loses 1 a release.
func TestSmallParameters(t *testing.T) {
	m, err := model.Of(SmallHandwriting.Run(lab.Full, "cross-entropy", 1), data.Shape{Height: 28, Width: 28, Classes: 10})
	if err != nil || m.Parameters() != smallParameters {
		t.Errorf("%v parameters, %v", m.Parameters(), err)
	}
}
