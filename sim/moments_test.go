package sim

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// TestPaidMoments: silos that pay for their moments spend their target, their user is
// told, and what was stopped goes on with the same constants to the same bytes.
func TestPaidMoments(t *testing.T) {
	folder := smallSchools(t)
	for _, relation := range []string{"replace-one", "add-remove"} {
		run := config.Default("school", "mr-mtl", "sound")
		run.Data.Standardise, run.Privacy.Relation, run.Algorithm.Rounds = "paid", relation, 9
		if relation == "add-remove" {
			run.Privacy.PublicSize, run.Algorithm.Weights = 40, "equal"
		}
		for _, check := range Checks() {
			if faults := check(run); faults != nil {
				t.Fatal(faults)
			}
		}
		hash := func(stops bool) (Result, string) {
			d := directory(t, run)
			return executeWhole(t, d, run, folder, stops), d.File(ModelFile)
		}
		res, path := hash(false)
		if again, _ := hash(true); again.ModelSHA256 != res.ModelSHA256 || again.Metrics.Loss != res.Metrics.Loss || again.Metrics.TrainLoss != res.Metrics.TrainLoss {
			t.Errorf("%s: with stops %+v, without %+v", relation, again.Metrics, res.Metrics)
		}
		for _, s := range res.Participants {
			if s.Moments == nil || !(*s.Moments > 0) || s.Epsilon > 6 || s.Epsilon < 5.99 || s.Claim != event.ClaimProved {
				t.Errorf("%s: silo %+v", relation, s)
			}
		}
		p := res.Privacy
		if told := strings.Join(p.Says, "\n"); !strings.Contains(told, "paid for") || !strings.Contains(told, "0 to 100 (features 3, 4)") {
			t.Errorf("%s: nobody is told: %s", relation, told)
		}
		if strings.Contains(strings.Join(p.NotCovered, "\n"), "standardisation") {
			t.Errorf("%s: not covered: %v", relation, p.NotCovered)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		tensors, err := model.ReadTensors[float64](file, 1<<20)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]float64{}
		for _, one := range tensors {
			found[one.Name] = one.Values
		}
		raw, err := folder.Load(run.Data, run.Seed)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range res.Participants {
			theta, centre, scale := found[fmt.Sprintf("client.%d", i)], found[fmt.Sprintf("client.%d.centre", i)], found[fmt.Sprintf("client.%d.scale", i)]
			if len(theta) != 29 || len(centre) != 28 || len(scale) != 28 {
				t.Fatalf("%s: the constants of silo %d are not beside its model: %v", relation, i, found)
			}
			// Whoever has the file has the model that was judged.
			mse := 0.0
			for k, y := range raw.Train[i].Held.Y {
				out := theta[28]
				for j, x := range raw.Train[i].Held.X[k*28 : (k+1)*28] {
					out += theta[j] * (x - centre[j]) / scale[j]
				}
				mse += (out - y) * (out - y) / float64(raw.Train[i].Held.Len())
			}
			if math.Abs(mse-float64(*s.Loss)) > 1e-9 {
				t.Errorf("%s: silo %d has a test error of %v, by its file %v", relation, i, *s.Loss, mse)
			}
		}
	}
}
