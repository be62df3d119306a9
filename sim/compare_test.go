package sim

import (
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
)

// TestVerdict: only a whole interval on one side of 0 is one; for a figure that should
// fall, below is the better side.
func TestVerdict(t *testing.T) {
	of := func(low, high event.Number) *metrics.Figure {
		return &metrics.Figure{Value: (low + high) / 2, Low: &low, High: &high}
	}
	for _, c := range []struct {
		d          *metrics.Figure
		more, less string
	}{
		{of(0.1, 0.3), VerdictBetter, VerdictWorse}, {of(-0.3, -0.1), VerdictWorse, VerdictBetter}, {of(-0.1, 0.3), VerdictUnclear, VerdictUnclear},
		{of(0, 0.3), VerdictUnclear, VerdictUnclear}, {&metrics.Figure{Value: 1}, VerdictUnclear, VerdictUnclear}, {nil, "", ""},
	} {
		if more, less := verdict(c.d, false), verdict(c.d, true); more != c.more || less != c.less {
			t.Errorf("%+v: %q, and %q of a figure that should fall", c.d, more, less)
		}
	}
}
