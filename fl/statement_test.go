package fl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

func TestStatementsSayWhatTheyAre(t *testing.T) {
	stateTerms := func(run config.Run) event.Statement {
		return fltest.New(t, run, 2).StateUpdates(nil).Statement
	}
	paper := stateTerms(config.Default("synthetic", "group-private", "paper"))
	sound := stateTerms(config.Default("synthetic", "group-private", "sound"))
	none := stateTerms(config.Default("synthetic", "ifca", "paper"))
	mentions := func(s event.Statement, word string) bool {
		return slices.ContainsFunc(s.NotCovered, func(line string) bool { return strings.Contains(line, word) })
	}
	if paper.Claim != event.ClaimHeuristic || paper.Radius != nil || !mentions(paper, "validation clients") || !mentions(paper, "group membership") {
		t.Errorf("paper mode: %+v", paper)
	}
	if sound.Claim != event.ClaimMetric || *sound.Radius != 0.3 || mentions(sound, "validation clients") || !mentions(sound, "group membership") {
		t.Errorf("sound mode: %+v", sound)
	}
	if none.Claim != event.ClaimNone || none.Trust != event.TrustNobody {
		t.Errorf("no noise: %+v", none)
	}
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Stop.Return = "best"
	if !mentions(stateTerms(run), "validation clients") {
		t.Error("best-so-far in sound mode is not labelled")
	}
	parts := []fl.Participant{{}, {}}
	parts[1].Account.Add(event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.3})
	p := fltest.New(t, config.Default("synthetic", "group-private", "sound"), 2).StateUpdates(parts)
	if p.MaxEpsilon != 0.4 || p.MedianEpsilon != 0.2 || *p.EpsilonAnyUpdate != 0.8 || *p.EpsilonPerRelease != 0.4 {
		t.Errorf("%+v", p)
	}
}
