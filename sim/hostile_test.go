package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl/cluster"
	"github.com/coterie-fl/coterie/sim"
)

const honestText = `data: {kind: test-two}
algorithm: {kind: fedavg, rounds: 10, weights: equal, local: {step: 0.5}}
privacy: {protects: nothing}
judge: {by: test}
`

// TestRobustRulesAgainstLiars: two of eight clients lie. The mean follows them; every
// robust rule stays near what the honest ones reach.
func TestRobustRulesAgainstLiars(t *testing.T) {
	lossOf := func(set ...string) float64 { return float64(finished(t, honestText, set...).Metrics.LogLoss.Value) }
	honest := lossOf()
	for _, attack := range []string{"sign-flip", "scale", "label-flip"} {
		lies := []string{"judge.hostile.attack=" + attack, "judge.hostile.share=0.25"}
		if attack != "label-flip" {
			lies = append(lies, "judge.hostile.factor=100")
		}
		mean := lossOf(lies...)
		if mean < honest+0.05 {
			t.Errorf("%s: the mean has a log loss of %.3f, honest clients %.3f: the lies are not told", attack, mean, honest)
		}
		for _, rule := range cluster.RobustRules {
			set := append(lies, "algorithm.robust="+rule)
			if rule == cluster.TrimmedMean || rule == cluster.Krum {
				set = append(set, "algorithm.robust_share=0.25")
			}
			if got := lossOf(set...); got > honest+0.1 {
				t.Errorf("%s against %s: log loss %.3f, honest clients %.3f, the mean %.3f", rule, attack, got, honest, mean)
			}
		}
	}
}

// TestLiesThatCannotBeTold and rules that do not hold are refused, with what would do.
func TestLiesThatCannotBeTold(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"judge.hostile.attack=sign-flip", "give both, or neither"},
		{"judge.hostile.share=0.2", "give both, or neither"},
		{"judge.hostile.attack=label-flip judge.hostile.share=0.2 data.kind=test-scaled algorithm.local.loss=squared-error", "no classes"},
		{"judge.hostile.attack=scale judge.hostile.share=0.2 algorithm.kind=central", "nobody sends anything"},
		{"algorithm.robust=median algorithm.weights=counts", "algorithm.weights"},
		{"algorithm.robust=krum privacy.protects=client privacy.epsilon=8 algorithm.mode=sound", "robust rules"},
		{"algorithm.robust=average", "algorithm.robust"},
		{"algorithm.robust=krum algorithm.robust_share=0.5", "algorithm.robust_share"},
	} {
		_, err := config.Resolve([]byte(honestText), strings.Fields(c.set), sim.Checks()...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
	for _, c := range []struct{ set, want string }{
		{"judge.hostile.attack=sign-flip judge.hostile.share=0.1", "is nobody; allowed: 0.125"},
		{"judge.hostile.attack=sign-flip judge.hostile.share=0.5 algorithm.kind=local judge.by=own", "nobody sends anything"},
	} {
		run, err := config.Resolve([]byte(honestText), strings.Fields(c.set), sim.Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sim.New(run, nil); err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
}
