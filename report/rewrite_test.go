package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/sim"
)

// served is what the server of a small federation might have left.
func served() server.Result {
	radius := event.Number(0.3)
	change := event.Number(31.5)
	spent := func(epsilon float64) *event.Statement {
		return &event.Statement{
			Claim: event.ClaimMetric, Unit: event.UnitNeighbourhood, Relation: event.Metric, Trust: event.TrustLocal,
			Epsilon: event.Number(epsilon), EpsilonSwitch: &change, Sampling: "none", Radius: &radius, NotCovered: []string{"which rounds a participant answers"},
		}
	}
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	r := server.Result{
		Family: server.Family, Federation: "0f1e2d3c4b5a69788796a5b4c3d2e1f0", RunID: "20261115-120000-clinics-1a2b3c4d", Name: "clinics",
		Algorithm: "group-private", Mode: "sound", Seed: 7, Hypotheses: 2, Parameters: 11, Quorum: 3, Minimum: 1,
		Finished: server.Finished{Rounds: 5, Abandoned: 1, Stopped: server.StoppedRounds, ModelSHA256: strings.Repeat("ab", 32)},
		Participants: []server.ParticipantRecord{
			{Name: "north", Released: 4, Missed: 1, Receipts: 4, Spent: spent(2.0004), Enforcement: ledger.Enforced},
			{Name: "south", Released: 2, Declined: 3, Receipts: 2, Spent: spent(0.8002), Enforcement: ledger.Enforced},
			{Name: "<west>", Missed: 5},
		},
		ConfigSHA256: strings.Repeat("cd", 32), PlanSHA256: strings.Repeat("ef", 32), Kernel: "avx2", Config: "name: clinics\n",
	}
	for i := range 5 {
		h := server.RoundRecord{
			Round: i + 1, Status: "closed", Asked: 3, Released: 2, Missed: 1,
			Opened: start.Add(time.Duration(i) * time.Minute), Ended: start.Add(time.Duration(i)*time.Minute + 42*time.Second),
		}
		if i >= 2 {
			h.Declined, h.Released = 1, 1
		}
		if i == 4 {
			h.Status, h.Released, h.Missed, h.Reason = "abandoned", 0, 2, "0 of 3 participants released; the minimum is 1"
		}
		r.History = append(r.History, h)
	}
	return r
}

func folder(t *testing.T, result any) string {
	t.Helper()
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sim.ResultFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// words are what a reader sees of a page, with single blanks.
func words(t *testing.T, page []byte) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode && (n.Data == "style" || n.Data == "script") {
			return
		}
		if n.Type == html.TextNode {
			out = append(out, strings.Fields(n.Data)...)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return strings.Join(out, " ")
}

// TestFederationIsReportedAsOne: its report tells who released how often, what each says
// it has spent and on which terms, and never that it was a simulation.
func TestFederationIsReportedAsOne(t *testing.T) {
	whole := served()
	older := served() // as it was written before results said what they are
	older.Family, older.Federation, older.History, older.Config = "", "", nil, ""
	for name, r := range map[string]server.Result{"now": whole, "before": older} {
		dir := folder(t, r)
		path := filepath.Join(dir, sim.ReportFile)
		if err := Rewrite(path, []string{dir}); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := words(t, page)
		for _, want := range []string{
			"A federation of 3 participants: 5 rounds of group-private, 2 of them released.",
			"north 4 0 1 4 2.001 any two data sets: 31.5 0 metric unit neighbourhood, relation metric, noise by the participant", // an epsilon is rounded up
			"south 2 3 0 2 0.8002 any two data sets: 31.5 0 metric unit neighbourhood, relation metric, noise by the participant",
			"<west> 0 0 5 0 nothing was released",
			"Rounds aggregated 4 of 5; each needs 1 release", "Rounds abandoned 1", "Ended as planned",
			"Epsilon, most exposed participant 2.001", "which rounds a participant answers", "Radius 0.3",
			strings.Repeat("ab", 32), strings.Repeat("ef", 32), strings.Repeat("cd", 32),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the report does not say %q:\n%s", name, want, text)
			}
		}
		if name == "now" && !strings.Contains(text, "5 abandoned 3 0 1 2 42 s 0 of 3 participants released; the minimum is 1") {
			t.Errorf("the report does not tell the rounds:\n%s", text)
		}
		for _, wrong := range []string{"simulation", "0 clients", "Run it again"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s: the report says %q", name, wrong)
			}
		}
	}
}

// TestForeignFoldersAreRefused: what is no result of ours gets no report.
func TestForeignFoldersAreRefused(t *testing.T) {
	fed, group := folder(t, served()), folder(t, made(paperShape("ifca")))
	for name, dirs := range map[string][]string{
		"nothing there": {t.TempDir()}, "another program's": {folder(t, map[string]any{"score": 1})}, "a list": {folder(t, []int{1})},
		"half a federation": {folder(t, map[string]any{"family": "federation"})},
		"two federations":   {fed, fed}, "a simulation beside it": {group, fed},
	} {
		path := filepath.Join(t.TempDir(), "report.html")
		if err := Rewrite(path, dirs); err == nil {
			t.Errorf("%s: a report was written", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was left", name)
		}
	}
}
