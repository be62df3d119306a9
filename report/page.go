package report

import (
	"fmt"
	"html/template"

	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// page is all that the template shows.
type page struct {
	Title, Lead string
	Several     bool
	Pairs       bool // labels two by two
	Summary     []summaryRow
	LossColumn  string
	LossNote    string
	HasAccuracy bool
	HasTruth    bool
	HasDeclined bool
	HasWider    bool
	Data        []dataNote
	Methods     []methodNote
	Labels      []layout.Label
	Vectors     vectorFigure
	Leakage     panelFigure
	Budgets     panelFigure
	Clusters    []clusterRow
	ClusterNote string
	Again       string
	Runs        []runNote
}

type summaryRow struct {
	Method                                    string
	Claim                                     layout.Badge
	Terms                                     string // of the row's epsilons
	Wider                                     string // bounds that hold for more than the radius
	Validation, Distance, Rounds, Median, Max string
	Accuracy                                  string
	Returned, Declined                        string
}

// dataNote says on what the methods of a run were trained; Method is empty if
// all have the same data.
type dataNote struct{ Method, Text string }

type methodNote struct{ Method, What, How string }

// vectorFigure is figure 1.
type vectorFigure struct {
	Rows    []vectorRow
	Legend  []layout.LegendEntry
	Caption string
}

type vectorRow struct {
	Method  string
	Claim   layout.Badge
	Panels  []panel
	Caption string
}

// panelFigure has one panel a method, and words about those that have none.
type panelFigure struct {
	Panels  []panel
	Legend  []layout.LegendEntry
	Caption string
	Missing []methodNote
}

// panel is a picture under its name.
type panel struct {
	Name  string
	Chart template.HTML
	Terms string // of the epsilons in it, if any
}

// miss says why methods have no panel: those with the same reason together.
func (f *panelFigure) miss(label, reason string) {
	for i := range f.Missing {
		if f.Missing[i].How == reason {
			f.Missing[i].Method += ", " + label
			return
		}
	}
	f.Missing = append(f.Missing, methodNote{Method: label, How: reason})
}

// runNote is what is needed to make a run again.
type runNote struct {
	Method, Command, Config string
	Facts                   []layout.Fact
}

func newPage(title string, results []sim.Result) page {
	methods := methodsOf(results)
	plans := make([]plan, len(results))
	for i, r := range results {
		plans[i] = planOf(r)
	}
	p := page{
		Title: title, Lead: lead(methods, results, plans),
		LossColumn: lossColumn(results), LossNote: lossNote(results),
		Several: len(results) > 1, Pairs: len(results) == 4, Data: dataNotes(methods, results, plans),
		Vectors: newVectorFigure(methods, results), Leakage: newLeakageFigure(methods, results),
		Budgets: newBudgetFigure(methods, results), Again: repeatability(methods, plans),
	}
	for i, r := range results {
		label := methods[i].Label
		p.Summary = append(p.Summary, newSummaryRow(label, r))
		p.HasAccuracy = p.HasAccuracy || pictures(r)
		p.HasTruth = p.HasTruth || r.Metrics.WorstDistance != nil
		p.HasWider = p.HasWider || p.Summary[i].Wider != ""
		p.HasDeclined = p.HasDeclined || r.Privacy.Declined > 0
		p.Methods = append(p.Methods, methodNote{label, methods[i].Long, trainingStory(r, plans[i])})
		p.Labels = append(p.Labels, newLabel(label, r, plans[i]))
		p.Runs = append(p.Runs, newRunNote(label, r))
		rows, left := clusterRows(label, r)
		p.Clusters = append(p.Clusters, rows...)
		if left > 0 {
			p.ClusterNote += fmt.Sprintf(" %s: the %d clusters with the largest budgets; result.json has the other %s.",
				label, mostClusterRows, prose.Count(left))
		}
	}
	return p
}

func newSummaryRow(label string, r sim.Result) summaryRow {
	row := summaryRow{
		Method: label, Claim: layout.ClaimOf(r.Privacy.Statement), Validation: prose.Rounded(float64(r.Metrics.ValidationLoss)), Accuracy: accuracyOf(r),
		Distance: "unknown", Rounds: prose.Count(r.Rounds), Returned: prose.Count(r.Rounds) + " (last)",
		Median: prose.Cost(float64(r.Privacy.MedianEpsilon)), Max: prose.Cost(float64(r.Privacy.MaxEpsilon)),
		Declined: prose.Count(r.Privacy.Declined),
	}
	row.Terms = layout.TermsOf(r.Privacy.Statement)
	if p := r.Privacy; p.EpsilonAnyUpdate != nil && p.EpsilonSwitch != nil {
		row.Wider = fmt.Sprintf("any other update: %s; any other group: %s", prose.Cost(float64(*p.EpsilonAnyUpdate)), prose.Cost(float64(*p.EpsilonSwitch)))
	}
	if d := r.Metrics.WorstDistance; d != nil {
		row.Distance = prose.Rounded(float64(*d))
	}
	if r.Returned == "best" {
		row.Returned = prose.Count(r.BestRound) + " (best)"
	}
	return row
}

// lead is the first sentence of the report.
func lead(methods []method, results []sim.Result, plans []plan) string {
	r := results[0]
	if len(results) == 1 {
		return fmt.Sprintf("%s trained %s of %s with %s.", methods[0].Label, prose.Counted(r.Hypotheses, "model", "models"),
			prose.Counted(r.Parameters, "parameter", "parameters"), prose.Counted(r.Clients, "client", "clients"))
	}
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Label
	}
	on := ""
	if sameData(plans) {
		on = fmt.Sprintf(" on the same data of %s", prose.Counted(r.Clients, "client", "clients"))
	}
	return fmt.Sprintf("%s, side by side%s.", prose.Joined(names), on)
}

func dataNotes(methods []method, results []sim.Result, plans []plan) []dataNote {
	if len(results) == 1 || sameData(plans) {
		return []dataNote{{"", dataStory(results[0], plans[0])}}
	}
	notes := make([]dataNote, len(results))
	for i, r := range results {
		notes[i] = dataNote{methods[i].Label, dataStory(r, plans[i])}
	}
	return notes
}

func newRunNote(label string, r sim.Result) runNote {
	return runNote{Method: label, Command: r.Command, Config: r.Config, Facts: []layout.Fact{
		{Name: "Seed", Value: fmt.Sprint(r.Seed), Code: true},
		{Name: "Configuration, SHA-256", Value: r.ConfigSHA256, Code: true},
		{Name: "Models, SHA-256", Value: r.ModelSHA256, Code: true},
		{Name: "Kernel", Value: r.Kernel, Code: true},
		{Name: "Version", Value: r.Version, Code: true},
		{Name: "Run", Value: r.RunID, Code: true},
		{Name: "Took", Value: prose.Rounded(r.WallSeconds) + " s", Code: false},
	}}
}
