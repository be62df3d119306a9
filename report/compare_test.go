package report

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/sim"
)

// silosFile is drawn data of which everybody holds out a part.
const silosFile = "data: {kind: synthetic, users: 6, samples: 40, test_share: 0.3}\nalgorithm: {kind: mr-mtl, rounds: 5, clients_per_round: 0}\n" +
	"privacy: {protects: example, epsilon: 4}\njudge: {compare: [local, fedavg]}\nrun: {checkpoint_seconds: 3600}\n"

// compareIn makes the run in a directory, or goes on with it, until so many rounds in all
// are made (0: to the end), and counts those that it made itself.
func compareIn(t *testing.T, dir string, until int, ticks *int) (sim.Result, error) {
	t.Helper()
	run, err := config.Resolve([]byte(silosFile), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	var d *sim.Directory
	if _, err := os.Stat(dir); err == nil {
		if d, run, err = sim.OpenDirectory(dir); err != nil {
			t.Fatal(err)
		}
	} else {
		text, err := run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if d, err = sim.CreateDirectory(dir, text); err != nil {
			t.Fatal(err)
		}
	}
	defer d.Close()
	s, err := sim.New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	last := -1
	return Run(ctx, d, s, "test", func(m sim.Moment) {
		round := m.Round
		if i := slices.Index(run.Judge.Compare, m.Method); i >= 0 {
			round += (i + 1) * run.Algorithm.Rounds
		}
		if round != last && m.Round > 0 { // a run says more often how far it is
			last = round
			*ticks++
		}
		if round == until {
			stop()
		}
	})
}

// comparableResult is a result without what differs from directory to directory.
func comparableResult(r sim.Result) sim.Result {
	r.RunID, r.Directory, r.Report, r.Command, r.WallSeconds = "", "", "", "", 0
	return r
}

// TestComparisonGoesOn: stopped at any of 15 rounds of a run and the two that it is
// compared with, it goes on to the same result; and the runs beside it are those of their
// own run files.
func TestComparisonGoesOn(t *testing.T) {
	folder, ticks := t.TempDir(), 0
	whole, err := compareIn(t, filepath.Join(folder, "whole"), 0, &ticks)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Comparison) != 2 || whole.Comparison[0].Algorithm != "local" || len(whole.Comparison[1].Participants) != 6 || whole.Comparison[0].Figure != "rmse" {
		t.Fatalf("%+v", whole.Comparison)
	}
	for _, c := range whole.Comparison {
		for i, p := range c.Participants {
			own := whole.Participants[i].Figures.RMSE
			if p.Name == "" || p.Difference == nil || math.Abs(float64(p.Difference.Value-(p.Figure.Value-p.Other.Value))) > 1e-12 || p.Figure.Value != own.Value {
				t.Errorf("%s, %s: %+v", c.Algorithm, p.Name, p)
			}
			// A fall of the error is a gain.
			if p.Verdict == sim.VerdictBetter && *p.Difference.High >= 0 || p.Verdict == sim.VerdictWorse && *p.Difference.Low <= 0 {
				t.Errorf("%s, %s: %s of %v to %v", c.Algorithm, p.Name, p.Verdict, *p.Difference.Low, *p.Difference.High)
			}
		}
	}
	for _, stop := range []int{3, 5, 8, 10, 13} {
		dir := filepath.Join(folder, "stopped", string(rune('a'+stop)))
		if _, err := compareIn(t, dir, stop, &ticks); !errors.Is(err, sim.ErrInterrupted) || !strings.Contains(err.Error(), "--resume "+dir) || strings.Contains(err.Error(), "--resume "+dir+"/compare") {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		if _, err := os.Stat(filepath.Join(dir, sim.ResultFile)); err == nil {
			t.Fatalf("stopped at %d, and there is a result", stop)
		}
		ticks = 0
		res, err := compareIn(t, dir, 0, &ticks)
		// What was finished is found finished by one look each.
		if finished := stop / 5; ticks > 15-stop+finished {
			t.Errorf("stopped at %d: %d rounds were made again", stop, ticks-(15-stop))
		}
		if err != nil || !reflect.DeepEqual(comparableResult(res), comparableResult(whole)) {
			t.Errorf("stopped at %d: another result (%v)", stop, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", sim.CheckpointFile)); left != nil {
			t.Errorf("checkpoints are left: %v", left)
		}
	}
	others, err := Beside(filepath.Join(folder, "whole"), whole)
	if err != nil || len(others) != 2 {
		t.Fatal(len(others), err)
	}
	for i, other := range others {
		run, err := config.Resolve([]byte(other.Config), nil, sim.Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		if run.Algorithm.Kind != whole.Comparison[i].Algorithm || other.Privacy.Epsilon != whole.Privacy.Epsilon && other.Algorithm != "local" {
			t.Errorf("%s spent %v, the run %v", other.Algorithm, other.Privacy.Epsilon, whole.Privacy.Epsilon)
		}
		text, err := run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		d, err := sim.CreateDirectory(filepath.Join(folder, "alone", other.Algorithm), text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.New(run, data.NewFolder(""))
		if err != nil {
			t.Fatal(err)
		}
		alone, err := Run(context.Background(), d, s, "test", func(sim.Moment) {})
		if err != nil || alone.ModelSHA256 != other.ModelSHA256 || !reflect.DeepEqual(alone.Metrics, whole.Comparison[i].Metrics) {
			t.Errorf("%s by itself is another run (%v)", other.Algorithm, err)
		}
		s.Close()
		d.Close()
	}
	said := false
	for _, line := range whole.Privacy.NotCovered {
		said = said || line == sim.UncoveredComparison
	}
	if !said {
		t.Errorf("not covered: %q", whole.Privacy.NotCovered)
	}
	// A folder of another run file is not mistaken for the comparison.
	dir := filepath.Join(folder, "foreign")
	if _, err := compareIn(t, dir, 3, &ticks); !errors.Is(err, sim.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "compare-local"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "compare-local", sim.RunFile), []byte("seed: 4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := compareIn(t, dir, 0, &ticks); err == nil || !strings.Contains(err.Error(), "holds a run of another run file") {
		t.Errorf("a foreign folder: %v", err)
	}
}

// comparedWith is a made-up comparison of four participants.
func comparedWith(method, figure string) sim.Comparison {
	number := func(v float64) *event.Number { n := event.Number(v); return &n }
	of := func(v float64) *metrics.Figure {
		return &metrics.Figure{Value: event.Number(v), Low: number(v - 0.05), High: number(v + 0.05)}
	}
	return sim.Comparison{Algorithm: method, Figure: figure, Participants: []sim.Compared{
		{Name: "north", Examples: 120, Figure: of(0.9), Other: of(0.8), Difference: of(0.1), Verdict: sim.VerdictBetter},
		{Name: "<south>", Examples: 80, Figure: of(0.7), Other: of(0.8), Difference: of(-0.1), Verdict: sim.VerdictWorse},
		{Name: "east", Examples: 30, Figure: of(0.8), Other: of(0.79), Difference: of(0.01), Verdict: sim.VerdictUnclear},
		{Name: "west", Examples: 2},
	}}
}

func TestPaidForWhom(t *testing.T) {
	var out bytes.Buffer
	r := sim.Summary{Algorithm: "mr-mtl", Privacy: fl.Privacy{Protects: "example"}, Comparison: []sim.Comparison{comparedWith("local", "auc"), comparedWith("fedavg", "auc"), {Algorithm: "ifca"}}}
	if err := Paid(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Did taking part pay, for whom?", "AUC, mr-mtl", "0.9000 (0.8500 to 0.9500)", "+0.1 (+0.05 to +0.15)  better", "west                2 ",
		"Taking part paid for 1 of 4 participants, worse for 1; for 1 the interval leaves it open. 1 cannot be compared: AUC is not defined on what they hold out.",
		"Is mr-mtl better than fedavg, for whom?", "MR-MTL is better than FedAvg for 1 of 4 participants",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "ifca") {
		t.Errorf("nobody was compared with ifca:\n%s", out.String())
	}
}
