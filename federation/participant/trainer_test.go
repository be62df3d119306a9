package participant

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/trainer"
	"github.com/coterie-fl/coterie/internal/tier"
)

// TestTrainerExample: the example's files are what join reads, and its program starts
// where they say.
func TestTrainerExample(t *testing.T) {
	const dir = "../../examples/trainer"
	text, err := os.ReadFile(dir + "/join.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := plan.LoadJoinFile(text, dir)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(f.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.LoadPolicy(policy); err != nil {
		t.Error(err)
	}
	if f.Data.Kind != "trainer" || !f.Trainer.IsSet() || f.Trainer.Mode != "" {
		t.Errorf("read %+v", f)
	}
	f.Trainer.Command[0], f.Trainer.Environment = tier.PythonProgram(t), tier.Environment()
	run, err := plan.Resolve([]byte(federationtest.Run))
	if err != nil {
		t.Fatal(err)
	}
	half, err := HalfOf(f, nil, nil)(context.Background(), plan.Plan{Participants: 3, Shape: data.Shape{Features: 2}}, run, run, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if half.Data.Len() != 200 || half.Parameters != 2 || half.Failure == nil {
		t.Errorf("the half has %d examples and %d parameters", half.Data.Len(), half.Parameters)
	}
	clipless := strings.Replace(string(text), "trainer:\n", "trainer:\n  mode: "+string(trainer.ModeUpdate)+"\n", 1)
	if _, err := plan.LoadJoinFile([]byte(clipless), dir); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "clip") {
		t.Errorf("mode update without a clip is taken, or refused for another reason: %v", err)
	}
}

// TestTrainersAreNotMisled: what a trainer would not hear of is refused before it starts.
func TestTrainersAreNotMisled(t *testing.T) {
	for loss, weights := range map[string][]float64{"focal": nil, "cross-entropy": {1, 2}} {
		run := config.Default("vehicle", "mr-mtl", "sound")
		run.Algorithm.Local.Loss, run.Algorithm.Local.ClassWeights = loss, weights
		f := plan.JoinFile{Trainer: trainer.Spec{Command: []string{"/there/is/no/such/program"}}}
		_, err := HalfOf(f, nil, nil)(context.Background(), plan.Plan{Shape: data.Shape{Features: 3, Classes: 2}}, run, run, 0)
		if err == nil || !strings.Contains(err.Error(), "trainers are not told") {
			t.Errorf("%s %v: %v", loss, weights, err)
		}
	}
}
