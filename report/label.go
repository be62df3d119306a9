package report

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

func newLabel(method string, r sim.Result, p plan) layout.Label {
	l := layout.Label{Method: method, Claim: layout.ClaimOf(r.Privacy.Statement), NotCovered: r.Privacy.NotCovered}
	l.Rows = append(l.Rows,
		layout.LabelRow{Name: "What is protected", Value: layout.Protects(r.Privacy.Statement)},
		layout.LabelRow{Name: "From whom", Value: layout.FromWhom(r.Privacy.Statement), Note: string(r.Privacy.Trust)},
	)
	l.Rows = append(l.Rows, epsilonRows(r)...)
	l.Rows = append(l.Rows,
		layout.LabelRow{Name: "Delta", Value: prose.Rounded(float64(r.Privacy.Delta))},
		radiusRow(r, p),
		sanitisedRow(r),
		layout.LabelRow{Name: "Unit", Value: layout.UnitWords(r.Privacy.Statement)},
		layout.LabelRow{Name: "Relation", Value: layout.RelationWords(r.Privacy.Statement)},
		layout.LabelRow{Name: "Sampling of clients", Value: samplingWords(r.Privacy.Sampling)},
		ceilingRow(r),
	)
	return l
}

func epsilonRows(r sim.Result) []layout.LabelRow {
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
		note = fmt.Sprintf("the odds of a guess between two such values change by a factor of at most %s", prose.Cost(math.Exp(most)))
	}
	rows := []layout.LabelRow{
		{Name: "Epsilon, most exposed client", Value: prose.Cost(most), Note: note, Large: true},
		{Name: "Epsilon, median client", Value: prose.Cost(float64(p.MedianEpsilon))},
		{Name: "Epsilon, one release", Value: prose.Cost(float64(p.EpsilonPerRelease))},
	}
	if p.EpsilonAnyUpdate != nil {
		rows = append(rows, layout.LabelRow{Name: "Epsilon, any other update", Value: prose.Cost(float64(*p.EpsilonAnyUpdate)),
			Note: "most exposed client, if its updates of the same hypotheses were any others (epsilon_any_update)"})
	}
	if p.EpsilonSwitch != nil {
		rows = append(rows, layout.LabelRow{Name: "Epsilon, another group", Value: prose.Cost(float64(*p.EpsilonSwitch)),
			Note: "most exposed client, if it had chosen other hypotheses too (epsilon_switch)"})
	}
	return rows
}

func radiusRow(r sim.Result, p plan) layout.LabelRow {
	row := layout.LabelRow{Name: "Radius"}
	switch {
	case r.Privacy.Radius != nil:
		row.Value, row.Note = prose.Setting(float64(*r.Privacy.Radius)), "public; updates are clipped to it"
		if len(r.Privacy.Layers) > 0 {
			row.Value, row.Note = prose.Rounded(float64(*r.Privacy.Radius)), "public, over all layers; every layer is clipped to its own"
		}
		if d := p.run.Privacy.RadiusDecay; p.known && d != 1 {
			row.Note = fmt.Sprintf("in the first round, then multiplied by %s every round; ", prose.Setting(d)) + row.Note
		}
	case r.Privacy.Claim == event.ClaimHeuristic && r.Privacy.Unit == event.UnitNeighbourhood:
		row.Value, row.Note = "not public", "every update’s own length"
	default:
		row.Value = "none"
	}
	return row
}

// sanitisedRow says what gets noise of its own.
func sanitisedRow(r sim.Result) layout.LabelRow {
	row := layout.LabelRow{Name: "Sanitised", Value: "every update as one vector"}
	if r.Privacy.Claim == event.ClaimNone {
		row.Value = "nothing"
	}
	if n := len(r.Privacy.Layers); n > 0 {
		row.Value = "every layer apart"
		for i, l := range r.Privacy.Layers {
			if i > 0 {
				row.Note += "; "
			}
			row.Note += fmt.Sprintf("layer %s: %s, epsilon %s a release", l.Name, prose.Counted(l.Parameters, "parameter", "parameters"), prose.Cost(float64(l.EpsilonPerRelease)))
			if l.Radius != nil {
				row.Note += " at radius " + prose.Rounded(float64(*l.Radius))
			}
		}
	}
	return row
}

func ceilingRow(r sim.Result) layout.LabelRow {
	p := r.Privacy
	row := layout.LabelRow{Name: "Ceiling and who declined"}
	if p.Ceiling == nil {
		row.Value, row.Note = "none", "without one nobody declines"
	} else {
		row.Value, row.Note = "epsilon "+prose.Setting(float64(*p.Ceiling))+" a client", "nobody declined"
	}
	if p.Declined > 0 || p.DeclinedRequests > 0 {
		row.Note = fmt.Sprintf("%s of %s declined at least once (%s)", prose.Count(p.Declined),
			prose.Counted(r.Clients, "client", "clients"), prose.Counted(p.DeclinedRequests, "request", "requests"))
	}
	return row
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
