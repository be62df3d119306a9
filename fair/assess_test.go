package fair

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fairlearnRows and the figures below are the example of Fairlearn's user guide,
// "Performing a fairness assessment" (docs/user_guide/assessment, MIT licence).
func fairlearnRows() Rows {
	return Rows{
		Truth:     []int{0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1},
		Predicted: []int{0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0},
		Group:     strings.Split("bbabbcccaacabccbcc", ""),
	}
}

func TestFairlearnUserGuide(t *testing.T) {
	report, err := Assess(fairlearnRows(), Bootstrap{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"demographic_parity_difference": 0.25, "demographic_parity_ratio": 2.0 / 3,
		"equal_opportunity_difference": 0.2, "equal_opportunity_ratio": 2.0 / 3,
		"equalized_odds_difference": 1, "equalized_odds_ratio": 0,
	}
	for name, e := range report.Metrics.All() {
		if err := same(name, e.Value, want[name]); err != nil {
			t.Error(err)
		}
	}
	lines := append([]Group{report.Overall}, report.Groups...)
	for i, want := range []struct {
		name          string
		tpr, fpr, sel float64
		count         int
	}{
		{"all", 0.5, 2.0 / 3, 10.0 / 18, 18}, {"a", 0.5, 1, 0.75, 4}, {"b", 0.6, 0, 0.5, 6}, {"c", 0.4, 2.0 / 3, 0.5, 8},
	} {
		g := lines[i]
		if g.Name != want.name || g.Count != want.count || *g.TruePositiveRate.Value != want.tpr ||
			*g.FalsePositiveRate.Value != want.fpr || *g.SelectionRate.Value != want.sel {
			t.Errorf("line %d is %+v, want %+v", i, g, want)
		}
	}
	// Only one row of b is negative: its false positive rate has no interval, nor
	// has what rests on it.
	b := report.Groups[1]
	for what, e := range map[string]Estimate{"rate": b.FalsePositiveRate, "odds": report.Metrics.EqualizedOddsDifference} {
		if e.Value == nil || e.Low != nil || e.High != nil || !strings.Contains(e.Why, `only one unit has negative rows in group "b"`) {
			t.Errorf("%s: %+v", what, e)
		}
	}
}

// Two groups by hand: a has 2 of 4 selected, TPR 1/2, FPR 1/2; b has 1 of 4, TPR
// 1/3, FPR 0.
func handRows() Rows {
	return Rows{
		Truth:     []int{1, 1, 0, 0, 1, 1, 1, 0},
		Predicted: []int{1, 0, 1, 0, 1, 0, 0, 0},
		Group:     strings.Split("aaaabbbb", ""),
		Cluster:   []int{1, 1, 2, 2, 3, 3, 4, 1},
		Loss:      []float64{1, 2, 3, 4, 5, 6, 7, 8},
	}
}

func TestByHand(t *testing.T) {
	report, err := Measure(handRows())
	if err != nil {
		t.Fatal(err)
	}
	m := report.Metrics
	for _, c := range []struct {
		name string
		got  *float64
		want float64
	}{
		{"parity difference", m.DemographicParityDifference.Value, 0.25},
		{"parity ratio", m.DemographicParityRatio.Value, 0.5},
		{"opportunity difference", m.EqualOpportunityDifference.Value, 1.0 / 6},
		{"opportunity ratio", m.EqualOpportunityRatio.Value, 2.0 / 3},
		{"odds difference", m.EqualizedOddsDifference.Value, 0.5},
		{"odds ratio", m.EqualizedOddsRatio.Value, 0},
		{"a's loss", report.Groups[0].MeanLoss, 2.5},
		{"b's loss", report.Groups[1].MeanLoss, 6.5},
		{"loss", report.Overall.MeanLoss, 4.5},
		{"accuracy", report.Overall.Accuracy.Value, 0.5},
		{"base rate", report.Overall.BaseRate.Value, 5.0 / 8},
		{"b's gap", report.Groups[1].VersusRest.SelectionRate.Value, -0.25},
		{"a's true positive gap", report.Groups[0].VersusRest.TruePositiveRate.Value, 1.0 / 6},
		{"a's false positive gap", report.Groups[0].VersusRest.FalsePositiveRate.Value, 0.5},
	} {
		if err := same(c.name, c.got, c.want); err != nil {
			t.Error(err)
		}
	}
	// Cluster 1 has rows of both groups: it is a unit of each, and one of all four.
	if a, b := report.Groups[0], report.Groups[1]; a.Units != 2 || b.Units != 3 || report.Units != 4 || report.Unit != "cluster" {
		t.Errorf("units %d, %d of %d %ss", a.Units, b.Units, report.Units, report.Unit)
	}
}

func TestUndefinedIsSaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  Rows
		field func(*Report) Estimate
		why   string
	}{
		{
			"no positives in one of three groups",
			Rows{Truth: []int{0, 0, 1, 0, 1, 0}, Predicted: []int{0, 1, 1, 0, 1, 1}, Group: strings.Split("xxyyzz", "")},
			func(r *Report) Estimate { return r.Metrics.EqualOpportunityDifference }, `no positive rows in group "x"`,
		}, {
			"no negatives in one group",
			Rows{Truth: []int{1, 1, 1, 0}, Predicted: []int{0, 1, 1, 0}, Group: strings.Split("xxyy", "")},
			func(r *Report) Estimate { return r.Metrics.EqualizedOddsDifference }, `no negative rows in group "x"`,
		}, {
			"no negatives: the rate",
			Rows{Truth: []int{1, 1, 1, 0}, Predicted: []int{0, 1, 1, 0}, Group: strings.Split("xxyy", "")},
			func(r *Report) Estimate { return r.Groups[0].FalsePositiveRate }, `no negative rows in group "x"`,
		}, {
			"no negatives elsewhere: the gap",
			Rows{Truth: []int{1, 1, 1, 0}, Predicted: []int{0, 1, 1, 0}, Group: strings.Split("xxyy", "")},
			func(r *Report) Estimate { return r.Groups[1].VersusRest.FalsePositiveRate }, `no negative rows outside group "y"`,
		}, {
			"nobody is selected",
			Rows{Truth: []int{1, 0, 1, 0}, Predicted: []int{0, 0, 0, 0}, Group: strings.Split("xxyy", "")},
			func(r *Report) Estimate { return r.Metrics.DemographicParityRatio }, "0 divided by 0",
		}, {
			"one group",
			Rows{Truth: []int{1, 0}, Predicted: []int{1, 0}, Group: strings.Split("xx", "")},
			func(r *Report) Estimate { return r.Metrics.DemographicParityDifference }, "only one group",
		},
	} {
		for how, measure := range map[string]func(Rows) (*Report, error){
			"Measure": Measure,
			"Assess":  func(r Rows) (*Report, error) { return Assess(r, Bootstrap{}) },
		} {
			report, err := measure(c.rows)
			if err != nil {
				t.Fatal(err)
			}
			e := c.field(report)
			if e.Value != nil || e.Low != nil || e.High != nil || !strings.Contains(e.Why, c.why) {
				t.Errorf("%s, %s: %+v, want undefined because of %q", c.name, how, e, c.why)
			}
			text, err := json.Marshal(e)
			if err != nil || !strings.Contains(string(text), `"value":null`) {
				t.Errorf("%s, %s: JSON %s, %v", c.name, how, text, err)
			}
		}
	}
}

func TestAgreesWithDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRows(t)
		if err := agrees(r, Measure); err != nil {
			t.Fatal(err)
		}
		withIntervals := func(r Rows) (*Report, error) { return Assess(r, Bootstrap{Resamples: 99}) }
		if err := agrees(r, withIntervals); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPlantedBugsDisagree: the check against the definitions finds mistakes that
// are easily made.
func TestPlantedBugsDisagree(t *testing.T) {
	bugs := map[string]func(Rows, *Report){
		"true positive rate over all rows": func(r Rows, p *Report) {
			for i, g := range p.Groups {
				if g.TruePositiveRate.Value != nil {
					p.Groups[i].TruePositiveRate.Value = number(*g.TruePositiveRate.Value * *g.BaseRate.Value)
				}
			}
		},
		"odds is the mean of both differences": func(r Rows, p *Report) {
			if e := &p.Metrics.EqualizedOddsDifference; e.Value != nil {
				fp, _ := naiveSpread(r, 0)
				e.Value = number((*p.Metrics.EqualOpportunityDifference.Value + fp) / 2)
			}
		},
		"undefined is 0": func(_ Rows, p *Report) {
			for _, e := range p.Metrics.fields() {
				if e.Value == nil {
					e.Value = number(0)
				}
			}
		},
		"difference of the first and the last group": func(_ Rows, p *Report) {
			first, last := p.Groups[0].SelectionRate.Value, p.Groups[len(p.Groups)-1].SelectionRate.Value
			p.Metrics.DemographicParityDifference.Value = number(math.Abs(*first - *last))
		},
		"truth and prediction swapped": func(r Rows, p *Report) {
			r.Truth, r.Predicted = r.Predicted, r.Truth
			swapped, _ := Measure(r)
			*p = *swapped
		},
	}
	for name, plant := range bugs {
		caught := false
		for seed := range 50 {
			r := rapid.Custom(anyRows).Example(seed)
			caught = caught || agrees(r, func(r Rows) (*Report, error) {
				report, err := Measure(r)
				if err == nil {
					plant(r, report)
				}
				return report, err
			}) != nil
		}
		if !caught {
			t.Errorf("not caught: %s", name)
		}
	}
}

// TestOrderOfRowsDoesNotMatter: nor do the numbers of the clusters; intervals
// included, to the last bit.
func TestOrderOfRowsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRows(t)
		order := rapid.Permutation(toInts(counting(len(r.Truth)))).Draw(t, "order")
		var moved Rows
		for _, i := range order {
			moved.Truth = append(moved.Truth, r.Truth[i])
			moved.Predicted = append(moved.Predicted, r.Predicted[i])
			moved.Group = append(moved.Group, r.Group[i])
			if r.Cluster != nil {
				moved.Cluster = append(moved.Cluster, 1000-7*r.Cluster[i])
			}
			if r.Loss != nil {
				moved.Loss = append(moved.Loss, r.Loss[i])
			}
		}
		b := Bootstrap{Seed: 5, Resamples: 99}
		want, err := Assess(r, b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Assess(moved, b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("%+v\nbecomes\n%+v", want, got)
		}
	})
}

// TestNamesOfGroupsDoNotMatter: the names decide only the order of the lines.
func TestNamesOfGroupsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRows(t)
		renamed := r
		renamed.Group = nil
		for _, g := range r.Group {
			renamed.Group = append(renamed.Group, string('z'-rune(g[0]-'a')))
		}
		before, err := Measure(r)
		if err != nil {
			t.Fatal(err)
		}
		after, err := Measure(renamed)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(after.Groups)
		for i := range after.Groups {
			after.Groups[i].Name = before.Groups[i].Name
			stripWhy(reflect.ValueOf(&after.Groups[i]))
			stripWhy(reflect.ValueOf(&before.Groups[i]))
		}
		stripWhy(reflect.ValueOf(&after.Metrics))
		stripWhy(reflect.ValueOf(&before.Metrics))
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%+v\nbecomes\n%+v", before, after)
		}
	})
}

// stripWhy removes the reasons, which name groups.
func stripWhy(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			stripWhy(v.Elem())
		}
	case reflect.Struct:
		if e, ok := v.Addr().Interface().(*Estimate); ok {
			e.Why = ""
			return
		}
		for i := range v.NumField() {
			stripWhy(v.Field(i))
		}
	}
}

func toInts(v []int32) (out []int) {
	for _, x := range v {
		out = append(out, int(x))
	}
	return out
}

func TestBadRowsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Rows){
		"no rows":                                 func(r *Rows) { *r = Rows{} },
		"Predicted has 7 values for 8 rows":       func(r *Rows) { r.Predicted = r.Predicted[1:] },
		"Group has 0 values for 8 rows":           func(r *Rows) { r.Group = nil },
		"Cluster has 0 values for 8 rows":         func(r *Rows) { r.Cluster = []int{} },
		"Loss has 1 values for 8 rows":            func(r *Rows) { r.Loss = r.Loss[:1] },
		"the true label of row 2 is -1":           func(r *Rows) { r.Truth[2] = -1 },
		"the predicted label of row 7 is 2":       func(r *Rows) { r.Predicted[7] = 2 },
		"Loss of row 0 is NaN":                    func(r *Rows) { r.Loss[0] = math.NaN() },
		"Loss of row 1 is -Inf":                   func(r *Rows) { r.Loss[1] = math.Inf(-1) },
		"Loss of row 1 is 1e+300":                 func(r *Rows) { r.Loss[1] = 1e300 },
		"row 3 has no group: give missing values": func(r *Rows) { r.Group[3] = "" },
	} {
		rows := handRows()
		spoil(&rows)
		if _, err := Measure(rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestJSONKeys(t *testing.T) {
	report, err := Assess(handRows(), Bootstrap{Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"unit", "units", "rows", "level", "resamples", "seed", "metrics", "overall", "groups"} {
		if _, ok := object[key]; !ok {
			t.Errorf("no key %q in %s", key, text)
		}
	}
	metrics := object["metrics"].(map[string]any)
	for _, name := range metricNames {
		if _, ok := metrics[name].(map[string]any)["value"]; !ok {
			t.Errorf("no metric %q in %s", name, text)
		}
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, report) {
		t.Errorf("read back: %v, %+v", err, back)
	}
}
