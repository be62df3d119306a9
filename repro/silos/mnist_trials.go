package silos

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/repro/lab"
)

// trials are warm MR-MTL with one setting changed each: what may explain that it is behind IFCA
// where silos have masks. Clusters stay as they are when the warm start ends, and IFCA itself
// chooses in a tenth of the rounds, twice as many; and lambda leaves models apart, while IFCA has
// one a cluster.
func (f figure16) trials(mask float64) []contender {
	if !f.tests || mask == 0 {
		return nil
	}
	longer := figure16{warm: 2 * f.warm}.warmed("MR-MTL")
	return []contender{
		overLambdas(longer, f.run(mask, "mr-mtl", 2*f.warm), f.lambdas),
		overLambdas(f.warmed("MR-MTL")+", one model a cluster", f.run(mask, "mr-mtl", f.warm), []float64{math.Inf(1)}),
	}
}

// behind is what the trials say of why warm MR-MTL is not as good as a rival: we believe in the first
// that gains on it, or is as good as the rival, by its whole interval.
func (f figure16) behind(warm, rival outcome, tried []outcome) string {
	reasons := []string{
		fmt.Sprintf("We believe that under masks %.0f %% of the rounds are too few to find who belongs together: warm MR-MTL keeps the clusters that it has then, and IFCA chooses for twice as long", 100*f.warm),
		"We believe that lambda is too small here: models that are left apart keep their own noise, which one model a cluster averages away",
	}
	believed, told := "", []string{}
	for i, o := range tried {
		more, left := lab.Interval(gains(false, o, warm)), lab.Interval(gains(false, o, rival))
		if believed == "" && (more.Low > 0 || left.Low > -nearly) {
			believed = reasons[i]
		}
		told = append(told, fmt.Sprintf("%s gains %.3f on %s (95 %% interval from %.3f to %.3f) and %.3f on %s (from %.3f to %.3f)", o.name, more.Middle, warm.name, more.Low, more.High, left.Middle, rival.name, left.Low, left.High))
	}
	return fmt.Sprintf("%s. Tested by changing one setting at a time, with the same seeds: %s.", cmp.Or(believed, "We do not know why"), strings.Join(told, "; "))
}
