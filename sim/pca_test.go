package sim_test

import (
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// TestComponentsInSimulation: a run finds directions, says what they capture and no error of
// answers that it does not give, and keeps no sums as if they were models. Each alone has
// fewer rows under the same noise: together they capture more.
func TestComponentsInSimulation(t *testing.T) {
	captured := map[string]float64{}
	for _, kind := range []string{"pca", "pca-local"} {
		text := "data: {kind: synthetic, users: 30, samples: 40, test_share: 0.3, dimension: 6, groups: 1, x: {kind: normal, mean: 1, sd: 0.3}}\n" +
			"algorithm: {kind: " + kind + ", components: 1}\nprivacy: {protects: example, epsilon: 1, clip: 2}\njudge: {by: own}\n"
		res := finished(t, text)
		m := res.Metrics
		if m.Captured == nil || m.Error != nil || m.RMSE != nil || len(res.History.Early)+len(res.History.Late) > 0 || res.Rounds != 1 {
			t.Errorf("%s: figures %+v, %d vectors kept, %d rounds", kind, m, len(res.History.Early), res.Rounds)
		}
		line := res.Participants[0]
		if line.Steps != 1 || line.Batch != line.Examples || line.Sampling != "full" || line.Figures.Captured == nil || line.Unit != event.UnitExample {
			t.Errorf("%s: a participant's line is %+v", kind, line)
		}
		captured[kind] = float64(m.Captured.Value)
	}
	if captured["pca"] < 0.8 || captured["pca-local"] > captured["pca"]-0.05 {
		t.Errorf("captured are %v", captured)
	}
}
