// Package report turns run directories into one HTML file, and results into tables for a terminal.
package report

import (
	"bytes"
	_ "embed" // the page and its style are part of the binary
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/population"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = layout.Parse(pageText)

// HTML writes the report of one run, or of several side by side, as one file
// that needs nothing else: no script, no font, no request. The same results give
// the same bytes. Nothing is written if the report cannot be made.
func HTML(w io.Writer, title string, results []sim.Result) error {
	if len(results) == 0 {
		return errors.New("report: there is no result to show; finish a run first")
	}
	view, err := newPage(title, results)
	if err == nil {
		err = layout.Write(w, pageTemplate, view)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Page writes one report about several finished runs to a file.
func Page(path, title string, results []sim.Result) error {
	var page bytes.Buffer
	if err := HTML(&page, title, results); err != nil {
		return err
	}
	return sim.WriteFile(path, page.Bytes())
}

// page is all that the template shows. A section without content is left out.
type page struct {
	Title, Lead  string
	Notice       layout.Fact // on who saw what
	Several      bool
	Pairs        bool // labels two by two
	Summary      layout.Table
	Untrained    []untrainedPart // of runs on people
	Population   []study.Panel   // that they were trained on
	Figures      layout.Table
	SummaryNotes []string
	Data         []dataNote
	Methods      []methodNote
	Labels       []layout.Label
	Fit          fitFigure
	Course       courseFigure
	Answers      panelFigure
	Compared     comparedFigure
	Leakage      panelFigure
	Budgets      panelFigure
	Clusters     layout.Table
	ClusterNote  string
	Participants []participants
	Spenders     string // what Participants are
	Again        string
	Runs         []runNote
}

// dataNote says on what the methods of a run were trained; Method is empty if
// all have the same data.
type dataNote struct {
	Method, Text string
	Loaded       []string
}

type methodNote struct{ Method, What, How string }

// panelFigure has one panel a method, and words about those that have none.
type panelFigure struct {
	Panels  []panel
	Legend  []chart.LegendEntry
	Caption string
	Missing []methodNote
}

// panel is a picture under its name.
type panel struct {
	Name  string
	Chart template.HTML
	Terms string // of the epsilons in it, if any
	// Unseen says that no guarantee covers what is drawn: only a simulation can show it.
	Unseen bool
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

func newPage(title string, results []sim.Result) (p page, err error) {
	runs := runsOf(results)
	p = page{
		Title: title, Lead: lead(runs), Notice: notice(runs), Spenders: "Participants", Several: len(runs) > 1, Pairs: len(runs) == 4,
		Summary: summaryTable(runs), Figures: figureTable(runs), SummaryNotes: summaryNotes(runs), Data: dataNotes(runs),
		Untrained: newUntrained(runs), Fit: newFitFigure(runs), Course: newCourseFigure(runs), Answers: newAnswerFigure(runs), Compared: newComparedFigure(runs), Again: repeatability(runs),
	}
	if counted := slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !counted(r.Summary) || central(r.Summary) }); len(counted) > 0 {
		p.Leakage, p.Budgets = newLeakageFigure(counted), newBudgetFigure(counted)
		p.Clusters, p.ClusterNote = clusterTable(counted, p.Several)
	}
	if allCentral(runs) {
		p.Spenders = "What was spent"
	}
	for i, r := range runs {
		p.Methods = append(p.Methods, methodNote{r.label, r.what(), r.trainingStory()})
		p.Labels = append(p.Labels, newLabel(r))
		p.Runs = append(p.Runs, newRunNote(r))
		if len(r.Participants) > 0 {
			p.Participants = append(p.Participants, newParticipants(fmt.Sprintf("participants-%d", i+1), r))
		}
	}
	if f := results[0].Population; f != nil && (len(runs) == 1 || sameData(runs)) {
		p.Population, err = population.Panels(*f)
	}
	return p, err
}

// notice says who saw what, and what no number is about.
func notice(runs []run) layout.Fact {
	if !allCentral(runs) {
		return layout.Fact{Name: "This is a simulation.", Value: "Figures of the data can be shown because one computer played all participants. In a real federation only the server sees what is sent, and a figure leaves a client only if its privacy budget pays for it."}
	}
	n := layout.Fact{Name: "All examples lay in one place.", Value: "Whoever trained there saw them all. Figures of this report are computed from examples as they are, without noise, and no privacy budget pays for them: what is meant to be given away is the model."}
	if slices.ContainsFunc(runs, func(r run) bool { return r.known && !counted(r.Summary) && r.plan.Privacy.Noise != "exact" }) {
		n.Value += " The noise is for simulation: whoever knows the seed can take it away again (privacy.noise: exact has noise for real use)."
	}
	return n
}

// counted says that epsilon is added up release by release, and so has a history.
func counted(r sim.Summary) bool {
	return r.Privacy.Protects == "update" || r.Privacy.Protects == "nothing"
}

// summaryTable is the runs side by side: columns that no run fills are left out, and
// losses of different kinds stand in columns of their own.
func summaryTable(runs []run) layout.Table {
	t := layout.Table{ID: "summary-h"}
	column := func(name string, figures bool, cell func(r run) layout.Cell) {
		layout.AddColumn(&t, name, figures, runs, cell)
	}
	column("Method", false, func(r run) layout.Cell { return layout.Words(r.label) })
	column("Privacy claim", false, func(r run) layout.Cell {
		badge := r.claim()
		return layout.Cell{Badge: &badge, Small: []string{layout.TermsOf(r.Privacy.Statement)}}
	})
	seen := map[string]bool{}
	for _, r := range runs {
		if name := r.headlineColumn(); !seen[name] {
			seen[name] = true
			column(name, true, func(r run) layout.Cell { return r.headlineCell(name) })
		}
	}
	largest := "Largest epsilon"
	if allCentral(runs) {
		largest = "Epsilon"
	}
	column(largest, true, largestEpsilon)
	column("Median epsilon", true, func(r run) layout.Cell {
		if central(r.Summary) {
			return layout.Cell{}
		}
		return layout.Words(cost(r.Privacy.MedianEpsilon))
	})
	if slices.ContainsFunc(runs, func(r run) bool { return !counted(r.Summary) }) {
		column("Proved for the same releases", true, func(r run) layout.Cell { return proved(r.Privacy.Claim, r.Privacy.Proved) })
	}
	column("Clients", true, func(r run) layout.Cell {
		if central(r.Summary) {
			return layout.Cell{}
		}
		return layout.Words(prose.Count(r.Clients))
	})
	column("Rounds", true, func(r run) layout.Cell { return layout.Words(prose.Count(r.Rounds), returnedWords(r)) })
	column("Clients that declined", true, func(r run) layout.Cell {
		if r.Privacy.Declined == 0 {
			return layout.Cell{}
		}
		return layout.Words(prose.Count(r.Privacy.Declined))
	})
	return t
}

// figureTable is what the judge found beside the first figure.
func figureTable(runs []run) layout.Table {
	t := layout.Table{ID: "figures-h"}
	column := func(name string, figures bool, cell func(r run) layout.Cell) {
		layout.AddColumn(&t, name, figures, runs, cell)
	}
	column("Method", false, func(r run) layout.Cell { return layout.Words(r.label) })
	for _, f := range taskFigures {
		column(capital(f.name), true, func(r run) layout.Cell {
			if f.idle(ranked(r.Summary)) {
				return layout.Cell{}
			}
			return f.cell(r.Metrics)
		})
	}
	column("Worst distance to the truth", true, func(r run) layout.Cell { return layout.Words(prose.Optional(r.Metrics.WorstDistance, rounded)) })
	column("Lambda", true, func(r run) layout.Cell {
		if l := r.Metrics.Lambda; l != nil && math.IsInf(float64(*l), 1) {
			return layout.Words("infinite")
		}
		return layout.Words(prose.Optional(r.Metrics.Lambda, rounded))
	})
	column("Shared by all", true, func(r run) layout.Cell { return layout.Words(prose.Optional(r.Metrics.Shared, percent)) })
	return t
}

// headlineName is the name of headline.
func (r run) headlineName() string {
	switch _, ofErrors := headline(r.Summary); {
	case rankedFigure(r.Summary) != nil:
		return averagePrecision
	case ofErrors:
		return "Test error"
	}
	return r.lossName()
}

// headlineColumn is headlineName with the unit of a loss: runs of different units have a
// column each.
func (r run) headlineColumn() string {
	if name := r.headlineName(); name != r.lossName() {
		return name
	}
	return r.lossUnit()
}

func (r run) headlineCell(name string) layout.Cell {
	if r.headlineColumn() != name {
		return layout.Cell{}
	}
	value, _ := headline(r.Summary)
	c := layout.Cell{Text: prose.Significant(value, 4), Strong: true}
	if h := r.Metrics.HonestLoss; h != nil && r.Hypotheses > 1 {
		c.Small = []string{"chosen on other rows: " + rounded(*h)}
	}
	if f := rankedFigure(r.Summary); f != nil {
		c.Small = append(figureCell(f, rounded).Small, prose.Rounded(value/r.Untrained.Prevalence())+" times the prevalence")
	}
	return c
}

func largestEpsilon(r run) layout.Cell {
	p := r.Privacy
	c := layout.Cell{Text: cost(p.MaxEpsilon), Strong: true}
	if !counted(r.Summary) { // the federation's line: one without a target leaves it without a bound
		c.Text = cost(p.Epsilon)
	}
	if p.EpsilonAnyUpdate != nil {
		c.Small = append(c.Small, "any other update: "+cost(*p.EpsilonAnyUpdate))
	}
	if e := switched(r.Summary); e != nil {
		c.Small = append(c.Small, "any other group: "+cost(*e))
	}
	return c
}

// switched bounds the loss against a client that chooses other models; nil: there are no
// others.
func switched(r sim.Summary) *event.Number {
	if r.Hypotheses < 2 {
		return nil
	}
	return r.Privacy.EpsilonSwitch
}

// proved is the number that is proved for the releases of a claim: one of its own, the
// same, or none.
func proved(claim event.Claim, s *event.Statement) layout.Cell {
	switch {
	case s != nil:
		return layout.Words(cost(s.Epsilon), layout.TermsOf(*s))
	case claim == event.ClaimProved:
		return layout.Words("the same")
	}
	return layout.Words("nothing")
}

func returnedWords(r run) string {
	if r.Returned == "best" {
		return "returned: the best, " + prose.Count(r.BestRound)
	}
	return "returned: the last"
}

// columnNotes explain the columns that some runs have.
var columnNotes = []struct {
	has  func(run) bool
	text string
}{
	{func(r run) bool { return !central(r.Summary) && r.hasTaskFigures() },
		"Figures of the task are over all judged examples; beneath them stands the 95 % interval over clients, where there is one."},
	{func(r run) bool { return r.Metrics.HonestLoss != nil && r.Hypotheses > 1 },
		"Chosen on other rows: every row under the model that fits its client’s other rows best."},
	{func(r run) bool { return r.Metrics.WorstDistance != nil },
		"Worst distance: from a group’s true parameters to the nearest model, for the group that fares worst."},
	{func(r run) bool { return r.Metrics.Lambda != nil },
		"Lambda: the median, over clients and coordinates, of what the server set last; shared by all are the coordinates that it set to infinity."},
	{func(r run) bool { return !central(r.Summary) },
		"Epsilon: a client’s total; an epsilon means what its claim, unit and relation say, and epsilons that differ in them cannot be compared."},
	{func(r run) bool { return central(r.Summary) },
		"Epsilon of central training: of all its steps; it means what its claim, unit and relation say."},
	{func(r run) bool { return r.Privacy.EpsilonAnyUpdate != nil },
		"Under metric claims the number holds for updates within the radius; any other update of the same hypotheses, and any other choice of hypotheses, lose up to the larger numbers beneath it."},
}

func (r run) hasTaskFigures() bool {
	return slices.ContainsFunc(taskFigures, func(f taskFigure) bool { return f.of(r.Metrics) != nil })
}

// summaryNotes explain the columns that are there.
func summaryNotes(runs []run) (notes []string) {
	say := func(text string) {
		if !slices.Contains(notes, text) {
			notes = append(notes, text)
		}
	}
	for _, r := range runs {
		switch _, ofErrors := headline(r.Summary); {
		case rankedFigure(r.Summary) != nil:
			say("Average precision: precision, averaged over the recall that every risk wins: " + testedWords(r.Summary) + "; by chance it is the prevalence, the share who fall ill. Beneath it stands its 95 % interval over households.")
		case ofErrors:
			say("Test error: share of wrong answers, " + testedWords(r.Summary) + ".")
		default:
			say(r.lossWords())
		}
	}
	for _, note := range columnNotes {
		if slices.ContainsFunc(runs, note.has) {
			say(note.text)
		}
	}
	return notes
}

func newRunNote(r run) runNote {
	n := runNote{Method: r.label, Command: r.Command, Config: r.Result.Config, Facts: []layout.Fact{
		{Name: "Seed", Value: fmt.Sprint(r.Seed), Code: true},
		{Name: "Configuration, SHA-256", Value: r.ConfigSHA256, Code: true},
		{Name: "Models, SHA-256", Value: r.ModelSHA256, Code: true},
		{Name: "Kernel", Value: r.Kernel, Code: true},
		{Name: "Version", Value: r.Version, Code: true},
		{Name: "Run", Value: r.RunID, Code: true},
		{Name: "Took", Value: prose.Rounded(r.WallSeconds) + " s"},
	}}
	if words := Crowd(r.Summary); words != "" {
		n.Facts = append(n.Facts, layout.Fact{Name: "Clients held", Value: words})
	}
	if r.Device != nil {
		n.Facts = append(n.Facts, layout.Fact{Name: "Device", Value: r.Device.String()})
	}
	return n
}
