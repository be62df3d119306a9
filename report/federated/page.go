// Package federated makes the page of a federation's run: what its server knows.
package federated

import (
	"bytes"
	"cmp"
	_ "embed" // the page is part of the binary
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = layout.Parse(pageText)

// page is all that the federation's template shows.
type page struct {
	Title, Lead string
	Single      bool // one privacy label
	Outcome     []outcome
	People      []personRow
	Strangers   bool // somebody sent other bytes for a slot that was taken
	Attested    bool // somebody's trainer is taken at its word
	Labels      []layout.Label
	Rounds      []roundRow
	RoundsOpen  bool
	RoundsNote  string
	Facts       []layout.Fact
	Config      string
}

// outcome is one figure of the run, with what it means.
type outcome struct{ Name, Value, Note string }

type personRow struct {
	Name                                          string
	Released, Declined, Missed, Receipts, Doubles string
	Epsilon, Switch, Delta, Terms, Noise          string
	Claim                                         layout.Badge
	Spent                                         bool
}

type roundRow struct{ Round, Status, Asked, Released, Declined, Missed, Took, Reason string }

// WritePage writes the report of a federation's run to a file.
func WritePage(path string, r server.Result) error {
	var page bytes.Buffer
	if err := layout.Write(&page, pageTemplate, newPage(r)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return sim.WriteFile(path, page.Bytes())
}

func newPage(r server.Result) page {
	p := page{Title: r.Name, Labels: labelsOf(r), Facts: factsOf(r), Config: r.Config}
	p.Single = len(p.Labels) == 1
	released := 0
	for _, person := range r.Participants {
		p.People = append(p.People, newPersonRow(person))
		p.Strangers = p.Strangers || person.Equivocations > 0
		p.Attested = p.Attested || person.Enforcement == ledger.Attested
		if person.Released > 0 {
			released++
		}
	}
	closed := r.Rounds - r.Abandoned
	p.Lead = fmt.Sprintf("A federation of %s: %s of %s, %s released.", prose.Counted(len(r.Participants), "participant", "participants"),
		prose.Counted(r.Rounds, "round", "rounds"), prose.Method(r.Algorithm), spelled(released, len(r.Participants)))
	p.Outcome = []outcome{
		{"Rounds aggregated", prose.Count(closed), fmt.Sprintf("of %s; each needs %s", prose.Count(r.Rounds), prose.Counted(r.Minimum, "release", "releases"))},
		{"Rounds abandoned", prose.Count(r.Abandoned), "with too few releases; what they cost stays spent"},
		endOf(r.Stopped),
		{"Models", prose.Count(r.Hypotheses), fmt.Sprintf("of %s", prose.Counted(r.Parameters, "parameter", "parameters"))},
	}
	if r.Evaluation != nil {
		p.Outcome = append(p.Outcome, evaluationOf(*r.Evaluation)...)
	}
	for _, h := range r.History {
		p.Rounds = append(p.Rounds, newRoundRow(h))
	}
	p.RoundsOpen = len(p.Rounds) <= 20
	if len(p.Rounds) == 0 {
		p.RoundsNote = "This result was written by an earlier version, which did not keep them."
	}
	return p
}

func spelled(n, all int) string {
	switch {
	case n == all && all > 1:
		return "all of them"
	case n == 0:
		return "nobody"
	}
	return prose.Count(n) + " of them"
}

// endOf says why a run ended.
func endOf(stopped string) outcome {
	switch stopped {
	case server.StoppedRounds:
		return outcome{"Ended", "as planned", "all rounds of the plan were made"}
	case server.StoppedBudget:
		return outcome{"Ended", "early", "so many have declined the rest that no further round could succeed"}
	}
	return outcome{"Ended", stopped, ""}
}

// evaluationOf are the figures of noised counts.
func evaluationOf(f evaluate.Figures) (out []outcome) {
	if f.Reason != "" {
		return []outcome{{"Evaluation", "no figures", f.Reason}}
	}
	for _, one := range []struct {
		name  string
		value *evaluate.Noised
	}{{"Accuracy", f.Accuracy}, {"AUC", f.AUC}, {"RMSE", f.RMSE}, {"MAE", f.MAE}, {"R2", f.R2}} {
		if one.value != nil {
			out = append(out, outcome{one.name, prose.Rounded(float64(one.value.Value)), fmt.Sprintf(
				"on held-out examples of %s, from noised counts: the noise alone has a standard deviation of %s",
				prose.Counted(f.Participants, "participant", "participants"), prose.Rounded(float64(one.value.NoiseSD)))})
		}
	}
	return out
}

func newPersonRow(x server.ParticipantRecord) personRow {
	row := personRow{
		Name: x.Name, Released: prose.Count(x.Released), Declined: prose.Count(x.Declined), Missed: prose.Count(x.Missed),
		Receipts: prose.Count(x.Receipts), Doubles: prose.Count(x.Equivocations), Noise: "the program",
	}
	switch {
	case x.Enforcement == ledger.Attested:
		row.Noise = "its trainer, by its word"
	case x.Enforcement == "":
		row.Noise = "not told"
	}
	if x.Spent == nil {
		row.Noise = ""
		return row
	}
	s := *x.Spent
	row.Spent, row.Epsilon, row.Delta = true, prose.Cost(float64(s.Epsilon)), prose.Rounded(float64(s.Delta))
	row.Terms = fmt.Sprintf("unit %s, relation %s, noise by the %s", s.Unit, s.Relation, cmp.Or(noiseOf[s.Trust], string(s.Trust)))
	if s.Trust == event.TrustNobody {
		row.Terms = fmt.Sprintf("unit %s, relation %s, no noise", s.Unit, s.Relation)
	}
	row.Claim = layout.ClaimOf(s)
	if s.EpsilonSwitch != nil {
		row.Switch = "any two data sets: " + cost(*s.EpsilonSwitch)
	}
	return row
}

// noiseOf says in a word who adds the noise.
var noiseOf = map[event.Trust]string{event.TrustLocal: "participant", event.TrustServer: "server"}

// labelsOf are one privacy label for all participants on the same terms.
func labelsOf(r server.Result) (labels []layout.Label) {
	type group struct {
		terms string
		names []string
		most  event.Statement // of the one that has spent most
	}
	var groups []group
	for _, x := range r.Participants {
		if x.Spent == nil {
			continue
		}
		s := *x.Spent
		terms := fmt.Sprint(s.Claim, s.Unit, s.Relation, s.Trust, s.Delta, radiusText(s), s.NotCovered)
		at := slices.IndexFunc(groups, func(g group) bool { return g.terms == terms })
		if at < 0 {
			at, groups = len(groups), append(groups, group{terms: terms, most: s})
		}
		g := &groups[at]
		if g.names = append(g.names, x.Name); s.Epsilon > g.most.Epsilon {
			g.most = s
		}
	}
	for _, g := range groups {
		s := g.most
		l := layout.Label{Method: prose.Counted(len(g.names), "participant", "participants"), Claim: layout.ClaimOf(s), NotCovered: s.NotCovered,
			Unnamed: "The receipts name nothing. Read docs/sharp-edges.md."}
		l.Rows = []layout.LabelRow{
			{Name: "Epsilon, most exposed participant", Value: prose.Cost(float64(s.Epsilon)), Note: "by its own ledger, for this federation", Large: true},
			{Name: "Between any two data sets", Value: prose.Optional(s.EpsilonSwitch, cost), Note: "whatever radius and hypotheses the server chose"},
			{Name: "Delta", Value: prose.Rounded(float64(s.Delta))},
			{Name: "What is protected", Value: layout.Protects(s)},
			{Name: "From whom", Value: layout.FromWhom(s), Note: string(s.Trust)},
			{Name: "Unit", Value: layout.UnitWords(s)},
			{Name: "Relation", Value: layout.RelationWords(s)},
			{Name: "Radius", Value: radiusText(s)},
			{Name: "Sampling", Value: s.Sampling},
			{Name: "Who", Value: named(g.names)},
		}
		labels = append(labels, l)
	}
	return labels
}

func cost(n event.Number) string { return prose.Cost(float64(n)) }

func radiusText(s event.Statement) string {
	if s.Radius == nil {
		return "none that is public"
	}
	return prose.Rounded(float64(*s.Radius))
}

// mostNamed keeps a label readable in a federation of thousands.
const mostNamed = 12

func named(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %s more", strings.Join(names[:mostNamed], ", "), prose.Count(len(names)-mostNamed))
	}
	return prose.Joined(names)
}

func newRoundRow(h server.RoundRecord) roundRow {
	row := roundRow{
		Round: prose.Count(h.Round), Status: h.Status, Asked: prose.Count(h.Asked), Released: prose.Count(h.Released),
		Declined: prose.Count(h.Declined), Missed: prose.Count(h.Missed), Took: prose.Unknown, Reason: h.Reason,
	}
	if h.Evaluation {
		row.Round = "evaluation"
	}
	if took := h.Ended.Sub(h.Opened); took >= 0 && took < 365*24*time.Hour {
		row.Took = prose.Rounded(took.Seconds()) + " s"
	}
	return row
}

func factsOf(r server.Result) []layout.Fact {
	return []layout.Fact{
		{Name: "Run", Value: r.RunID, Code: true},
		{Name: "Federation", Value: r.Federation, Code: true},
		{Name: "Plan, SHA-256", Value: r.PlanSHA256, Code: true},
		{Name: "Models, SHA-256", Value: r.ModelSHA256, Code: true},
		{Name: "Configuration, SHA-256", Value: r.ConfigSHA256, Code: true},
		{Name: "Seed", Value: fmt.Sprint(r.Seed), Code: true},
		{Name: "Kernel", Value: r.Kernel, Code: true},
	}
}
