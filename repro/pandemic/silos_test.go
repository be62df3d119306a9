package pandemic

import (
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// TestSiloClaimsCanFail: the claims of the study follow the figures, and fail with them.
func TestSiloClaimsCanFail(t *testing.T) {
	made := func(mrmtl, local, fedavg, spent float64, claim event.Claim) map[string]study.Verdict {
		cells := map[contender][]siloCell{}
		for c, precision := range map[contender]float64{
			{"mr-mtl", 1, ""}: mrmtl, {"local", 1, ""}: local, {"fedavg", 1, ""}: fedavg, {"finetune", 1, ""}: 0.01, {"mr-mtl", 1, authorsLambda}: local,
		} {
			cells[c] = []siloCell{{precision, spent, claim}, {precision, spent, claim}}
		}
		verdicts := map[string]study.Verdict{}
		for _, r := range siloRows(1, cells) {
			verdicts[r.Label] = r.Verdict
		}
		return verdicts
	}
	const bounded, ahead, kept = "MR-MTL minus local", "MR-MTL minus FedAvg", "largest epsilon that a region spends"
	good := made(0.05, 0.03, 0.04, 1, event.ClaimProved)
	bad := made(0.02, 0.03, 0.04, 1.1, event.ClaimProved)
	for _, label := range []string{bounded, ahead, kept} {
		if good[label] != study.Agrees || bad[label] != study.Differs {
			t.Errorf("%s: %s where it holds, %s where it does not", label, good[label], bad[label])
		}
	}
	if made(0.05, 0.03, 0.04, 1, event.ClaimHeuristic)[kept] != study.Differs {
		t.Error("a heuristic number passes for a proved one")
	}
}

// TestSiloRuns: every contender's run is one that a file could ask for, with what the data's
// own defaults say.
func TestSiloRuns(t *testing.T) {
	for _, c := range []contender{{"mr-mtl", 1, ""}, {"fedavg", 5, ""}, {"local", 0, ""}, {"mr-mtl", 5, authorsLambda}} {
		run, err := (&lab.Lab{}).Resolve(c.run(2000))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if c.epsilon > 0 && (len(run.Privacy.Silos) != 10 || run.Privacy.Silos[9].PublicSize != 30) {
			t.Errorf("%+v: %+v", c, run.Privacy.Silos)
		}
	}
}
