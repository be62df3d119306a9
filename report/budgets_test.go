package report

import (
	"fmt"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// Sums of 0.4 differ in the last bit; bars must not.
func TestBinsHoldNumbersOfReleases(t *testing.T) {
	var values []sim.Budget
	add := func(v float64) { values = append(values, sim.Budget{Epsilon: event.Number(v), Clients: 1}) }
	total := 0.0
	for range 7 {
		add(total)
		add(total)
		total += 0.4
	}
	b := binned(values, 0.4)
	if got := fmt.Sprint(b.counts); got != "[2 2 2 2 2 2 2]" {
		t.Errorf("counts %s", got)
	}
	values = nil
	for i := range 10000 {
		add(0.4 * float64(i/10))
	}
	b = binned(values, 0.4)
	sum := 0
	for _, n := range b.counts {
		sum += n
	}
	if sum != 10000 || len(b.counts) > mostBins {
		t.Errorf("%d clients in %d bins", sum, len(b.counts))
	}
}
