package report

import (
	"html"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/sim"
)

var (
	elsewhere = regexp.MustCompile(`(?i)[^.\n]*\b(clients?|servers?|silos?|participants?|federations?|sent|sends)\b[^.\n]*`)
	notProse  = regexp.MustCompile(`(?s)<style.*?</style>|<pre class="config".*?</pre>|<footer.*?</footer>|<[^>]+>`)
)

// unprotectedly is centrally without noise.
func unprotectedly() sim.Result {
	r := centrally("fixed")
	inf := event.Number(math.Inf(1))
	p := &r.Privacy
	p.Protects, p.Claim, p.Trust, p.Sampling, p.Delta = "nothing", event.ClaimNone, event.TrustNobody, "full", 0
	p.Epsilon, p.MaxEpsilon, p.MedianEpsilon = inf, inf, inf
	for i := range r.History.Rounds {
		r.History.Rounds[i].Steps, r.History.Rounds[i].Epsilon = nil, nil
	}
	r.Steps, r.Participants, r.History.Clusters, r.History.Budgets = nil, nil, []sim.ClusterBudget{{Clients: 1, Median: inf, Max: inf}}, []event.Number{inf}
	return r
}

// TestOnePlaceHasNobodyElse: a page about central training alone speaks of no clients,
// silos or servers, and of nothing that is sent; beside a federated run it does.
func TestOnePlaceHasNobodyElse(t *testing.T) {
	judged := centrally("online")
	judged.Participants[0].Figures = &metrics.Figures{Accuracy: &metrics.Figure{Value: 0.9, Low: number(0.89), High: number(0.91)}}
	judged.Participants[0].Comparable = false // less than a batch: a mark would stand beside nobody's name
	for name, results := range map[string][]sim.Result{
		"learned": {judged}, "fixed": {centrally("fixed")}, "unprotected": {unprotectedly()}, "several": {centrally("online"), centrally("quantile")},
	} {
		page := render(t, name, results...)
		text := html.UnescapeString(notProse.ReplaceAllString(page, "\n"))
		for _, found := range elsewhere.FindAllString(text, -1) {
			t.Errorf("%s: %q", name, strings.TrimSpace(found))
		}
		if strings.Contains(text, "is marked *") {
			t.Errorf("%s: a mark is explained that stands nowhere", name)
		}
		if !strings.Contains(text, "All examples lay in one place.") {
			t.Errorf("%s: who saw the examples is not said", name)
		}
		if simulated := strings.Contains(text, "whoever knows the seed can take it away"); simulated != (name != "unprotected") {
			t.Errorf("%s: noise is said to be for simulation: %v", name, simulated)
		}
		for _, r := range results {
			var b strings.Builder
			if err := Table(&b, []sim.Summary{r.Summary}); err != nil {
				t.Fatal(err)
			}
			if err := Lines(&b, r.Summary); err != nil {
				t.Fatal(err)
			}
			if err := Course(&b, r); err != nil {
				t.Fatal(err)
			}
			for _, found := range append(elsewhere.FindAllString(b.String(), -1), regexp.MustCompile(`max eps|median eps`).FindAllString(b.String(), -1)...) {
				t.Errorf("%s: on a terminal: %q", name, found)
			}
		}
	}
	page := render(t, "beside", centrally("online"), made(paperShape("fedavg")))
	for _, want := range []string{"This is a simulation.", "a federation shows none of them", "a client’s total", "Largest epsilon"} {
		if !strings.Contains(page, want) {
			t.Errorf("beside a federated run the page does not say %q", want)
		}
	}
}

// TestCentralLabelNamesWhoIsTrusted: whoever holds the examples is, whoever sees any of the
// models is not.
func TestCentralLabelNamesWhoIsTrusted(t *testing.T) {
	l := newLabel(runsOf([]sim.Result{centrally("online")})[0])
	got := map[string]string{}
	for _, row := range l.Rows {
		got[row.Name] = row.Value + " | " + row.Note
	}
	for row, want := range map[string]string{
		"What is protected": "one example of those that were trained on | ",
		"From whom":         "everybody who sees a model, of the last step or of one before; not whoever holds the examples | " + string(event.TrustHolder),
	} {
		if got[row] != want {
			t.Errorf("%s: %q, want %q", row, got[row], want)
		}
	}
	unprotected := newLabel(runsOf([]sim.Result{unprotectedly()})[0])
	if want := "what it reveals about its examples to whoever sees it has no limit"; !strings.Contains(unprotected.Claim.Sentence, want) {
		t.Errorf("without noise the claim reads %q", unprotected.Claim.Sentence)
	}
}
