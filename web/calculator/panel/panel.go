package panel

import (
	"bytes"
	_ "embed" // the parts are in the binary
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/whatif"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

//go:embed answer.gohtml
var answerText string

var answerTemplate = layout.Parse(answerText)

// briefTemplate has the large rows of a label.
var briefTemplate = layout.Parse(`{{range .Rows}}{{if .Large}}<strong>{{.Name}} {{.Value}}</strong> <small>{{.Note}}</small>{{end}}{{end}}`)

// Shown is what the page shows of an answer.
type Shown struct {
	Error  string            `json:"error,omitempty"`  // why there is no answer, and what to change
	HTML   string            `json:"html,omitempty"`   // the answer
	Brief  string            `json:"brief,omitempty"`  // the answer in a line, with its terms
	Solved map[string]string `json:"solved,omitempty"` // values of flags that were solved for
}

// Panel answers one question and then, piece by piece, draws its curves.
type Panel struct{ curves []*curve }

// Ask answers a question in the page's JSON, and forgets the last one.
func (p *Panel) Ask(question []byte) Shown {
	p.curves = nil
	var q Question
	if err := json.Unmarshal(question, &q); err != nil {
		return Shown{Error: "The question cannot be read: " + err.Error() + "."}
	}
	a, err := q.ask()
	if err != nil {
		return Shown{Error: sentence(err)}
	}
	view, err := newView(q, a)
	if err != nil {
		return Shown{Error: sentence(err)}
	}
	var html, brief bytes.Buffer
	if err := errors.Join(layout.Write(&html, answerTemplate, view), layout.Write(&brief, briefTemplate, view.Label)); err != nil {
		return Shown{Error: sentence(err)}
	}
	p.curves = curvesOf(q, a)
	return Shown{HTML: html.String(), Brief: brief.String(), Solved: solved(q, a)}
}

// sentence is an error as a reader wants it.
func sentence(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// solved are the values of what calibrate was asked for, as flags have them.
func solved(q Question, a found) map[string]string {
	if q.Command != "calibrate" {
		return nil
	}
	out := map[string]string{}
	for _, name := range []string{"noise", "rate", "steps"} {
		out[name] = flagValue(a.Own[name])
	}
	return out
}

// flagValue writes a number so that reading it gives the same one.
func flagValue(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprint(v)
}

// view is all that the answer's template shows.
type view struct {
	Sentence, Accountant string
	Lines                []string
	Label                layout.Label
	Silos                layout.Table
	File, Command, JSON  string
}

func newView(q Question, a found) (view, error) {
	fields, err := json.Marshal(a.Fields())
	if err != nil {
		return view{}, fmt.Errorf("writing the answer: %w", err)
	}
	v := view{
		Sentence: a.Cost.Sentence(), Accountant: whatif.AccountantInWords(a.Cost), Lines: a.Lines,
		Label: labelOf(q, a), Command: q.Line(), JSON: string(fields),
	}
	if q.Command == "silo" {
		v.File, v.Silos = strings.TrimRight(q.File, "\n"), siloTable(a.silos)
	}
	return v, nil
}

// labelOf is the privacy label of an answer: what was solved for stands first.
func labelOf(q Question, a found) layout.Label {
	s := a.Cost.Statement()
	l := layout.Label{Method: titles[q.Command], Claim: layout.ClaimOf(s), NotCovered: s.NotCovered}
	if q.Command == "calibrate" {
		l.Rows = append(l.Rows, solvedRow(q, a))
	}
	l.Rows = append(l.Rows, layout.LabelRow{Name: epsilonNames[q.Command], Value: prose.Cost(a.Cost.Epsilon), Note: layout.Claimed(s), Large: true})
	l.Rows = append(l.Rows, ownRows(a)...)
	if s.Relation != event.Metric {
		l.Rows = append(l.Rows, layout.LabelRow{Name: "Delta", Value: prose.Rounded(a.Cost.Delta)})
	}
	return layout.Label{Method: l.Method, Claim: l.Claim, NotCovered: l.NotCovered, Rows: append(l.Rows,
		layout.LabelRow{Name: "What is protected", Value: layout.Protects(s)},
		layout.LabelRow{Name: "From whom", Value: layout.FromWhom(s), Note: string(s.Trust)},
		layout.LabelRow{Name: "Unit", Value: layout.UnitWords(s)},
		layout.LabelRow{Name: "Relation", Value: layout.RelationWords(s)},
		layout.LabelRow{Name: "Radius", Value: prose.Optional(s.Radius, func(n event.Number) string { return prose.Rounded(float64(n)) })},
		layout.LabelRow{Name: "Sampling", Value: s.Sampling},
	)}
}

var titles = map[string]string{
	"dpsgd": "Noised gradient steps", "calibrate": "Noised gradient steps", "metric": "d-private releases",
	"tuning": "The best of several runs", "silo": "The federation",
}

var epsilonNames = map[string]string{
	"dpsgd": "Epsilon", "calibrate": "Epsilon", "metric": "Epsilon at the radius", "tuning": "Epsilon, tuning charged", "silo": "Epsilon, largest of all silos",
}

// solvedRow is what calibrate found.
func solvedRow(q Question, a found) layout.LabelRow {
	v := values{given: map[string]string{}}
	for _, f := range q.Flags {
		v.given[f[0]] = f[1]
	}
	row := func(name string, value any, note string) layout.LabelRow {
		text := flagValue(value)
		if x, ok := value.(float64); ok {
			text = prose.Significant(x, 6)
		}
		return layout.LabelRow{Name: name, Value: text, Note: note, Large: true}
	}
	switch {
	case !v.has("noise"):
		return row("Noise S, at least", a.Own["noise"], "standard deviation over the clip bound")
	case !v.has("steps"):
		return row("Steps, at most", a.Own["steps"], "")
	}
	return row("Rate, at most", a.Own["rate"], "chance of an example to be in a batch")
}

// ownRows are what only some questions have.
func ownRows(a found) (rows []layout.LabelRow) {
	row := func(key, name string) {
		if e, ok := a.Own[key].(event.Number); ok {
			rows = append(rows, layout.LabelRow{Name: name, Value: prose.Cost(float64(e)), Note: layout.Claimed(a.Cost.Statement())})
		}
	}
	row("base_epsilon", "Epsilon of one run alone")
	row("epsilon_per_release", "Epsilon of one release")
	row("epsilon_at_distance", "Epsilon at the distance")
	return rows
}

// siloTable has every silo in a row, with the claim, unit and relation of its epsilon.
func siloTable(silos []account.SiloCost) layout.Table {
	t := layout.Table{ID: "silos-h"}
	column := func(name string, figures bool, cell func(s account.SiloCost) layout.Cell) {
		layout.AddColumn(&t, name, figures, silos, cell)
	}
	column("Silo", false, func(s account.SiloCost) layout.Cell { return layout.Words(s.Plan.Name) })
	column("Noise S", true, func(s account.SiloCost) layout.Cell {
		return layout.Cell{Text: prose.Significant(s.Training.Noise, 6), Strong: true}
	})
	column("Rate", true, func(s account.SiloCost) layout.Cell { return layout.Words(prose.Rounded(s.Training.Rate)) })
	column("Steps", true, func(s account.SiloCost) layout.Cell { return layout.Words(prose.Count(int(s.Training.Steps))) })
	column("Epsilon", true, func(s account.SiloCost) layout.Cell {
		return layout.Words(prose.Cost(s.Cost.Epsilon), layout.TermsOf(s.Cost.Statement()))
	})
	column("Claim", false, func(s account.SiloCost) layout.Cell {
		badge := layout.ClaimOf(s.Cost.Statement())
		return layout.Cell{Badge: &badge}
	})
	return t
}
