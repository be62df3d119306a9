package live

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/tier/browser"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/sweep"
)

// spentLedger is one with two budgets: after three releases a metric one has used 30 % of
// its ceiling at the radii, 60 % between points 1 apart and 24 % between any two data sets,
// the other nothing.
func spentLedger(t *testing.T, dir string) {
	t.Helper()
	l, err := ledger.Open(dir, ledger.Policy{Ceilings: []ledger.Ceiling{
		{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 4, Distance: 1, EpsilonSwitch: 50},
		{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 3, Delta: 1e-5},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Reconcile(ledger.Membership{Federation: "schools", Participant: "school 1", Key: ledger.Key(key.Public().(ed25519.PublicKey))}, nil))
	for round := range 3 {
		slot := ledger.Slot{Federation: "schools", Run: "20261117-144542-three-clinics-60d1572d", Round: round}
		must(l.Reserve(ledger.Charge{Slot: slot, Plan: ledger.Hash{1}, Enforcement: ledger.Enforced, Release: event.Release{
			Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Trust: event.TrustLocal,
			What: event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.5, Spread: 4},
		}}))
		must(l.Store(slot, fmt.Appendf(nil, "noised %d", round)))
		draft, err := l.Draft(slot)
		must(err)
		signed, err := ledger.Sign(draft, key)
		must(err)
		must(l.Commit(slot, signed))
	}
}

// TestBarsAreWhatTheySay: every number that a ceiling bounds has a bar of its own, as long as
// its figures say; the list shows the one that is most used, and names it.
func TestBarsAreWhatTheySay(t *testing.T) {
	dir := t.TempDir()
	spentLedger(t, filepath.Join(dir, "own"))
	f := folderOf(t, dir)
	_, text := view(t, f, "")
	wants(t, text, "epsilon 1.2 of 4 (metric, unit neighbourhood", "epsilon 0 of 3 (proved, unit example",
		"most used: neighbourhood, metric, between two points 1 apart: 2.4 of 4", `aria-label="60 % of the ceiling used"`)
	_, text = view(t, f, "at=own")
	text = text[strings.Index(text, "Budgets"):]
	for _, bar := range []string{
		"at the radii|1.2 of 4|30 %|30.00", "between two points 1 apart|2.4 of 4|60 %|60.00", "between any two data sets|12 of 50|24 %|24.00",
		"epsilon, by the accountant|0 of 3|0 %|0.00", "by the filter, which decides|0.0 %|0 %|0.00",
	} {
		_, rest, found := strings.Cut(text, "<span>"+strings.Split(bar, "|")[0]+"</span>")
		one, _, _ := strings.Cut(rest, "</svg>")
		if !found {
			t.Errorf("there is no bar %q", bar)
		}
		v := strings.Split(bar, "|")
		wants(t, one, "<span>"+v[1]+"</span>", `aria-label="`+v[2]+` of the ceiling used"`, `class="part-done" width="`+v[3]+`"`)
	}
	wants(t, text, "3 releases; participant adds the noise; the server is not trusted")
}

// sweptFolder is a finished sweep of four settings with intervals.
func sweptFolder(t *testing.T, dir string) {
	t.Helper()
	work := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(work, "run.yaml"), fmt.Appendf(nil, runText, "swept", 5), 0o600),
		os.WriteFile(filepath.Join(work, "grid.yaml"), []byte("run: run.yaml\nseeds: 2\ngrid:\n  algorithm.local.step: [0.05, 0.1]\n  algorithm.hypotheses: [1, 2]\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	plan, err := sweep.Load(filepath.Join(work, "grid.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Run(t.Context(), sweep.Options{Folder: data.NewFolder(""), Out: dir, Workers: 1, Tick: func(int, int) {}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sweep.ResultFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTablesOnATelephone: bars and tables of a participant's own page, and of a sweep, fit
// and can be read, by day and by night, and what matters is seen without moving a table.
func TestTablesOnATelephone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spentLedger(t, filepath.Join(dir, "own"))
	sweptFolder(t, filepath.Join(dir, "swept"))
	door := NewDoor(NewToken(), New(folderOf(t, dir), "test"))
	at, end := open(t, door, "127.0.0.1:0")
	defer end()
	p := browser.OpenFor(t, "http://"+at)
	p.Do(t, chromedp.Navigate(door.Address(at)), chromedp.WaitReady("#list-ledger"), chromedp.EmulateViewport(390, 844))
	for _, c := range []struct{ place, part, heads string }{
		{"own", "releases", "Reserved,Round,State,Receipt"}, {"swept", "points", "Setting,Runs,Mean loss"},
	} {
		p.Do(t, chromedp.Navigate("http://"+at+door.folder+"/?at="+c.place), chromedp.WaitReady("#"+c.part))
		for _, scheme := range []string{"light", "dark"} {
			fits(t, p, scheme)
		}
		seen := browser.Evaluate[[]string](t, p, `[...document.querySelectorAll("#`+c.part+` thead th")].filter((e) => e.getBoundingClientRect().right <= 390).map((e) => e.textContent)`)
		if strings.Join(seen, ",") != c.heads {
			t.Errorf("%s: a telephone shows %v, want %s", c.place, seen, c.heads)
		}
		if c.place != "own" {
			continue
		}
		wide := browser.Evaluate[[]float64](t, p, `[...document.querySelectorAll("#budgets .meter")].map((e) => e.querySelector(".part-done").getBoundingClientRect().width / e.getBoundingClientRect().width)`)
		for i, want := range []float64{0, 0, 0.3, 0.6, 0.24} {
			if len(wide) != 5 || wide[i] < want-0.01 || wide[i] > want+0.01 {
				t.Fatalf("bars are drawn as %v", wide)
			}
		}
	}
	if err := p.Faults(); err != nil {
		t.Error(err)
	}
}
