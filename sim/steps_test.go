package sim

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// TestServerClipIsRecorded: of whole clients every round's record has the clip and the step
// that the server goes on with, and nothing else; a clip that stays has no record.
func TestServerClipIsRecorded(t *testing.T) {
	start := func(c config.Clipping, noise string) ([]RoundRecord, Result, *Simulation) {
		run := config.Default("synthetic", "fedavg", "sound")
		run.Data.Users, run.Algorithm.Rounds, run.Algorithm.ClientsPerRound, run.Algorithm.Weights = 200, 5, 0, "equal"
		run.Algorithm.Stop = config.Stop{Return: "last", Every: 5}
		run.Privacy = config.Default("school", "fedavg", "sound").Privacy
		run.Privacy.Protects, run.Privacy.Epsilon, run.Privacy.Delta, run.Privacy.UpdateClip, run.Privacy.Relation = "client", 8, 1e-5, 0.1, "add-remove"
		run.Privacy.Clip, run.Privacy.PublicSize, run.Privacy.Clipping, run.Privacy.Noise = 0, 0, c, noise
		res, s := executedRun(t, run, nil)
		return res.History.Rounds, res, s
	}
	for _, noise := range []string{"simulated", "exact"} {
		rounds, res, _ := start(config.Clipping{Rule: "fixed", Decay: 0.1}, noise) // public: known beforehand
		for i, r := range rounds {
			want := 0.1 * math.Exp(-0.1*float64(i+1))
			if s := r.Steps; s == nil || s.Made != i+1 || math.Abs(float64(s.Clip)-want) > 1e-12 || s.Step != 1 {
				t.Fatalf("%s noise, round %d: %+v, want the clip %v", noise, i+1, s, want)
			}
		}
		if res.Steps != rounds[len(rounds)-1].Steps || len(rounds) != 5 {
			t.Errorf("%s noise: the last of %d rounds is not the result's", noise, len(rounds))
		}
		for _, rule := range []string{"quantile", "online"} {
			rounds, res, s := start(config.Clipping{Rule: rule}, noise)
			server := s.rounds.Algorithm.Protection().(fl.ServerClip)
			made, clip, step := server.ServerClip(s.rounds.State)
			last := *res.Steps
			if last.Made != made || made != 5 || float64(last.Clip) != clip || float64(last.Step) != step || rounds[0].Steps.Clip == last.Clip {
				t.Errorf("%s, %s noise: recorded %+v, and the server has %d, %v, %v", rule, noise, last, made, clip, step)
			}
			if moved := step != 1; moved != (rule == "online") {
				t.Errorf("%s, %s noise: the server's step ends at %v", rule, noise, step)
			}
			if last.Clipped != nil || last.ClipUp != nil || last.StepUp != nil || last.ClipAgree != nil || last.StepAgree != nil || last.Norms != nil {
				t.Errorf("%s, %s noise: the record tells of updates without noise: %+v", rule, noise, last)
			}
		}
	}
	if rounds, res, _ := start(config.Clipping{}, "simulated"); rounds[0].Steps != nil || res.Steps != nil {
		t.Error("a clip that stays is recorded")
	}
}

// TestExactNoiseShowsTheClip: what was released is shown with exact noise, too; what only
// somebody who looks at examples knows is not.
func TestExactNoiseShowsTheClip(t *testing.T) {
	folder := smallSchools(t)
	for _, noise := range []string{"exact", fl.NoiseSeeded, "simulated"} {
		run := config.Default("school", "central", "sound")
		run.Algorithm.Rounds, run.Privacy.Epsilon, run.Algorithm.Weights, run.Privacy.Noise = 4, 3, "equal", noise
		run.Privacy.Relation, run.Privacy.PublicSize = "add-remove", 60
		run.Algorithm.Local.Steps, run.Algorithm.Local.Batch, run.Algorithm.Local.StepDecay = 3, 12, 0.01
		run.Privacy.Clip, run.Privacy.Clipping = 0.5, config.Clipping{Rule: "fixed", Decay: 0.02}
		decayed, _ := executedRun(t, run, folder)
		for i, r := range decayed.History.Rounds {
			made := 3 * (i + 1)
			clip, step := 0.5*math.Exp(-0.02*float64(made)), run.Algorithm.Local.Step*math.Exp(-0.01*float64(made))
			if s := r.Steps; s == nil || s.Made != made || math.Abs(float64(s.Clip)/clip-1) > 1e-9 || math.Abs(float64(s.Step)/step-1) > 1e-9 {
				t.Fatalf("%s, round %d: %+v, want clip %v and step %v", noise, i+1, r.Steps, clip, step)
			}
		}
		run.Privacy.Clipping = config.Clipping{Rule: "online"}
		learned, _ := executedRun(t, run, folder)
		s := learned.Steps
		if first := learned.History.Rounds[0].Steps; s == nil || first.Clip == s.Clip {
			t.Fatalf("%s: the clip is learned, and recorded are %+v and %+v", noise, first, s)
		}
		for name, v := range map[string]*event.Number{"clipped": s.Clipped, "clip_agree": s.ClipAgree, "step_agree": s.StepAgree} {
			if known := v != nil; known != (noise == "simulated") {
				t.Errorf("%s: %s is known: %v", noise, name, known)
			}
		}
		if (s.Norms != nil) != (noise == "simulated") {
			t.Errorf("%s: norms %v", noise, s.Norms)
		}
	}
}
