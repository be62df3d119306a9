package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// soak runs the long tests.
var soak = flag.Bool("soak", false, "run the long versions of the tests")

// What the tests release, and on which terms.
var (
	exampleCeiling = Ceiling{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 3, Delta: 1e-5}
	metricCeiling  = Ceiling{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 4, EpsilonSwitch: 1000}
	testPolicy     = Policy{Ceilings: []Ceiling{exampleCeiling, metricCeiling}}

	testKey    = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	testMember = Membership{Federation: "schools", Participant: "school-1", Key: Key(testKey.Public().(ed25519.PublicKey))}
	testPlan   = Hash(sha256.Sum256([]byte("plan")))
)

func gaussian(noise float64) event.Release {
	return event.Release{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal,
		What: event.Gaussian{Noise: noise}}
}

// metricRelease loses dimension/multiplier at its radius.
func metricRelease(multiplier float64) event.Release {
	return event.Release{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Trust: event.TrustLocal,
		What: event.MetricLaplace{Dimension: 2, NoiseMultiplier: multiplier, Radius: 0.5}}
}

func slotAt(round int) Slot { return Slot{testMember.Federation, "run-1", round} }

func charge(round int, r event.Release) Charge {
	return Charge{Slot: slotAt(round), Plan: testPlan, Release: r, Enforcement: Enforced}
}

func noised(round int) []byte { return fmt.Appendf(nil, "noised bytes of round %d", round) }

// openTest opens a ledger and reconciles it.
func openTest(tb testing.TB, dir string) *Ledger {
	tb.Helper()
	l, err := Open(dir, testPolicy)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	if err := l.Reconcile(testMember, nil); err != nil {
		tb.Fatal(err)
	}
	return l
}

// release takes a slot through all its states.
func release(l *Ledger, round int, r event.Release) error {
	if err := l.Reserve(charge(round, r)); err != nil {
		return err
	}
	if err := l.Store(slotAt(round), noised(round)); err != nil {
		return err
	}
	draft, err := l.Draft(slotAt(round))
	if err != nil {
		return err
	}
	signed, err := Sign(draft, testKey)
	if err != nil {
		return err
	}
	return l.Commit(slotAt(round), signed)
}

// failer is a test, or one of its many random ones.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func mustFail(tb failer, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Fatalf("got %v, want %v", err, want)
	}
}

func must(tb failer, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func hashOf(s string) Hash { return sha256.Sum256([]byte(s)) }
