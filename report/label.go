package report

import (
	"fmt"
	"html/template"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// label is one method's privacy label.
type label struct {
	Method     string
	Claim      claim
	Rows       []labelRow
	NotCovered []string
}

// labelRow is one line of it; the first ones are set larger.
type labelRow struct {
	Name, Value, Note string
	Large             bool
}

// claim is how far a number can be trusted, in a word, a shape and a sentence.
type claim struct {
	Word     string
	Class    string
	Icon     template.HTML
	Sentence string
}

// The shapes differ without colour: a barred circle, a triangle with a warning,
// a circle with its radius, a shield.
const (
	iconNone      = `<circle class="stroke" cx="12" cy="12" r="9.2"/><path class="stroke" d="M5.6 18.4 18.4 5.6"/>`
	iconHeuristic = `<path class="stroke" d="M12 2.8 22.4 21H1.6z"/><path class="stroke" d="M12 9.4v5.4M12 17.4v.9"/>`
	iconMetric    = `<circle class="stroke" cx="12" cy="12" r="9.2"/><circle class="fill" cx="12" cy="12" r="2.1"/><path class="stroke" d="M12 12h9.2"/>`
	iconProved    = `<path class="fill" d="M12 1.6 21 5v6.6c0 5.2-3.7 8.9-9 10.8-5.3-1.9-9-5.6-9-10.8V5z"/><path class="check" d="m7.4 11.8 3.3 3.4 6-6.6"/>`
)

func icon(shape string) template.HTML {
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + shape + `</svg>`)
}

func claimOf(r sim.Result) claim {
	p := r.Privacy
	switch p.Claim {
	case event.ClaimProved:
		return claim{"proved", "proved", icon(iconProved),
			"A proof covers this number for the unit, the neighbours and the trust named below."}
	case event.ClaimMetric:
		return claim{"metric", "metric", icon(iconMetric),
			"A proof covers updates of one hypothesis that lie close together: what a release tells about two of them grows with their distance and reaches epsilon at the public radius. It does not protect a client’s data as a whole."}
	case event.ClaimHeuristic:
		sentence := "The papers’ number. No proof covers it: read it as a measure of how much noise was added, not as a guarantee."
		if p.Unit == event.UnitNeighbourhood {
			sentence = "The papers’ number. No proof covers it, because the radius that it is measured at is itself private. Read it as a measure of how much noise was added, not as a guarantee."
		}
		return claim{"heuristic", "heuristic", icon(iconHeuristic), sentence}
	case event.ClaimNone:
		return claim{"none", "none", icon(iconNone),
			"Nothing is protected. The trained vectors are released as they are; what they reveal about a client’s data has no limit."}
	}
	return claim{string(p.Claim), "none", icon(iconNone),
		"This report does not know this claim. Treat it as none."}
}

func newLabel(method string, r sim.Result, p plan) label {
	l := label{Method: method, Claim: claimOf(r), NotCovered: r.Privacy.NotCovered}
	l.Rows = append(l.Rows,
		labelRow{Name: "What is protected", Value: protects(r.Privacy.Statement)},
		labelRow{Name: "From whom", Value: fromWhom(r.Privacy.Statement), Note: string(r.Privacy.Trust)},
	)
	l.Rows = append(l.Rows, epsilonRows(r)...)
	l.Rows = append(l.Rows,
		labelRow{Name: "Delta", Value: rounded(float64(r.Privacy.Delta))},
		radiusRow(r, p),
		sanitisedRow(r),
		labelRow{Name: "Unit", Value: unitWords(r.Privacy.Statement)},
		labelRow{Name: "Relation", Value: relationWords(r.Privacy.Statement)},
		labelRow{Name: "Sampling of clients", Value: samplingWords(r.Privacy.Sampling)},
		ceilingRow(r),
	)
	return l
}

func epsilonRows(r sim.Result) []labelRow {
	p := r.Privacy
	most := float64(p.MaxEpsilon)
	note := ""
	if epsilonUnit(r) != "epsilon" {
		note = "at the radius"
	}
	if p.Claim == event.ClaimHeuristic {
		note = "the papers’ number, not a guarantee"
	}
	switch {
	case math.IsInf(most, 1):
		note = "without noise there is no bound"
	case most > 20:
		note = "so large an epsilon bounds nothing of use: the odds of a guess may change by more than a hundred million"
	case p.Delta == 0 && most > 0 && (p.Claim == event.ClaimMetric || p.Claim == event.ClaimProved):
		note = fmt.Sprintf("the odds of a guess between two such values change by a factor of at most %s", cost(math.Exp(most)))
	}
	rows := []labelRow{
		{Name: "Epsilon, most exposed client", Value: cost(most), Note: note, Large: true},
		{Name: "Epsilon, median client", Value: cost(float64(p.MedianEpsilon))},
		{Name: "Epsilon, one release", Value: cost(float64(p.EpsilonPerRelease))},
	}
	if p.EpsilonAnyUpdate != nil {
		rows = append(rows, labelRow{Name: "Epsilon, any other update", Value: cost(float64(*p.EpsilonAnyUpdate)),
			Note: "most exposed client, if its updates of the same hypotheses were any others (epsilon_any_update)"})
	}
	if p.EpsilonSwitch != nil {
		rows = append(rows, labelRow{Name: "Epsilon, another group", Value: cost(float64(*p.EpsilonSwitch)),
			Note: "most exposed client, if it had chosen other hypotheses too (epsilon_switch)"})
	}
	return rows
}

func radiusRow(r sim.Result, p plan) labelRow {
	row := labelRow{Name: "Radius"}
	switch {
	case r.Privacy.Radius != nil:
		row.Value, row.Note = setting(float64(*r.Privacy.Radius)), "public; updates are clipped to it"
		if len(r.Privacy.Layers) > 0 {
			row.Value, row.Note = rounded(float64(*r.Privacy.Radius)), "public, over all layers; every layer is clipped to its own"
		}
		if d := p.run.Privacy.RadiusDecay; p.known && d != 1 {
			row.Note = fmt.Sprintf("in the first round, then multiplied by %s every round; ", setting(d)) + row.Note
		}
	case r.Privacy.Claim == event.ClaimHeuristic && r.Privacy.Unit == event.UnitNeighbourhood:
		row.Value, row.Note = "not public", "every update’s own length"
	default:
		row.Value = "none"
	}
	return row
}

// sanitisedRow says what gets noise of its own.
func sanitisedRow(r sim.Result) labelRow {
	row := labelRow{Name: "Sanitised", Value: "every update as one vector"}
	if r.Privacy.Claim == event.ClaimNone {
		row.Value = "nothing"
	}
	if n := len(r.Privacy.Layers); n > 0 {
		row.Value = "every layer apart"
		for i, l := range r.Privacy.Layers {
			if i > 0 {
				row.Note += "; "
			}
			row.Note += fmt.Sprintf("layer %s: %s, epsilon %s a release", l.Name, counted(l.Parameters, "parameter", "parameters"), cost(float64(l.EpsilonPerRelease)))
			if l.Radius != nil {
				row.Note += " at radius " + rounded(float64(*l.Radius))
			}
		}
	}
	return row
}

func ceilingRow(r sim.Result) labelRow {
	p := r.Privacy
	row := labelRow{Name: "Ceiling and who declined"}
	if p.Ceiling == nil {
		row.Value, row.Note = "none", "without one nobody declines"
	} else {
		row.Value, row.Note = "epsilon "+setting(float64(*p.Ceiling))+" a client", "nobody declined"
	}
	if p.Declined > 0 || p.DeclinedRequests > 0 {
		row.Note = fmt.Sprintf("%s of %s declined at least once (%s)", count(p.Declined),
			counted(r.Clients, "client", "clients"), counted(p.DeclinedRequests, "request", "requests"))
	}
	return row
}

// termsOf is what an epsilon depends on, in the few words that stand beside it.
func termsOf(s event.Statement) string {
	words := fmt.Sprintf("unit %s, relation %s", s.Unit, s.Relation)
	switch {
	case s.Claim == event.ClaimNone:
	case s.Radius != nil:
		words += ", radius " + rounded(float64(*s.Radius))
	case s.Unit == event.UnitNeighbourhood:
		words += ", radius not public"
	default:
		words += ", delta " + rounded(float64(s.Delta))
	}
	return words
}

// claimed is termsOf with the claim in front.
func claimed(s event.Statement) string { return string(s.Claim) + ", " + termsOf(s) }

func protects(s event.Statement) string {
	if s.Claim == event.ClaimNone {
		return "nothing"
	}
	if s.Claim == event.ClaimHeuristic {
		return "nothing for certain; meant is " + unitProtected(s.Unit)
	}
	return unitProtected(s.Unit)
}

func unitProtected(u event.Unit) string {
	switch u {
	case event.UnitNeighbourhood:
		return "which vector a client trained, among those within the radius"
	case event.UnitExample:
		return "one example in a client’s data"
	case event.UnitClient:
		return "all of a client’s data"
	case event.UnitNode:
		return "one node of the graph, with its edges"
	}
	return string(u)
}

func fromWhom(s event.Statement) string {
	switch s.Trust {
	case event.TrustLocal:
		return "the server, and everybody who sees a release"
	case event.TrustServer:
		return "those who see the models; not the server"
	case event.TrustNobody:
		return "nobody"
	}
	return "as stated"
}

func unitWords(s event.Statement) string {
	if s.Unit == event.UnitNeighbourhood {
		return "neighbourhood: vectors within the radius of one another"
	}
	return string(s.Unit)
}

func relationWords(s event.Statement) string {
	if s.Claim == event.ClaimNone {
		return string(s.Relation) // there is nothing to explain
	}
	switch s.Relation {
	case event.Metric:
		return "metric: the loss grows with the distance between two vectors"
	case event.AddRemove:
		return "add-remove: with the unit, or without it"
	case event.ReplaceOne:
		return "replace-one: one unit exchanged for another"
	}
	return string(s.Relation)
}

func samplingWords(s string) string {
	switch s {
	case "uniform":
		return "uniform: drawn afresh every round"
	case "balanced":
		return "balanced: everybody once, in random order, before anybody again"
	}
	return s
}
