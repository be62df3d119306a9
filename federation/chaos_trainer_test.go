package federation

import (
	"context"
	"os"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/trainer"
)

// TestTrainerExample: the example's files are what join reads, and its program starts
// where they say.
func TestTrainerExample(t *testing.T) {
	const dir = "../examples/trainer"
	text, err := os.ReadFile(dir + "/join.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := LoadJoinFile(text, dir)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(f.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPolicy(policy); err != nil {
		t.Error(err)
	}
	if f.Data.Kind != "trainer" || !f.Trainer.IsSet() || f.Trainer.Mode != "" {
		t.Errorf("read %+v", f)
	}
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1") // the example's folder stays as it is
	f.Trainer.Environment = []string{"PYTHONDONTWRITEBYTECODE"}
	run, err := config.Resolve([]byte(testRun), nil, checks()...)
	if err != nil {
		t.Fatal(err)
	}
	half, err := halfOf(f, nil, nil)(context.Background(), Plan{Participants: 3, Shape: data.Shape{Features: 2}}, run, run, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if half.Data.Len() != 200 || half.Parameters != 2 || half.Failure == nil {
		t.Errorf("the half has %d examples and %d parameters", half.Data.Len(), half.Parameters)
	}
	f.Trainer.Mode = trainer.ModeUpdate // without a clip
	if faults := f.check(); len(faults) == 0 {
		t.Error("mode update without a clip was taken")
	}
}
