package ledger

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// copyOld copies a ledger of testdata to where it can be opened: git keeps no modes.
func copyOld(t *testing.T, name string) string {
	t.Helper()
	from, to := filepath.Join("testdata", name), filepath.Join(t.TempDir(), name)
	must(t, os.CopyFS(to, os.DirFS(from)))
	must(t, filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	}))
	return to
}

// oldMember is the federation that the ledgers of testdata know.
var oldMember = Membership{Federation: "clinics", Participant: "north", Key: testMember.Key}

func oldSlot(run string, round int) Slot { return Slot{"clinics", run, round} }

// carryOn takes a slot of an old ledger through all its states.
func carryOn(t *testing.T, l *Ledger, s Slot, r event.Release) {
	t.Helper()
	must(t, l.Reserve(Charge{Slot: s, Plan: testPlan, Release: r, Enforcement: Enforced}))
	must(t, l.Store(s, []byte("noised")))
	draft, err := l.Draft(s)
	must(t, err)
	signed, err := Sign(draft, testKey)
	must(t, err)
	must(t, l.Commit(s, signed))
}

// TestLedgersWrittenBefore opens what earlier code has written: it verifies, counts
// and goes on.
func TestLedgersWrittenBefore(t *testing.T) {
	t.Run("spread not recorded", func(t *testing.T) {
		dir := copyOld(t, "version-1-metric")
		l, err := Read(dir)
		must(t, err)
		sum, err := l.Summary()
		must(t, err)
		if sum.Records != 15 || sum.Head.String() != "a066703f22285c36bd8084c07f2ded353e74d54e6de0947654fdfc32966583ba" || len(sum.Budgets) != 2 {
			t.Fatalf("%+v", sum)
		}
		examples, metric := sum.Budgets[0], sum.Budgets[1]
		if examples.Epsilon != 0.4775536529921551 || examples.Trust != event.TrustLocal { // as the old code said
			t.Errorf("%+v", examples)
		}
		if metric.Epsilon != 1.200003 || metric.EpsilonAtDistance != 2.000003 || metric.Releases != 3 {
			t.Errorf("%+v", metric)
		}
		if metric.EpsilonSwitch == nil || !math.IsInf(float64(*metric.EpsilonSwitch), 1) {
			t.Errorf("epsilon_switch is %v, but nothing is known of the spread", metric.EpsilonSwitch)
		}
		text, err := os.ReadFile(filepath.Join("testdata", "version-1-receipt.json"))
		must(t, err)
		receipt, err := ParseSignedReceipt(text)
		must(t, err)
		must(t, receipt.Verify())
		must(t, l.Contains(receipt))

		// The ceiling for examples goes on as it was, and bytes that wait are still there.
		metricNow := Ceiling{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 4, Distance: 0.5, EpsilonSwitch: 100}
		open, err := Open(dir, Policy{Ceilings: []Ceiling{exampleCeiling}})
		must(t, err)
		must(t, open.Reconcile(oldMember, nil))
		carryOn(t, open, oldSlot("silos", 1), gaussian(8))
		if got, err := open.Load(oldSlot("spring", 2)); err != nil || !bytes.HasPrefix(got, []byte("noised bytes of round 2")) {
			t.Errorf("%q, %v", got, err)
		}
		must(t, open.Close())

		// A bound on epsilon_switch is new to releases that say nothing of it.
		both := Policy{Ceilings: []Ceiling{exampleCeiling, metricNow}}
		_, err = Open(dir, both)
		mustFail(t, err, ErrPolicy)
		if !strings.Contains(err.Error(), "assumed spread") {
			t.Errorf("it is not said what to do: %v", err)
		}
		must(t, Amend(dir, metricNow, "epsilon_switch is required now"))
		open, err = Open(dir, both)
		must(t, err)
		must(t, open.Reconcile(oldMember, nil))
		mustFail(t, open.Check(metricRelease(1e9)), ErrRefused) // unbounded is above every ceiling
		must(t, open.Close())
		assumed := event.Number(10)
		metricNow.AssumedSpread = &assumed
		must(t, Amend(dir, metricNow, "the run's hypotheses were at most 10 apart"))
		open, err = Open(dir, both)
		must(t, err)
		defer open.Close()
		must(t, open.Reconcile(oldMember, nil))
		carryOn(t, open, oldSlot("summer", 0), metricRelease(5))
		sum, err = open.Summary()
		must(t, err)
		// Three releases of 4/3*(0.6 + 10) + 1e-6, and one of 0.8*(1 + 0).
		want := 3*(4.0/3*10.6+1e-6) + 0.8
		if got := sum.Budgets[1]; math.Abs(float64(*got.EpsilonSwitch)-want) > 1e-9 || !got.Amended ||
			!strings.Contains(strings.Join(got.NotCovered, "; "), "further apart than 10") {
			t.Errorf("epsilon_switch %v, want %v: %+v", *got.EpsilonSwitch, want, got)
		}
		must(t, open.Contains(receipt))
	})

	t.Run("trust not in the ceiling", func(t *testing.T) {
		dir := copyOld(t, "version-1-server-noise")
		l, err := Read(dir)
		must(t, err)
		sum, err := l.Summary()
		must(t, err)
		if len(sum.Budgets) != 3 {
			t.Fatalf("%+v", sum.Budgets)
		}
		own, servers, bare := sum.Budgets[0], sum.Budgets[1], sum.Budgets[2]
		if own.Trust != event.TrustLocal || own.Releases != 1 || own.Epsilon != 0.4775536529921551 || own.Ceiling != 6 {
			t.Errorf("%+v", own)
		}
		if servers.Trust != event.TrustServer || servers.Releases != 3 || servers.Epsilon != 0.8657253876850988 || servers.Ceiling != 6 {
			t.Errorf("%+v", servers)
		}
		if bare.Trust != event.TrustNobody || bare.Releases != 1 {
			t.Errorf("%+v", bare)
		}

		// The policy of before names no trust: the server's noise is refused from now on,
		// even for a slot that was reserved.
		was := Ceiling{Unit: event.UnitClient, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 6, Delta: 1e-5}
		own8 := gaussian(8)
		own8.Unit = event.UnitClient
		servers8 := own8
		servers8.Trust = event.TrustServer
		open, err := Open(dir, Policy{Ceilings: []Ceiling{was}})
		must(t, err)
		must(t, open.Reconcile(oldMember, nil))
		mustFail(t, open.Check(servers8), ErrRefused)
		mustFail(t, open.Reserve(Charge{Slot: oldSlot("dp-fedavg", 2), Plan: Hash{1, 2, 3}, Release: servers8, Enforcement: Enforced}), ErrRefused)
		carryOn(t, open, oldSlot("trainer", 1), own8)
		must(t, open.Close())

		// One that names it counts what the server was sent before.
		trusting := was
		trusting.Trust = event.TrustServer
		larger := trusting
		larger.Epsilon = 7
		_, err = Open(dir, Policy{Ceilings: []Ceiling{was, larger}})
		mustFail(t, err, ErrPolicy)
		open, err = Open(dir, Policy{Ceilings: []Ceiling{was, trusting}})
		must(t, err)
		must(t, open.Reconcile(oldMember, nil))
		must(t, open.Reserve(Charge{Slot: oldSlot("dp-fedavg", 2), Plan: Hash{1, 2, 3}, Release: servers8, Enforcement: Enforced}))
		carryOn(t, open, oldSlot("dp-fedavg", 3), servers8)
		must(t, open.Close())
		l, err = Read(dir)
		must(t, err)
		sum, err = l.Summary()
		must(t, err)
		if sum.Budgets[0].Releases != 2 || sum.Budgets[1].Releases != 4 {
			t.Errorf("%+v", sum.Budgets)
		}
	})
}
