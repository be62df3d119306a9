package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

// newLabel is a run's privacy label; rows that the protection does not have stay empty.
func newLabel(r run) layout.Label {
	p := r.Privacy
	l := layout.Label{Method: r.label, Claim: r.claim(), NotCovered: p.NotCovered, Unnamed: "The run names nothing. That is unusual: ask."}
	l.Rows = append(l.Rows,
		layout.LabelRow{Name: "What is protected", Value: layout.Protects(p.Statement)},
		layout.LabelRow{Name: "From whom", Value: layout.FromWhom(p.Statement), Note: string(p.Trust)},
	)
	l.Rows = append(l.Rows, epsilonRows(r)...)
	l.Rows = append(l.Rows,
		layout.LabelRow{Name: "Delta", Value: prose.Rounded(float64(p.Delta))},
		radiusRow(r),
		sanitisedRow(r),
		layout.LabelRow{Name: "Unit", Value: layout.UnitWords(p.Statement)},
		layout.LabelRow{Name: "Relation", Value: layout.RelationWords(p.Statement)},
	)
	switch {
	case central(r.Summary) && p.Claim == event.ClaimNone: // batches are drawn to learn by, not to hide anybody
	case counted(r.Summary):
		l.Rows = append(l.Rows, layout.LabelRow{Name: "Sampling of clients", Value: cmp.Or(samplingWords[p.Sampling], p.Sampling)}, ceilingRow(r))
	default:
		l.Rows = append(l.Rows, layout.LabelRow{Name: "Sampling", Value: p.Sampling})
	}
	if b := p.Batches; b != nil {
		l.Rows = append(l.Rows, batchesRow(b))
	}
	l.Rows = append(l.Rows,
		layout.LabelRow{Name: "Assumes", Value: strings.Join(p.Assumes, "; ")},
		layout.LabelRow{Name: "Good to know", Value: strings.Join(p.Says, "; ")},
	)
	return l
}

// batchesRow says why steps on everybody do better than steps on batches, where persons are
// protected.
func batchesRow(b *fl.Batches) layout.LabelRow {
	s := b.AuthorsCode
	return layout.LabelRow{
		Name: "Batches",
		Value: fmt.Sprintf("noise in the mean gradient of the run, times %s persons, over the clip: %s in these %s steps on %s, %s in %d steps on everybody",
			prose.Count(b.Examples), prose.Rounded(float64(b.MeanNoise)), prose.Count(b.Steps), prose.Count(b.Batch), prose.Rounded(float64(b.FullMeanNoise)), b.FullSteps),
		Note: fmt.Sprintf("A person is in several examples, and a batch may hold all of them: batches hide little, and each is small. The formula of the authors’ program has epsilon %s for these steps (%s, %s, %s), since it counts half of what an example moves.",
			prose.Rounded(float64(s.Epsilon)), s.Claim, s.Unit, s.Relation),
	}
}

// claim is how far the run's numbers can be trusted, in words that fit its protection.
func (r run) claim() layout.Badge {
	c := layout.ClaimOf(r.Privacy.Statement)
	switch {
	case r.Privacy.Claim == event.ClaimNone && central(r.Summary):
		c.Sentence = "Nothing is protected. The model is trained without noise; what it reveals about its examples to whoever sees it has no limit."
	case c.Class == "heuristic" && !counted(r.Summary) && r.Privacy.Proved != nil:
		c.Sentence = "The papers’ number: batches of a random order are accounted as if every example were drawn by itself. No proof covers that; the proved number stands beside it."
	case c.Class == "heuristic" && !counted(r.Summary):
		c.Sentence = "A number that no proof covers: something that depends on the examples is not accounted for, or batches of a random order are accounted as if every example were drawn by itself. What is left out stands below."
	case r.Privacy.Claim == event.ClaimNone && !counted(r.Summary):
		c.Sentence = "Nothing is promised for the federation as a whole: somebody takes part without a target of its own. What each of them is promised stands in the table of participants."
	case r.Privacy.Claim == event.ClaimNone && r.Algorithm == "local":
		c.Sentence = "Nothing is protected. Nothing is sent either; what a client’s model reveals about its data to whoever sees it has no limit."
	}
	return c
}

func epsilonRows(r run) []layout.LabelRow {
	p := r.Privacy
	most := float64(p.Epsilon)
	note := ""
	if p.Unit == event.UnitNeighbourhood {
		note = "at the radius"
	}
	if p.Claim == event.ClaimHeuristic {
		note = "the papers’ number, not a guarantee"
	}
	switch {
	case p.Claim == event.ClaimNone || math.IsInf(most, 1):
		note = "without noise there is no bound"
	case most > 20:
		note = "so large an epsilon bounds nothing of use: the odds of a guess may change by more than a hundred million"
	case p.Delta == 0 && most > 0 && (p.Claim == event.ClaimMetric || p.Claim == event.ClaimProved):
		note = fmt.Sprintf("the odds of a guess between two such values change by a factor of at most %s", prose.Cost(math.Exp(most)))
	}
	rows := []layout.LabelRow{
		{Name: "Epsilon, most exposed client", Value: prose.Cost(most), Note: note, Large: true},
		{Name: "Epsilon, median client", Value: prose.Cost(float64(p.MedianEpsilon))},
	}
	if central(r.Summary) { // nobody is more exposed than the others
		rows = []layout.LabelRow{{Name: "Epsilon", Value: prose.Cost(most), Note: note, Large: true}}
	}
	add := func(name string, value *event.Number, note string) { // without a value it is left out
		rows = append(rows, layout.LabelRow{Name: name, Value: prose.Optional(value, cost), Note: note})
	}
	add("Epsilon, one release", p.EpsilonPerRelease, "")
	add("Epsilon, any other update", p.EpsilonAnyUpdate, "most exposed client, if its updates of the same hypotheses were any others (epsilon_any_update)")
	add("Epsilon, another group", switched(r.Summary), "most exposed client, if it had chosen other hypotheses too (epsilon_switch)")
	if q := p.Proved; q != nil {
		add("Proved for the same releases", &q.Epsilon, layout.RelationWords(*q)+"; every epoch counts as a release of its own")
	}
	return rows
}

func radiusRow(r run) layout.LabelRow {
	row := layout.LabelRow{Name: "Radius"}
	switch {
	case r.Privacy.Radius != nil:
		row.Value, row.Note = prose.Setting(float64(*r.Privacy.Radius)), "public; updates are clipped to it"
		if len(r.Privacy.Layers) > 0 {
			row.Value, row.Note = prose.Rounded(float64(*r.Privacy.Radius)), "public, over all layers; every layer is clipped to its own"
		}
		if d := r.plan.Privacy.RadiusDecay; r.known && d != 1 {
			row.Note = fmt.Sprintf("in the first round, then multiplied by %s every round; ", prose.Setting(d)) + row.Note
		}
	case r.Privacy.Claim == event.ClaimHeuristic && r.Privacy.Unit == event.UnitNeighbourhood:
		row.Value, row.Note = "not public", "every update’s own length"
	}
	return row
}

// sanitisedRow says what gets noise of its own, where updates do.
func sanitisedRow(r run) layout.LabelRow {
	if r.Privacy.Protects != "update" {
		return layout.LabelRow{}
	}
	row := layout.LabelRow{Name: "Sanitised", Value: "every update as one vector"}
	var layers []string
	for _, l := range r.Privacy.Layers {
		words := fmt.Sprintf("layer %s: %s, epsilon %s a release", l.Name, prose.Counted(l.Parameters, "parameter", "parameters"), cost(l.EpsilonPerRelease))
		if l.Radius != nil {
			words += " at radius " + rounded(*l.Radius)
		}
		row.Value, layers = "every layer apart", append(layers, words)
	}
	row.Note = strings.Join(layers, "; ")
	return row
}

func ceilingRow(r run) layout.LabelRow {
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

var samplingWords = map[string]string{
	"uniform":  "uniform: drawn afresh every round",
	"balanced": "balanced: everybody once, in random order, before anybody again",
}
