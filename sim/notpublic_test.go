package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// TestTakenFromData: a run file that tells of the data is seen by all, whatever is
// protected, so no claim is proved until nothing of it does.
func TestTakenFromData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	var text strings.Builder
	text.WriteString("site,x,y\n")
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		x := r.Float64()
		fmt.Fprintf(&text, "s%d,%.3f,%.3f\n", i%3, x, x*x)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings string
		claim    event.Claim
	}{
		"example":        {"algorithm: {kind: mr-mtl, mode: sound, rounds: 2}\nprivacy: {protects: example, public_size: 80}\n", event.ClaimProved},
		"example, paper": {"algorithm: {kind: mr-mtl, mode: paper, rounds: 2}\nprivacy: {protects: example}\n", event.ClaimHeuristic},
		"client":         {"algorithm: {kind: fedavg, mode: sound, rounds: 2}\nprivacy: {protects: client}\n", event.ClaimProved},
		"update":         {"algorithm: {kind: fedavg, mode: sound, rounds: 2}\nprivacy: {protects: update}\n", event.ClaimMetric},
	} {
		t.Run(name, func(t *testing.T) {
			data := "data:\n  kind: table\n  source: {path: " + path + ", client: site}\n  target: y\n  task: number\n  target_range: [0, 1]\n  features: [{name: x, type: number, range: [0, 1]}]\n"
			public := privacyOf(t, data+c.settings)
			if public.Claim != c.claim {
				t.Errorf("everything is public: the claim is %s, want %s", public.Claim, c.claim)
			}
			taken := privacyOf(t, data+"  not_public: [data.features.x.range]\n"+c.settings)
			if taken.Claim != event.ClaimHeuristic || taken.Proved != nil {
				t.Errorf("the range was taken from the data: the claim is %s, want heuristic; proved: %v", taken.Claim, taken.Proved)
			}
			if lines := strings.Join(taken.NotCovered, "\n"); strings.Count(lines, "data.features.x.range was taken from the data") != 1 {
				t.Errorf("not covered: %s", lines)
			}
			if taken.MaxEpsilon != public.MaxEpsilon {
				t.Errorf("epsilon is %v, and %v where the range is public", taken.MaxEpsilon, public.MaxEpsilon)
			}
		})
	}
}

func privacyOf(t *testing.T, text string) fl.Privacy {
	t.Helper()
	run, err := config.Resolve([]byte(text), nil, Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	res, _ := executedRun(t, run, nil)
	for _, p := range res.Participants {
		if p.Claim != res.Privacy.Claim {
			t.Errorf("%s has the claim %s, the run %s", p.Name, p.Claim, res.Privacy.Claim)
		}
	}
	return res.Privacy
}
