package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/coterie-fl/coterie/sim"
)

// page is all that the template shows.
type page struct {
	Title, Lead string
	Style       template.CSS
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
	Labels      []label
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
	Claim                                     claim
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
	Legend  []legendEntry
	Caption string
}

type vectorRow struct {
	Method  string
	Claim   claim
	Panels  []panel
	Caption string
}

// panelFigure has one panel a method, and words about those that have none.
type panelFigure struct {
	Panels  []panel
	Legend  []legendEntry
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

type legendEntry struct {
	Key  template.HTML
	Text string
}

// runNote is what is needed to make a run again.
type runNote struct {
	Method, Command, Config string
	Facts                   []fact
}

type fact struct {
	Name, Value string
	Code        bool
}

func newPage(title string, results []sim.Result) page {
	methods := methodsOf(results)
	plans := make([]plan, len(results))
	for i, r := range results {
		plans[i] = planOf(r)
	}
	p := page{
		Title: title, Lead: lead(methods, results, plans), Style: template.CSS(styleText),
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
				label, mostClusterRows, count(left))
		}
	}
	return p
}

func newSummaryRow(label string, r sim.Result) summaryRow {
	row := summaryRow{
		Method: label, Claim: claimOf(r), Validation: rounded(float64(r.Metrics.ValidationLoss)), Accuracy: accuracyOf(r),
		Distance: "unknown", Rounds: count(r.Rounds), Returned: count(r.Rounds) + " (last)",
		Median: cost(float64(r.Privacy.MedianEpsilon)), Max: cost(float64(r.Privacy.MaxEpsilon)),
		Declined: count(r.Privacy.Declined),
	}
	row.Terms = termsOf(r.Privacy.Statement)
	if p := r.Privacy; p.EpsilonAnyUpdate != nil && p.EpsilonSwitch != nil {
		row.Wider = fmt.Sprintf("any other update: %s; any other group: %s", cost(float64(*p.EpsilonAnyUpdate)), cost(float64(*p.EpsilonSwitch)))
	}
	if d := r.Metrics.WorstDistance; d != nil {
		row.Distance = rounded(float64(*d))
	}
	if r.Returned == "best" {
		row.Returned = count(r.BestRound) + " (best)"
	}
	return row
}

// lead is the first sentence of the report.
func lead(methods []method, results []sim.Result, plans []plan) string {
	r := results[0]
	if len(results) == 1 {
		return fmt.Sprintf("%s trained %s of %s with %s.", methods[0].Label, counted(r.Hypotheses, "model", "models"),
			counted(r.Parameters, "parameter", "parameters"), counted(r.Clients, "client", "clients"))
	}
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Label
	}
	on := ""
	if sameData(plans) {
		on = fmt.Sprintf(" on the same data of %s", counted(r.Clients, "client", "clients"))
	}
	return fmt.Sprintf("%s, side by side%s.", joined(names), on)
}

func joined(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
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
	return runNote{Method: label, Command: r.Command, Config: r.Config, Facts: []fact{
		{"Seed", fmt.Sprint(r.Seed), true},
		{"Configuration, SHA-256", r.ConfigSHA256, true},
		{"Models, SHA-256", r.ModelSHA256, true},
		{"Kernel", r.Kernel, true},
		{"Version", r.Version, true},
		{"Run", r.RunID, true},
		{"Took", rounded(r.WallSeconds) + " s", false},
	}}
}
