package participant

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/fl"
)

// siloRun trains with noise that is given, two steps a round on half of the rows each.
func siloRun(rounds int) string {
	return fmt.Sprintf(`data: {kind: vehicle, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: %d, weights: equal, local: {epochs: 1, step: 0.01, batch: 10, loss: half-squared-error}}
privacy: {protects: example, epsilon: 0, noise_multiplier: 3, delta: 1.0e-5, relation: add-remove, public_size: 20, noise: exact}
`, rounds)
}

var (
	wouldFit = regexp.MustCompile(`asks for (\d+) more releases, of which (\d+) would fit`)
	goWords  = regexp.MustCompile(`composed|repeated|sampled|event\.|%!|[{}]|\+Inf`)
)

// TestRefusalsSayHowManyRoundsFit: what `coterie join` says of a plan that its budget does
// not cover. So many rounds are let pass, and one more is not.
func TestRefusalsSayHowManyRoundsFit(t *testing.T) {
	for name, c := range map[string]struct {
		run    func(rounds int) string
		policy string
		words  []string
	}{
		"metric": {func(n int) string { return groupRun(n, "radius: 0.3") }, metricPolicy("epsilon: 3.9, epsilon_switch: 100"),
			[]string{"the loss at the radii, would be 8", "above the ceiling of 3.9; 0 are spent", "instead of 5 would do", "of the 20 releases would fit"}},
		"decaying radii": {func(n int) string { return groupRun(n, "radius: 0.3, radius_decay: 0.9") }, metricPolicy("epsilon: 50, distance: 1, epsilon_switch: 100"),
			[]string{"epsilon at distance 1 would be", "of the 20 releases would fit"}},
		"server's noise": {func(n int) string {
			return strings.Replace(strings.Replace(serverNoiseRun, "rounds: 3", fmt.Sprintf("rounds: %d", n), 1), "epsilon: 6", "epsilon: 0, noise_multiplier: 4", 1)
		}, "ceilings:\n  - {unit: client, relation: add-remove, claim: proved, epsilon: 3, delta: 1.0e-5, trust: server}\n",
			[]string{"would be needed at delta 1e-05, and the ceiling is 3; by the Rényi filter 0 are spent", "instead of 4 would do"}},
		"examples": {siloRun, "ceilings:\n  - {unit: example, relation: add-remove, claim: heuristic, epsilon: 3, delta: 1.0e-5}\n  - {unit: example, relation: add-remove, claim: proved, epsilon: 3, delta: 1.0e-5}\n",
			[]string{"would be needed at delta 1e-05, and the ceiling is 3", "instead of 3 would do", "of the 40 steps would fit"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newCustomer(t, c.run(20), c.policy, plane, someRows())
			if !errors.Is(err, fl.ErrRefused) {
				t.Fatal(err)
			}
			for _, words := range c.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is missing in: %v", words, err)
				}
			}
			if word := goWords.FindString(err.Error()); word != "" {
				t.Errorf("%q is shown: %v", word, err)
			}
			told := wouldFit.FindStringSubmatch(err.Error())
			if told == nil || told[1] != "20" {
				t.Fatalf("not told how many fit: %v", err)
			}
			fit, err := strconv.Atoi(told[2])
			if err != nil || fit < 1 || fit >= 20 {
				t.Fatalf("%d of 20 would fit, %v", fit, err)
			}
			if _, err := newCustomer(t, c.run(fit), c.policy, plane, someRows()); err != nil {
				t.Errorf("%d rounds would fit, and do not: %v", fit, err)
			}
			if _, err := newCustomer(t, c.run(fit+1), c.policy, plane, someRows()); !errors.Is(err, fl.ErrRefused) {
				t.Errorf("%d rounds would fit, and one more does, too: %v", fit, err)
			}
		})
	}
}
