package sim

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

// TestCentralStatementsSpeakOfOnePlace: what is said about central training names no
// silos, servers or participants, nothing that is sent, and nobody but whoever holds the
// examples is trusted; of the same examples in silos it does.
func TestCentralStatementsSpeakOfOnePlace(t *testing.T) {
	folder := smallSchools(t)
	elsewhere := regexp.MustCompile(`(?i)\b(clients?|servers?|silos?|participants?|federations?|sent)\b`)
	statement := func(change func(run *config.Run)) (Result, string) {
		run := config.Default("school", "central", "sound")
		run.Algorithm.Rounds, run.Privacy.Epsilon, run.Algorithm.Weights = 2, 3, "equal"
		run.Privacy.Relation, run.Privacy.PublicSize = "add-remove", 60
		run.Algorithm.Local.Steps, run.Algorithm.Local.Batch = 2, 12
		change(&run)
		res, _ := executedRun(t, run, folder)
		p := res.Privacy
		text, err := json.Marshal([]any{p.Claim, p.Unit, p.Relation, p.Trust, p.Sampling, p.NotCovered, p.Assumes, p.Says, p.Proved})
		if err != nil {
			t.Fatal(err)
		}
		return res, string(text)
	}
	for name, change := range map[string]func(*config.Run){
		"add-remove":  func(*config.Run) {},
		"replace-one": func(r *config.Run) { r.Privacy.Relation, r.Privacy.PublicSize = "replace-one", 0 },
		"learned":     func(r *config.Run) { r.Privacy.Clipping = config.Clipping{Rule: "online"} },
		"quantile":    func(r *config.Run) { r.Privacy.Clipping = config.Clipping{Rule: "quantile", Quantile: 0.5} },
		"coins":       func(r *config.Run) { r.Privacy.Clipping = config.Clipping{Rule: "online", Learn: "random"} },
		"exact":       func(r *config.Run) { r.Privacy.Noise = "exact" },
		"records":     func(r *config.Run) { r.Privacy.RecordsPerPerson = 2 },
		"unprotected": func(r *config.Run) {
			*r = config.Default("school", "central", "paper")
			r.Algorithm.Rounds, r.Privacy.Protects, r.Privacy.Epsilon, r.Algorithm.Local.Remainder = 2, "nothing", 0, "keep"
		},
	} {
		res, text := statement(change)
		if found := elsewhere.FindString(text); found != "" {
			t.Errorf("%s speaks of %q: %s", name, found, text)
		}
		noised := name != "unprotected"
		if want := map[bool]event.Trust{true: event.TrustHolder, false: event.TrustNobody}[noised]; res.Privacy.Trust != want || res.Privacy.Unit != event.UnitExample {
			t.Errorf("%s: trust %q, unit %q", name, res.Privacy.Trust, res.Privacy.Unit)
		}
		if says := strings.Contains(text, "the number holds for the models after all steps together"); says != noised {
			t.Errorf("%s: that all models are covered is said: %v", name, says)
		}
		learned := map[string]string{"learned": "the clip and step size that were learned", "quantile": "the clip that was learned"}[name]
		if learned == "" && strings.Contains(text, "learned") || !strings.Contains(text, learned) {
			t.Errorf("%s: what was learned is said otherwise: %s", name, text)
		}
		if says := strings.Contains(text, "persons with several examples"); says != (noised && name != "records") {
			t.Errorf("%s: what is left of persons is said: %v", name, says)
		}
		for _, l := range res.Participants {
			if l.Trust != res.Privacy.Trust {
				t.Errorf("%s: the line's trust is %q", name, l.Trust)
			}
		}
		if name == "unprotected" && res.Privacy.EpsilonPerRelease != nil {
			t.Error("unprotected central training has an epsilon of one release, and releases a model once")
		}
	}
	_, text := statement(func(r *config.Run) { r.Algorithm.Kind, r.Judge.By = "local", "own" })
	if !strings.Contains(text, string(event.TrustLocal)) || !strings.Contains(text, "more than one silo") {
		t.Errorf("silos: %s", text)
	}
}
