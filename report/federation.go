package report

import (
	"bytes"
	_ "embed" // the page is part of the binary
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed federation.gohtml
var federationText string

var federationTemplate = template.Must(template.Must(pageTemplate.Clone()).New("federation").Parse(federationText))

// federationPage is all that the federation's template shows.
type federationPage struct {
	Title, Lead string
	Style       template.CSS
	Single      bool // one privacy label
	Outcome     []outcome
	People      []personRow
	Strangers   bool // somebody sent other bytes for a slot that was taken
	Attested    bool // somebody's trainer is taken at its word
	Labels      []label
	Rounds      []roundRow
	RoundsOpen  bool
	RoundsNote  string
	Run         runNote
}

// outcome is one figure of the run, with what it means.
type outcome struct{ Name, Value, Note string }

type personRow struct {
	Name                                          string
	Released, Declined, Missed, Receipts, Doubles string
	Epsilon, Switch, Delta, Terms, Noise          string
	Claim                                         claim
	Spent                                         bool
}

type roundRow struct{ Round, Status, Asked, Released, Declined, Missed, Took, Reason string }

// LoadFederation reads the result that a federation's server left.
func LoadFederation(dir string) (federation.ServeResult, error) {
	return load[federation.ServeResult](dir)
}

// FederationHTML writes the report of a federation's run.
func FederationHTML(w io.Writer, r federation.ServeResult) error {
	var page bytes.Buffer
	if err := federationTemplate.Execute(&page, newFederationPage(r)); err != nil {
		return fmt.Errorf("report: filling the page: %w", err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

// FederationPage writes the report of a federation's run to a file.
func FederationPage(path string, r federation.ServeResult) error {
	var page bytes.Buffer
	if err := FederationHTML(&page, r); err != nil {
		return err
	}
	return sim.WriteFile(path, page.Bytes())
}

func newFederationPage(r federation.ServeResult) federationPage {
	p := federationPage{Title: r.Name, Style: template.CSS(styleText), Labels: federationLabels(r), Run: federationNote(r)}
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
	p.Lead = fmt.Sprintf("A federation of %s: %s of %s, %s released.", counted(len(r.Participants), "participant", "participants"),
		counted(r.Rounds, "round", "rounds"), federationMethod(r), spelled(released, len(r.Participants)))
	p.Outcome = []outcome{
		{"Rounds aggregated", count(closed), fmt.Sprintf("of %s; each needs %s", count(r.Rounds), counted(r.Minimum, "release", "releases"))},
		{"Rounds abandoned", count(r.Abandoned), "with too few releases; what they cost stays spent"},
		endOf(r.Stopped),
		{"Models", count(r.Hypotheses), fmt.Sprintf("of %s", counted(r.Parameters, "parameter", "parameters"))},
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

// federationMethod is the method's name for readers.
func federationMethod(r federation.ServeResult) string {
	if name, ok := siloMethods[r.Algorithm]; ok {
		return name
	}
	return r.Algorithm
}

func spelled(n, all int) string {
	switch {
	case n == all && all > 1:
		return "all of them"
	case n == 0:
		return "nobody"
	}
	return count(n) + " of them"
}

// endOf says why a run ended.
func endOf(stopped string) outcome {
	switch stopped {
	case federation.StoppedRounds:
		return outcome{"Ended", "as planned", "all rounds of the plan were made"}
	case federation.StoppedBudget:
		return outcome{"Ended", "early", "so many have declined the rest that no further round could succeed"}
	}
	return outcome{"Ended", stopped, ""}
}

func newPersonRow(x federation.ServeParticipant) personRow {
	row := personRow{
		Name: x.Name, Released: count(x.Released), Declined: count(x.Declined), Missed: count(x.Missed),
		Receipts: count(x.Receipts), Doubles: count(x.Equivocations), Noise: "the program",
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
	row.Spent, row.Epsilon, row.Delta = true, cost(float64(s.Epsilon)), rounded(float64(s.Delta))
	row.Terms = fmt.Sprintf("unit %s, relation %s, noise by the %s", s.Unit, s.Relation, noiseOf(s.Trust))
	if s.Trust == event.TrustNobody {
		row.Terms = fmt.Sprintf("unit %s, relation %s, no noise", s.Unit, s.Relation)
	}
	row.Claim = statementClaim(s)
	if s.EpsilonSwitch != nil {
		row.Switch = "any two data sets: " + cost(float64(*s.EpsilonSwitch))
	}
	return row
}

// noiseOf says in a word who adds the noise.
func noiseOf(t event.Trust) string {
	switch t {
	case event.TrustLocal:
		return "participant"
	case event.TrustServer:
		return "server"
	case event.TrustNobody:
		return "nobody"
	}
	return string(t)
}

func statementClaim(s event.Statement) claim {
	return claimOf(sim.Result{Summary: sim.Summary{Privacy: fl.Privacy{Statement: s}}})
}

// federationLabels are one privacy label for all participants on the same terms.
func federationLabels(r federation.ServeResult) []label {
	var labels []label
	var terms []string
	var names [][]string
	var most []event.Statement
	for _, x := range r.Participants {
		if x.Spent == nil {
			continue
		}
		s := *x.Spent
		key := fmt.Sprint(s.Claim, s.Unit, s.Relation, s.Trust, s.Delta, radiusText(s), s.NotCovered)
		at := -1
		for i, known := range terms {
			if known == key {
				at = i
			}
		}
		if at < 0 {
			at = len(terms)
			terms, names, most = append(terms, key), append(names, nil), append(most, s)
		}
		names[at] = append(names[at], x.Name)
		if s.Epsilon > most[at].Epsilon {
			most[at] = s
		}
	}
	for i, s := range most {
		l := label{Method: counted(len(names[i]), "participant", "participants"), Claim: statementClaim(s), NotCovered: s.NotCovered}
		l.Rows = []labelRow{
			{Name: "Epsilon, most exposed participant", Value: cost(float64(s.Epsilon)), Note: "by its own ledger, for this federation", Large: true},
			{Name: "Between any two data sets", Value: switchText(s), Note: "whatever radius and hypotheses the server chose"},
			{Name: "Delta", Value: rounded(float64(s.Delta))},
			{Name: "What is protected", Value: protects(s)},
			{Name: "From whom", Value: fromWhom(s), Note: string(s.Trust)},
			{Name: "Unit", Value: unitWords(s)},
			{Name: "Relation", Value: relationWords(s)},
			{Name: "Radius", Value: radiusText(s)},
			{Name: "Sampling", Value: s.Sampling},
			{Name: "Who", Value: named(names[i])},
		}
		labels = append(labels, l)
	}
	return labels
}

// switchText is what any two data sets may lose; empty where that is not another number.
func switchText(s event.Statement) string {
	if s.EpsilonSwitch == nil {
		return ""
	}
	return cost(float64(*s.EpsilonSwitch))
}

func radiusText(s event.Statement) string {
	if s.Radius == nil {
		return "none that is public"
	}
	return rounded(float64(*s.Radius))
}

// mostNamed keeps a label readable in a federation of thousands.
const mostNamed = 12

func named(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %s more", strings.Join(names[:mostNamed], ", "), count(len(names)-mostNamed))
	}
	return joined(names)
}

func newRoundRow(h federation.ServeRound) roundRow {
	row := roundRow{
		Round: count(h.Round), Status: h.Status, Asked: count(h.Asked), Released: count(h.Released),
		Declined: count(h.Declined), Missed: count(h.Missed), Took: unknown, Reason: h.Reason,
	}
	if took := h.Ended.Sub(h.Opened); took >= 0 && took < 365*24*time.Hour {
		row.Took = rounded(took.Seconds()) + " s"
	}
	return row
}

func federationNote(r federation.ServeResult) runNote {
	return runNote{Method: r.Name, Config: r.Config, Facts: []fact{
		{"Run", r.RunID, true},
		{"Federation", r.Federation, true},
		{"Plan, SHA-256", r.PlanSHA256, true},
		{"Models, SHA-256", r.ModelSHA256, true},
		{"Configuration, SHA-256", r.ConfigSHA256, true},
		{"Seed", fmt.Sprint(r.Seed), true},
		{"Kernel", r.Kernel, true},
	}}
}
