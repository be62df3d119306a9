package sim

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

var soak = flag.Bool("soak", false, "run the long tests too")

// smallSchools writes a school file with a few made-up schools.
func smallSchools(t *testing.T) *data.Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "school"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "school", "school.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	var text strings.Builder
	text.WriteString("school")
	for j := range 28 {
		fmt.Fprintf(&text, ",f%02d", j)
	}
	text.WriteString(",score\n")
	family := rng.NewFamily(4, "made-up schools")
	for school := range 6 {
		s := family.Stream(0, school)
		for range 30 + 10*school {
			score := 20 + 5*school
			fmt.Fprint(&text, school)
			for j := range 28 {
				x := s.Below(2)
				if j == 27 {
					x = 1
				}
				if j < 3 {
					score += 3 * x
				}
				fmt.Fprintf(&text, ",%d", x)
			}
			fmt.Fprintf(&text, ",%d\n", min(70, score+s.Below(8)))
		}
	}
	if _, err := z.Write([]byte(text.String())); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return data.NewFolder(dir)
}

func smallRun(kind string) config.Run {
	run := config.Default("school", kind, "paper")
	run.Seed, run.Name, run.Algorithm.Rounds = 3, kind, 15
	return run
}

// TestSilosGiveTheSameBytes: whatever the number of workers, and however often a run
// is stopped in between.
func TestSilosGiveTheSameBytes(t *testing.T) {
	folder := smallSchools(t)
	for _, kind := range []string{"mr-mtl", "mocha", "ifca", "auto", "client"} {
		run := smallRun("mr-mtl")
		switch kind {
		case "auto":
			run.Algorithm.Lambda = config.LambdaAuto
		case "client":
			run = smallRun("fedavg")
			run.Privacy.Protects, run.Algorithm.Weights = "client", "equal"
		default:
			run = smallRun(kind)
		}
		hash := func(workers int, stops bool) string {
			run.Run.Workers = workers
			res := executeWhole(t, directory(t, run), run, folder, stops)
			if len(res.History.Rounds) != run.Algorithm.Rounds {
				t.Errorf("%s: %d rounds in the history", kind, len(res.History.Rounds))
			}
			return res.ModelSHA256
		}
		want := hash(1, false)
		if got := hash(2, false); got != want {
			t.Errorf("%s: two workers give %s, one %s", kind, got, want)
		}
		if got := hash(2, true); got != want {
			t.Errorf("%s: with stops %s, without %s", kind, got, want)
		}
	}
}

// TestSiloResult holds what a user is told.
func TestSiloResult(t *testing.T) {
	folder := smallSchools(t)
	run := smallRun("mr-mtl")
	run.Data.Standardise = "none"
	run.Privacy.Silos = []config.SiloTarget{{Name: "school 2", Epsilon: 2, RecordsPerPerson: 2}}
	res, err := execute(t, context.Background(), directory(t, run), run, folder, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if res.Metrics.Error != nil || len(res.Participants) != 6 || res.Judge != "own" || res.Privacy.Protects != "example" {
		t.Fatalf("metrics %+v, %d silos", res.Metrics, len(res.Participants))
	}
	weighted, total := 0.0, 0.0
	for _, s := range res.Participants {
		weighted += float64(*s.Loss) * float64(s.TestExamples)
		total += float64(s.TestExamples)
		if s.Epsilon > s.Target.Epsilon || s.Sampling == "" || s.Relation != string(event.AddRemove) || s.Claim != event.ClaimHeuristic || s.Proved == nil {
			t.Errorf("silo %+v", s)
		}
	}
	if got := float64(res.Metrics.Loss); got < 0.999999*weighted/total || got > 1.000001*weighted/total {
		t.Errorf("loss %v, the silos' weighted mean is %v", got, weighted/total)
	}
	own := res.Participants[2]
	if own.Target.Epsilon != 2 || own.ProtectsPerson == nil || own.ProtectsPerson.Epsilon > 2 || own.ProtectsPerson.Delta > 1.0001e-3 || own.Noise <= res.Participants[1].Noise {
		t.Errorf("a silo with its own target: %+v, person %+v", own, own.ProtectsPerson)
	}
	p := res.Privacy
	if p.Epsilon > 6 || p.Epsilon < 5.9 || p.Proved == nil || p.Proved.Relation != event.ReplaceOne || p.Proved.Epsilon <= p.Epsilon {
		t.Errorf("the federation's line: %+v", p)
	}
	told := strings.Join(append(append(p.NotCovered, p.Assumes...), p.Says...), "\n")
	for _, word := range []string{"shuffled", "tuning", "two participants", "own model", "simulation only"} {
		if !strings.Contains(told, word) {
			t.Errorf("%q is not told:\n%s", word, told)
		}
	}
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil || back.Privacy.Epsilon != p.Epsilon {
		t.Errorf("the result does not come back: %v", err)
	}
}

// TestProofIsWithheld: nothing is called proved where something that no accounting
// covers has touched the rows, and every claim carries its whole list.
func TestProofIsWithheld(t *testing.T) {
	folder := smallSchools(t)
	for _, standardise := range []string{"silo", "none"} {
		run := smallRun("mr-mtl")
		run.Data.Standardise = standardise
		res, err := execute(t, context.Background(), directory(t, run), run, folder, nothing)
		if err != nil {
			t.Fatal(err)
		}
		p := res.Privacy
		covered := standardise == "none"
		if (p.Proved != nil) != covered || (res.Participants[0].Proved != nil) != covered {
			t.Errorf("standardise %s: proved %+v, of a silo %v", standardise, p.Proved, res.Participants[0].Proved)
		}
		if told := strings.Contains(strings.Join(p.NotCovered, "\n"), "standardisation"); told == covered {
			t.Errorf("standardise %s: not covered is %v", standardise, p.NotCovered)
		}
		if p.Proved == nil {
			continue
		}
		for _, word := range []string{"simulation only", "number of a participant's examples"} {
			if !strings.Contains(strings.Join(p.Proved.NotCovered, "\n"), word) {
				t.Errorf("the proved number does not say %q: %v", word, p.Proved.NotCovered)
			}
		}
	}
}

// TestSoundSilos: under sound accounting the number is proved, and public constants
// scale the features.
func TestSoundSilos(t *testing.T) {
	folder := smallSchools(t)
	for _, relation := range []string{"replace-one", "add-remove"} {
		run := config.Default("school", "mr-mtl", "sound")
		run.Algorithm.Rounds, run.Privacy.Relation, run.Privacy.Noise = 5, relation, "exact-seeded"
		if relation == "add-remove" {
			run.Privacy.PublicSize, run.Algorithm.Weights = 40, "equal"
		}
		res, err := execute(t, context.Background(), directory(t, run), run, folder, nothing)
		if err != nil {
			t.Fatal(err)
		}
		if p := res.Privacy; p.Claim != event.ClaimProved || string(p.Relation) != relation || p.Proved != nil || p.Epsilon > 6 {
			t.Errorf("%s: %+v", relation, p)
		}
	}
}

// TestSchoolFigures holds the mean test error against the README of paper 002's
// authors (FedAvg 0.02564, local 0.02628, MR-MTL 0.02394 at epsilon 6): at most 4 %
// above each. With -soak over 10 seeds, in that order, and with lambda auto.
func TestSchoolFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("figures do not depend on the race detector")
	}
	folder := data.NewFolder(os.Getenv("COTERIE_DATA"))
	if folder == nil {
		t.Skip("COTERIE_DATA is not set: no School data")
	}
	seeds := uint64(1)
	if *soak {
		seeds = 10
	}
	measure := func(kind string, lambda config.Lambda, epsilon float64) float64 {
		sum := 0.0
		for seed := uint64(1); seed <= seeds; seed++ {
			run := config.Default("school", kind, "paper")
			run.Seed, run.Algorithm.Rounds, run.Algorithm.Lambda, run.Privacy.Epsilon = seed, 201, lambda, epsilon
			run.Algorithm.Stop.Every = 201
			s, err := New(run, folder)
			if err != nil {
				t.Fatal(err)
			}
			for more := true; more; {
				if more, err = s.Step(); err != nil {
					t.Fatal(err)
				}
			}
			_, mse := s.Round()
			s.Close()
			sum += mse
		}
		t.Logf("%s, lambda %s, epsilon %v: %.5f", kind, lambda, epsilon, sum/float64(seeds))
		return sum / float64(seeds)
	}
	local, fedavg, mrmtl := measure("local", "1", 6), measure("fedavg", "1", 6), measure("mr-mtl", "1", 6)
	for name, f := range map[string][2]float64{"local": {local, 0.02628}, "fedavg": {fedavg, 0.02564}, "mr-mtl": {mrmtl, 0.02394}} {
		if f[0] > 1.04*f[1] {
			t.Errorf("%s: %.5f, the authors' %.5f", name, f[0], f[1])
		}
	}
	if !(mrmtl < fedavg && mrmtl < local) {
		t.Errorf("mr-mtl %.5f, fedavg %.5f, local %.5f: MR-MTL should be best", mrmtl, fedavg, local)
	}
	if !*soak {
		return
	}
	if !(fedavg < local) {
		t.Errorf("fedavg %.5f, local %.5f: FedAvg should be better", fedavg, local)
	}
	if auto := measure("mr-mtl", config.LambdaAuto, 6); auto > fedavg-0.7*(fedavg-mrmtl) {
		t.Errorf("auto %.5f, fedavg %.5f, lambda 1 %.5f", auto, fedavg, mrmtl)
	}
	for _, epsilon := range []float64{1, 3} {
		if auto, ends := measure("mr-mtl", config.LambdaAuto, epsilon), min(measure("local", "1", epsilon), measure("fedavg", "1", epsilon)); auto > 1.02*ends {
			t.Errorf("epsilon %v: auto %.5f, the better end %.5f", epsilon, auto, ends)
		}
	}
}
