package study

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// What differs is told before everything else, each row with its reason, one reason once.
func TestWhatDiffersComesFirst(t *testing.T) {
	n := func(v float64) *event.Number { x := event.Number(v); return &x }
	row := func(label string, v Verdict, why string) Row {
		return Row{Section: "Table 1", Label: label, Metric: "error", Paper: n(3), Measured: n(4), Low: n(3.5), High: n(4.5), Verdict: v, Why: why}
	}
	s := Study{ID: "x", Title: "x", Paper: "a paper", Scale: "quick", Seeds: 3, Rows: []Row{
		row("same", Agrees, ""), row("one", Differs, "because of A, tested by B"), row("two", Differs, ""), row("three", Differs, "because of A, tested by B"),
	}}
	var page bytes.Buffer
	if err := HTML(&page, s); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	at := func(words string) int { return strings.Index(text, words) }
	if at("What differs, and why") < 0 || at("What differs, and why") > at(`id="section-1"`) {
		t.Error("what differs is not told first")
	}
	if n := strings.Count(text, "because of A, tested by B"); n != 1 || !strings.Contains(text, noReason) {
		t.Errorf("a reason stands there %d times", n)
	}
	for _, label := range []string{"one", "two", "three"} {
		if !strings.Contains(text, "<strong>Table 1: "+label+", error</strong>: the paper has 3; ours is 4") {
			t.Errorf("%s is not listed", label)
		}
	}
	if strings.Contains(text, "<strong>Table 1: same") {
		t.Error("what agrees is listed among what differs")
	}
	var terminal bytes.Buffer
	if err := Table(&terminal, s); err != nil || !strings.Contains(terminal.String(), "What differs, and why") {
		t.Errorf("terminal: %v", err)
	}
}
