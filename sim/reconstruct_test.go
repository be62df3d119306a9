package sim_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/sim"
)

// TestPicturesAreGivenBack: a private run in one place on pictures that are their own
// targets, from the files to the figure: the error falls, it is that of the returned
// model on the test part, and it is charged as any other run.
func TestPicturesAreGivenBack(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "fashion-mnist"), 0o755); err != nil {
		t.Fatal(err)
	}
	for part, n := range map[string]int{"train": 200, "t10k": 60} {
		images := []byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, 28, 0, 0, 0, 28}
		labels := []byte{0, 0, 8, 1, 0, 0, 0, byte(n)}
		for i := range n { // a bright square, whose place tells pictures apart
			picture := make([]byte, 784)
			for y := range 20 {
				for x := range 20 {
					picture[(y+i%8)*28+x+i/8%8] = 250
				}
			}
			images, labels = append(images, picture...), append(labels, byte(i%10))
		}
		for name, raw := range map[string][]byte{"-images-idx3-ubyte.gz": images, "-labels-idx1-ubyte.gz": labels} {
			if err := os.WriteFile(filepath.Join(folder, "fashion-mnist", part+name), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	run, err := config.Resolve([]byte(`
data: {kind: fashion-mnist, task: reconstruct}
model: {kind: network, layers: [{kind: linear, units: 8}, {kind: tanh}, {kind: linear, units: 784}, {kind: sigmoid}]}
algorithm: {mode: sound, rounds: 4, local: {batch: 40, step: 20}}
privacy: {epsilon: 8, public_size: 200}
`), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, data.NewFolder(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	mse, first := float64(res.Metrics.MSE.Value), float64(res.History.Rounds[0].Loss)
	if len(res.History.Rounds) != 4 || !(mse < 0.95*first) || math.Abs(mse-float64(res.Metrics.Loss)) > 1e-12 {
		t.Errorf("an MSE of %v, %v after the first of %d rounds, judged as %v", mse, first, len(res.History.Rounds), res.Metrics.Loss)
	}
	// As long as grey is all that the outputs say, a square of 400 of 784 pixels costs 1/4.
	if !(first > 0.05 && first < 0.27) {
		t.Errorf("an MSE of %v after one round", first)
	}
	if p := res.Participants[0]; p.Claim != "proved" || !(p.Epsilon > 7 && p.Epsilon <= 8) || p.Figures.MSE == nil || p.Figures.MSE.Low == nil || p.Figures.MAE != nil {
		t.Errorf("%+v", p)
	}
}
