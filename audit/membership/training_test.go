package membership

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// TestModelsOfOtherDataAreNotTaken: a model that is there is taken only if it was trained on
// the data that are asked for, and one that does not say on which is not.
func TestModelsOfOtherDataAreNotTaken(t *testing.T) {
	run, err := config.Resolve([]byte(byHeart), []string{"algorithm.local.epochs=1"}, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	path, folder := filepath.Join(t.TempDir(), "reference"), pupils(t, 2, 60)
	federation, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	trained := 0
	take := func() error {
		_, err := Trained(context.Background(), path, run, federation, "", func(sim.Moment) { trained++ })
		return err
	}
	if err := take(); err != nil || trained == 0 {
		t.Fatal(trained, err)
	}
	once := trained
	if err := take(); err != nil || trained != once {
		t.Errorf("the same data: %d ticks more, %v", trained-once, err)
	}
	federation.Train[0].X[0]++
	if err := take(); !errors.Is(err, ErrOtherModel) || !strings.Contains(err.Error(), "other data") {
		t.Errorf("other data: %v", err)
	}
	federation.Train[0].X[0]--
	if err := os.Remove(filepath.Join(path, sim.FingerprintFile)); err != nil {
		t.Fatal(err)
	}
	if err := take(); !errors.Is(err, ErrOtherModel) || !strings.Contains(err.Error(), "does not say") {
		t.Errorf("nobody knows which data: %v", err)
	}
}
