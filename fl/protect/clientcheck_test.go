package protect

import (
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestClientSettingsThatCannotBe: each is named, with what is allowed.
func TestClientSettingsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		path string
		set  func(run *config.Run)
	}{
		{"privacy.relation", func(run *config.Run) { run.Algorithm.Mode, run.Privacy.Relation = "paper", "replace-one" }},
		{"privacy.sector", func(run *config.Run) { run.Privacy.Sector.Angle = 30 }},
		{"privacy.sector.angle", func(run *config.Run) { run.Privacy.Sector.Lower = 0.3 }},
		{"privacy.sector.angle", func(run *config.Run) {
			run.Privacy.Relation, run.Privacy.Sector.Angle = "replace-one", 0.01
		}},
		{"privacy.recentre", func(run *config.Run) {
			run.Privacy.Relation, run.Privacy.Sector.Angle, run.Privacy.Recentre = "replace-one", 30, "last"
		}},
		{"privacy.clipping.rule", func(run *config.Run) {
			run.Privacy.Relation, run.Privacy.Sector.Angle, run.Privacy.Clipping.Rule = "replace-one", 30, "online"
		}},
		{"privacy.clipping.rule", func(run *config.Run) { run.Privacy.Clipping.Rule = "adam-wosm" }},
		{"privacy.clipping.gradient_noise", func(run *config.Run) { run.Privacy.Clipping = config.Clipping{Rule: "online", GradientNoise: 1} }},
		{"privacy.clipping.lowest", func(run *config.Run) { run.Privacy.Clipping = config.Clipping{Rule: "online", Lowest: 2} }},
	} {
		run := fltest.ClientRun()
		run.Algorithm.Mode, run.Privacy.UpdateClip = "sound", 1
		var good, bad config.Checker
		if checkClient(&good, run, fl.Outline{Sends: 1}); good.Faults() != nil {
			t.Fatal(good.Faults())
		}
		c.set(&run)
		checkClient(&bad, run, fl.Outline{Sends: 1})
		if faults := bad.Faults(); len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v", c.path, faults)
		}
	}
	run := fltest.ClientRun()
	run.Privacy.Epsilon, run.Privacy.NoiseMultiplier, run.Privacy.Clipping.Rule = 0, 4, "quantile"
	_, err := fl.New(run, fltest.Linear, 30)
	if err == nil || !strings.Contains(err.Error(), "30 participants leave") || !strings.Contains(err.Error(), "more than 40 of them") {
		t.Errorf("a count that leaves nothing for updates: %v", err)
	}
}

// TestClientStatements: the relation is told as it is, with what it leaves public, and how
// updates were clipped; and the number is the target's under both.
func TestClientStatements(t *testing.T) {
	train, _ := fltest.Silos(3, 20, fltest.Features, 1)
	for _, c := range []struct {
		set       func(run *config.Run)
		relation  event.Relation
		says, not string
	}{
		{func(*config.Run) {}, event.AddRemove, "single updates, from the server", "number of participants"},
		{func(run *config.Run) { run.Privacy.Relation = "replace-one" }, event.ReplaceOne, "the number of participants: it is public", "participant's examples"},
		{func(run *config.Run) {
			run.Privacy.Relation, run.Privacy.Sector = "replace-one", config.Sector{Angle: 50}
		}, event.ReplaceOne, "at most 50 degrees", "second noised sum"},
		{func(run *config.Run) { run.Privacy.Clipping.Rule = "online" }, event.AddRemove, "second noised sum", "sector"},
		{func(run *config.Run) { run.Privacy.Recentre = "mean" }, event.AddRemove, "clipped around what was released before", "sector"},
	} {
		s := newServer(t, len(train), func(run *config.Run) { run.Algorithm.Rounds = 5; c.set(run) })
		p := fltest.Prepared(t, s.a, fl.Participant{Data: &train[0]})
		p.Paid.Rounds = 5
		spent, proved, err := s.a.Spend(p)
		if err != nil {
			t.Fatal(err)
		}
		all, err := fl.StateSpends(s.m.Run, []account.Guarantee{spent}, []*account.Guarantee{proved}, nil)
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(append(slices.Clone(all.NotCovered), all.Says...), "\n")
		if all.Relation != c.relation || all.Claim != event.ClaimProved || all.Unit != event.UnitClient {
			t.Errorf("%s: %+v", c.says, all.Statement)
		}
		if e := float64(all.Epsilon); e > s.m.privacy.Epsilon || e < 0.99*s.m.privacy.Epsilon {
			t.Errorf("%s: epsilon %v of a target of %v", c.says, e, s.m.privacy.Epsilon)
		}
		if !strings.Contains(told, c.says) || strings.Contains(told, c.not) {
			t.Errorf("want %q and not %q in\n%s", c.says, c.not, told)
		}
	}
}
