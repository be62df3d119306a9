package main

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
)

// makeLedger is a folder with three releases, one of them not acknowledged.
func makeLedger(t *testing.T) (dir string, key ledger.Key) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "my-ledger")
	l, err := ledger.Open(dir, ledger.Policy{Ceilings: []ledger.Ceiling{
		{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 4, Distance: 1, EpsilonSwitch: 50},
		{Unit: event.UnitClient, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustServer, Epsilon: 6, Delta: 1e-5},
		{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 3, Delta: 1e-5},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key = ledger.Key(private.Public().(ed25519.PublicKey))
	if err := l.Reconcile(ledger.Membership{Federation: "schools", Participant: "school 1", Key: key}, nil); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		slot := ledger.Slot{Federation: "schools", Run: "spring", Round: round}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(l.Reserve(ledger.Charge{Slot: slot, Plan: ledger.Hash{1}, Enforcement: ledger.Enforced, Release: event.Release{
			Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Trust: event.TrustLocal,
			What: event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.5, Spread: 4},
		}}))
		must(l.Store(slot, fmt.Appendf(nil, "noised %d", round)))
		if round == 2 {
			break
		}
		draft, err := l.Draft(slot)
		must(err)
		signed, err := ledger.Sign(draft, private)
		must(err)
		must(l.Commit(slot, signed))
	}
	return dir, key
}

func TestLedgerShow(t *testing.T) {
	dir, _ := makeLedger(t)
	text, _, code := coterie(t, "ledger", "show", dir, "--slots")
	for _, want := range []string{
		"neighbourhood, metric, metric\n  epsilon_switch 12 of 50 between any two data sets (24.0 %)\n  epsilon 1.2 of 4 at the radii (30.0 %)\n  epsilon 2.4 of 4 between two points 1 apart (60.0 %)\n",
		"trust: server adds the noise; the server is trusted", "trust: participant adds the noise; the server is not trusted",
		"neighbourhood, metric, metric, participant",
		"3 releases, all of them spent: 2 committed, 1 stored, 0 reserved, 0 abandoned",
		"example, add-remove, proved\n  epsilon 0 of 3 at delta 1e-05, by the accountant (0.0 %)\n  the renyi filter, which decides, has spent 0 of ", "no releases", "spring",
		"group membership",
	} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, text)
		}
	}
	shown := runJSON(t, "ledger", "show", dir, "--output", "json")
	budget := shown["budgets"].([]any)[2].(map[string]any)
	for _, key := range []string{"claim", "unit", "relation", "trust", "epsilon", "delta", "sampling", "radius", "not_covered",
		"ceiling", "used", "filter", "filter_spent", "filter_budget", "filter_order", "over", "releases", "reserved", "stored", "committed", "abandoned", "attested", "amended", "distance", "epsilon_at_distance", "epsilon_switch", "ceiling_switch"} {
		if _, ok := budget[key]; !ok {
			t.Errorf("no key %q in %v", key, budget)
		}
	}
}

// TestLedgerSaysWhatIsNotThere: a folder without a ledger, and a ledger without receipts.
func TestLedgerSaysWhatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{"show", "receipts", "verify"} {
		if _, stderr, code := coterie(t, "ledger", command, dir); code != exitUsage || !strings.Contains(stderr, "holds no ledger: give the folder that a join file names under ledger") {
			t.Errorf("%s: exit %d, %s", command, code, stderr)
		}
	}
	dir = filepath.Join(dir, "new")
	l, err := ledger.Open(dir, ledger.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if stdout, stderr, code := coterie(t, "ledger", "receipts", dir); code != 0 || !strings.Contains(stdout, "no receipts: no server has acknowledged") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// shownShare is a line of `ledger show` that ends with a percentage.
var shownShare = regexp.MustCompile(`([0-9.e+-]+) of ([0-9.e+-]+)\b[^(\n]*\(([0-9.]+) %\)`)

// TestLedgerShowCanBeRecomputed: every percentage is that of the two figures before it, in
// the text and in JSON, for both filters and for metric releases, and grows with the
// releases.
func TestLedgerShowCanBeRecomputed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-ledger")
	l, err := ledger.Open(dir, ledger.Policy{Ceilings: []ledger.Ceiling{
		{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 4, Distance: 1, EpsilonSwitch: 90},
		{Unit: event.UnitClient, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 6, Delta: 1e-6, Filter: ledger.FilterZCDP},
		{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 3, Delta: 1e-5},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Reconcile(ledger.Membership{Federation: "schools", Participant: "school 1", Key: ledger.Key{1}}, nil); err != nil {
		t.Fatal(err)
	}
	before := make([]float64, 3)
	for round := range 4 {
		for i, r := range []event.Release{
			{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, What: event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.5, Spread: 4}},
			{Unit: event.UnitClient, Relation: event.AddRemove, Claim: event.ClaimProved, What: event.Gaussian{Noise: 4}},
			{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, What: event.Repeated{Times: 30, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.1, Of: event.Gaussian{Noise: 2}}}},
		} {
			r.Trust = event.TrustLocal
			if err := l.Reserve(ledger.Charge{Slot: ledger.Slot{Federation: "schools", Run: fmt.Sprint(i), Round: round}, Plan: ledger.Hash{1}, Enforcement: ledger.Enforced, Release: r}); err != nil {
				t.Fatal(err)
			}
		}
		text, _, _ := coterie(t, "ledger", "show", dir)
		lines := shownShare.FindAllStringSubmatch(text, -1)
		if len(lines) != 3+2+2 {
			t.Fatalf("%d percentages in\n%s", len(lines), text)
		}
		for _, m := range lines {
			spent, most, percent := figureIn(t, m[1]), figureIn(t, m[2]), figureIn(t, m[3])
			if math.Abs(100*spent/most-percent) > 0.051 || !(percent > 0 && percent <= 100) {
				t.Errorf("%s: that is %.2f %%", m[0], 100*spent/most)
			}
		}
		for i, b := range runJSON(t, "ledger", "show", dir, "--output", "json")["budgets"].([]any) {
			b := b.(map[string]any)
			at := func(key string) float64 { return b[key].(float64) }
			want := at("filter_spent") / at("filter_budget")
			if b["relation"] == "metric" {
				want = max(at("epsilon")/at("ceiling"), at("epsilon_at_distance")/at("ceiling"), at("epsilon_switch")/at("ceiling_switch"))
			}
			if math.Abs(at("used")-want) > 1e-12 || !(want > before[i]) || b["over"] != false {
				t.Errorf("%v: used %v, the figures beside it say %v, before it was %v", b["unit"], at("used"), want, before[i])
			}
			before[i] = want
		}
	}
}

func figureIn(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestLedgerReceiptsVerifyOffline(t *testing.T) {
	dir, key := makeLedger(t)
	out := filepath.Join(t.TempDir(), "receipts")
	if _, stderr, code := coterie(t, "ledger", "receipts", dir, "--out", out); code != 0 {
		t.Fatal(stderr)
	}
	lines, _, _ := coterie(t, "ledger", "receipts", dir, "--output", "json")
	if strings.Count(lines, "\n") != 2 {
		t.Errorf("want two receipts:\n%s", lines)
	}
	file := filepath.Join(out, "schools-000002.json")
	if err := os.Rename(dir, dir+"-elsewhere"); err != nil { // offline: the receipt alone
		t.Fatal(err)
	}
	v := runJSON(t, "ledger", "verify", file, "--key", key.String(), "--output", "json")
	if v["valid"] != true || v["key_is_known"] != true || v["in_the_ledger"] != false {
		t.Errorf("%v", v)
	}
	v = runJSON(t, "ledger", "verify", file, "--ledger", dir+"-elsewhere", "--output", "json")
	if v["in_the_ledger"] != true {
		t.Errorf("%v", v)
	}
	text, _, code := coterie(t, "ledger", "verify", file)
	for _, want := range []string{"compare it with the server's", "trust        participant adds the noise", "epsilon_switch 8 between any two data sets, epsilon 0.8 at the radii"} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, text)
		}
	}

	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"another epsilon": strings.Replace(string(good), `"epsilon": 0.8`, `"epsilon": 0.1`, 1),
		"attested":        strings.Replace(string(good), `"enforced"`, `"attested"`, 1),
		"another key":     strings.Replace(string(good), `"version": 1`, `"versions": 1`, 1),
		"not JSON":        "receipt",
	} {
		if bad == string(good) {
			t.Fatalf("%s changes nothing", name)
		}
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := coterie(t, "ledger", "verify", file); code != 1 || !strings.Contains(stderr, "not a valid receipt") {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
}

func TestLedgerVerify(t *testing.T) {
	dir, _ := makeLedger(t)
	v := runJSON(t, "ledger", "verify", dir, "--output", "json")
	if v["valid"] != true || v["receipts"] != 2.0 || v["complete"] != "unknown" || v["torn_bytes"] != 0.0 || v["cuts"] != 0.0 {
		t.Errorf("%v", v)
	}
	path := filepath.Join(dir, "ledger.log")
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A log that was cut in a record says so; one that was cut behind a record is found
	// out by its witness.
	witness := filepath.Join(t.TempDir(), "witness")
	if _, stderr, code := coterie(t, "ledger", "witness", dir, witness); code != 0 {
		t.Fatal(stderr)
	}
	if v := runJSON(t, "ledger", "verify", dir, "--witness", witness, "--output", "json"); v["complete"] != "witnessed" {
		t.Errorf("%v", v)
	}
	if err := os.WriteFile(path, log[:len(log)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if v := runJSON(t, "ledger", "verify", dir, "--output", "json"); v["torn_bytes"].(float64) < 100 || v["complete"] != "unknown" {
		t.Errorf("a cut log: %v", v)
	}
	if text, _, _ := coterie(t, "ledger", "verify", dir); !strings.Contains(text, "no whole record") {
		t.Error(text)
	}
	if text, _, _ := coterie(t, "ledger", "show", dir); !strings.Contains(text, "no whole record") {
		t.Error(text)
	}
	if _, stderr, code := coterie(t, "ledger", "verify", dir, "--witness", witness); code != 1 || !strings.Contains(stderr, "older than what was seen of it") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if l, err := ledger.Open(dir, ledger.Policy{}); err != nil { // cuts the rest off, and remembers it
		t.Error(err)
	} else if err := l.Close(); err != nil {
		t.Error(err)
	}
	if v := runJSON(t, "ledger", "verify", dir, "--output", "json"); v["torn_bytes"] != 0.0 || v["cuts"] != 1.0 {
		t.Errorf("after a cut: %v", v)
	}
	log[len(log)/2] ^= 1
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "show", "receipts"} {
		_, stderr, code := coterie(t, "ledger", command, dir, "--output", "json")
		var fault struct{ Error string }
		if err := json.Unmarshal([]byte(stderr), &fault); err != nil || code != 1 || !strings.Contains(fault.Error, "damaged") {
			t.Errorf("%s: exit %d, %s", command, code, stderr)
		}
	}
	if _, _, code := coterie(t, "ledger", "verify", filepath.Join(dir, "nowhere")); code != 1 {
		t.Errorf("exit %d for a missing file", code)
	}
}

func TestLedgerAmend(t *testing.T) {
	dir, _ := makeLedger(t)
	args := []string{"ledger", "amend", dir, "--unit", "neighbourhood", "--relation", "metric", "--claim", "metric", "--epsilon", "8", "--epsilon-switch", "70"}
	if _, _, code := coterie(t, args...); code != 2 {
		t.Errorf("exit %d without a reason", code)
	}
	if _, stderr, code := coterie(t, append(args, "--reason", "the board")...); code != 0 {
		t.Fatal(stderr)
	}
	text, _, _ := coterie(t, "ledger", "show", dir)
	if !strings.Contains(text, "the board") || !strings.Contains(text, "of 8 at the radii (15.0 %)") || !strings.Contains(text, "of 70 between any two data sets") {
		t.Error(text)
	}
	for _, more := range [][]string{{"--epsilon-switch", "0"}, {"--trust", "everybody"}, {"--assumed-spread", "-1"}} {
		if _, _, code := coterie(t, append(append(args[:len(args):len(args)], "--reason", "x"), more...)...); code != 2 {
			t.Errorf("exit %d with %v", code, more)
		}
	}
	if _, stderr, code := coterie(t, "ledger", "amend", dir, "--unit", "client", "--relation", "add-remove", "--claim", "proved", "--trust", "server",
		"--epsilon", "5", "--delta", "1e-5", "--reason", "less trust"); code != 0 {
		t.Error(stderr)
	}
	if _, _, code := coterie(t, "ledger", "amend", dir, "--unit", "example", "--relation", "metric", "--claim", "proved", "--epsilon", "8", "--reason", "x"); code != 2 {
		t.Errorf("exit %d for a ceiling that makes no sense", code)
	}
	if _, _, code := coterie(t, append(args[:2:2], append([]string{dir + "-not"}, append(args[3:], "--reason", "x")...)...)...); code != 1 {
		t.Errorf("exit %d for a folder that is not there", code)
	}
}
