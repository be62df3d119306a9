package ledger

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// training is so many noised steps on a tenth of the examples each.
func training(steps int64, noise float64) event.Release {
	r := gaussian(noise)
	r.What = event.Composed{Parts: []event.Event{event.Repeated{Times: steps, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.1, Of: event.Gaussian{Noise: noise}}}}}
	return r
}

// rounds are so many metric releases of each radius.
func rounds(each int64, multiplier float64, radii ...float64) event.Release {
	r := metricRelease(multiplier)
	var parts []event.Event
	for _, radius := range radii {
		parts = append(parts, event.Repeated{Times: each, Of: event.MetricLaplace{Dimension: 2, NoiseMultiplier: multiplier, Radius: radius, Spread: 3}})
	}
	r.What = event.Composed{Parts: parts}
	return r
}

// TestRefusals is what a participant reads when its ledger refuses: the number that would
// be needed, the one that is allowed, what is spent, and what would do.
func TestRefusals(t *testing.T) {
	l := openTest(t, t.TempDir())
	if err := errors.Join(l.Reserve(charge(0, training(100, 3))), l.Reserve(charge(1, rounds(1, 4, 0.5)))); err != nil {
		t.Fatal(err)
	}
	unnamed := gaussian(1)
	unnamed.Unit = event.UnitClient
	server := gaussian(1)
	server.Trust = event.TrustServer
	for name, c := range map[string]struct {
		r    event.Release
		want string
	}{
		"steps": {training(100, 2), `unit "example", relation "add-remove", claim "proved", noise added by "participant": budget would be exceeded: ` +
			`epsilon 3.14878 would be needed at delta 1e-05, and the ceiling is 3; by the Rényi filter 1.81642 are spent; noise 2.112 instead of 2 would do; 86 of the 100 steps would fit`},
		"one": {gaussian(1), `unit "example", relation "add-remove", claim "proved", noise added by "participant": budget would be exceeded: ` +
			`epsilon 5.22963 would be needed at delta 1e-05, and the ceiling is 3; by the Rényi filter 1.81642 are spent; noise 1.839 instead of 1 would do`},
		"rounds": {rounds(4, 4, 0.5, 0.25), `unit "neighbourhood", relation "metric", claim "metric", noise added by "participant": budget would be exceeded: ` +
			`epsilon, the loss at the radii, would be 4.5, above the ceiling of 4; 0.5 are spent; noise 4.572 instead of 4 would do; 7 of the 8 releases would fit`},
		"no ceiling":   {unnamed, `the policy has no ceiling for unit "client", relation "add-remove", claim "proved", noise added by "participant"; only a ceiling in the policy that names these terms allows it`},
		"server noise": {server, `the policy has no ceiling for unit "example", relation "add-remove", claim "proved", noise added by "server"; the update itself would leave this participant, and only a ceiling with trust: server allows that`},
	} {
		err := l.Check(c.r)
		if want := "refused by the privacy ledger: " + c.want; !errors.Is(err, ErrRefused) || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%s", name, err, want)
		}
		for _, word := range []string{"composed", "repeated", "sampled", "event.", "{", "%!"} {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Errorf("%s shows %q: %v", name, word, err)
			}
		}
		if err := l.Reserve(charge(9, c.r)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, to be reserved: %v", name, err)
		}
	}
}

// TestTheCeilingThatIsNamedWouldDo: a board that raises its ceiling to the one that a
// refusal names has the release made, although the filter then fixes other orders; and
// a ceiling one percent lower does not do.
func TestTheCeilingThatIsNamedWouldDo(t *testing.T) {
	tried := 0
	for _, c := range []Ceiling{{Epsilon: 0.5, Delta: 1e-5}, {Epsilon: 2, Delta: 1e-5}, {Epsilon: 3, Delta: 1e-9}, {Epsilon: 12, Delta: 1e-3}} {
		c.Unit, c.Relation, c.Claim = event.UnitExample, event.AddRemove, event.ClaimProved
		for _, before := range []int64{0, 5, 50} {
			for _, r := range []event.Release{training(1, 0.6), training(30, 3), training(3000, 3), training(3000, 0.8), gaussian(1), gaussian(0.1)} {
				err := checkUnder(t, c, before, r)
				var short *account.BudgetError
				if !errors.As(err, &short) {
					continue
				}
				told, parsed := strconv.ParseFloat(ceilingTold.FindStringSubmatch(err.Error())[1], 64)
				if parsed != nil {
					t.Fatal(parsed)
				}
				for epsilon, fits := range map[float64]bool{told: true, told * 0.99: false} {
					raised := c
					raised.Epsilon = event.Number(epsilon)
					if again := checkUnder(t, raised, before, r); (again == nil) != fits {
						t.Errorf("%v, %d steps before, then %s: a ceiling of %v was named, and with %v: %v", c, before, event.Describe(r.What), told, epsilon, again)
					}
				}
				tried++
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d refusals were tried", tried)
	}
}

var ceilingTold = regexp.MustCompile(`epsilon (\S+) would be needed`)

// checkUnder asks a budget that has some steps behind it.
func checkUnder(t *testing.T, c Ceiling, steps int64, r event.Release) error {
	t.Helper()
	b, err := newBudget(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.spend(training(steps, 20)); err != nil || b.over {
		t.Fatalf("%v, over: %v", err, b.over)
	}
	return b.check(r)
}
