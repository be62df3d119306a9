package ledger

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// TestUnnamedTermsAreRefused: no ceiling, no release; above all not a heuristic one.
func TestUnnamedTermsAreRefused(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir)
	paper := metricRelease(5)
	paper.Claim = event.ClaimHeuristic
	bare := event.Release{Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Trust: event.TrustNobody, What: event.Unprotected{}}
	mustFail(t, l.Reserve(charge(0, paper)), ErrRefused)
	mustFail(t, l.Reserve(charge(0, bare)), ErrRefused)
	// A claim does not become proved by calling it so.
	lie := bare
	lie.Unit, lie.Relation, lie.Claim, lie.Trust = event.UnitExample, event.AddRemove, event.ClaimProved, event.TrustLocal
	mustFail(t, l.Reserve(charge(0, lie)), ErrRefused)
	lie.Unit, lie.Relation, lie.Claim = event.UnitNeighbourhood, event.Metric, event.ClaimMetric
	mustFail(t, l.Reserve(charge(0, lie)), ErrRefused)
	must(t, l.Close())

	named := testPolicy
	named.Ceilings = append(slices.Clone(named.Ceilings),
		Ceiling{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimHeuristic, Epsilon: 1},
		Ceiling{Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Epsilon: event.Number(math.Inf(1))})
	l, err := Open(dir, named)
	must(t, err)
	must(t, l.Reconcile(testMember, nil))
	must(t, release(l, 0, paper))
	must(t, release(l, 1, bare))
	must(t, l.Close())

	// A policy that no longer names the terms allows nothing more, and what was reserved
	// before stays reserved.
	l = openTest(t, dir)
	mustFail(t, l.Reserve(charge(2, paper)), ErrRefused)
}

func TestPolicyIsFixedOnceUsed(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir)
	must(t, l.Close())
	raised := metricCeiling
	raised.Epsilon = 8
	policy := Policy{Ceilings: []Ceiling{raised}}
	l, err := Open(dir, policy) // nothing was released yet
	must(t, err)
	must(t, l.Reconcile(testMember, nil))
	must(t, release(l, 0, metricRelease(0.5))) // costs 4
	must(t, release(l, 1, metricRelease(1)))   // costs 2
	must(t, l.Close())
	_, err = Open(dir, testPolicy)
	mustFail(t, err, ErrPolicy)

	if err := Amend(dir, metricCeiling, " "); err == nil {
		t.Error("amended without a reason")
	}
	must(t, Amend(dir, metricCeiling, "the board lowered it"))
	l = openTest(t, dir)
	mustFail(t, l.Reserve(charge(2, metricRelease(1e6))), ErrRefused) // 6 of 4 are spent
	sum, err := l.Summary()
	must(t, err)
	b := sum.Budgets[1]
	if !b.Amended || b.Used != 1 || b.Epsilon != 6 || len(sum.Notes) != 1 || !strings.Contains(sum.Notes[0].Text, "the board lowered it") {
		t.Errorf("%+v, %+v", b, sum.Notes)
	}
	must(t, l.Close())
	must(t, Amend(dir, raised, "and raised it again"))
	l, err = Open(dir, policy)
	must(t, err)
	defer l.Close()
	must(t, l.Reconcile(testMember, nil))
	must(t, l.Reserve(charge(2, metricRelease(1))))
	mustFail(t, l.Reserve(charge(3, metricRelease(1))), ErrRefused)
}

func TestBadPolicies(t *testing.T) {
	inf := event.Number(math.Inf(1))
	for name, c := range map[string]Ceiling{
		"empty":               {},
		"no epsilon":          {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Delta: 1e-5},
		"no delta":            {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1},
		"tiny delta":          {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 30, Delta: 1e-320},
		"infinite":            {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: inf, Delta: 1e-5},
		"not a number":        {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: event.Number(math.NaN()), Delta: 1e-5},
		"metric with delta":   {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1, Delta: 1e-5},
		"metric of examples":  {Unit: event.UnitExample, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1},
		"proved metric":       {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimProved, Epsilon: 1},
		"none with a ceiling": {Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Epsilon: 5},
		"unknown filter":      {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5, Filter: "pld"},
		"order below 1":       {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5, Orders: []float64{0.5}},
		"no switch":           {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1, Distance: 1},
		"infinite switch":     {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1, EpsilonSwitch: inf},
		"negative switch":     {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1, EpsilonSwitch: -1},
		"switch of no number": {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1, EpsilonSwitch: event.Number(math.NaN())},
		"switch elsewhere":    {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5, EpsilonSwitch: 1},
		"heuristic switch":    {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimHeuristic, Epsilon: 1, EpsilonSwitch: 1},
		"heuristic distance":  {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimHeuristic, Epsilon: 1, Distance: 1},
		"assumed infinity":    {Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: 1, EpsilonSwitch: 1, AssumedSpread: &inf},
		"unknown trust":       {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5, Trust: "server"},
		"nobody's proof":      {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5, Trust: event.TrustNobody},
		"distance elsewhere":  {Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5, Distance: 1},
	} {
		if err := (Policy{Ceilings: []Ceiling{c}}).Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		dir := filepath.Join(t.TempDir(), "new")
		if _, err := Open(dir, Policy{Ceilings: []Ceiling{c}}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if err := (Policy{Ceilings: []Ceiling{metricCeiling, metricCeiling}}).Validate(); err == nil {
		t.Error("two ceilings for the same terms: accepted")
	}
}
