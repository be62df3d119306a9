package clipping

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
	"github.com/coterie-fl/coterie/sim"
)

// TestRunFiles: every cell of every scale is a run file that its checks accept, and says
// what its key says.
func TestRunFiles(t *testing.T) {
	seen := map[method]bool{}
	for _, task := range []task{digits, clothes, news} {
		l := &lab.Lab{Options: lab.Options{Scale: lab.Full, Seeds: 1}}
		if task.thesis == nil {
			var err error
			if task.thesis, err = thesisTables(); err != nil {
				t.Fatal(err)
			}
		}
		known := map[string]bool{}
		for _, kind := range config.DataKinds() {
			known[kind] = true
		}
		if !known[task.kind] {
			t.Errorf("no data kind %s", task.kind)
			continue
		}
		done := map[string]bool{} // one cell of a method, arm and momentum will do
		for _, k := range task.cells(l) {
			name := string(k.Method) + "|" + string(k.Arm)
			if k.Momentum > 0 {
				name += "|momentum"
			}
			if done[name] {
				continue
			}
			done[name], seen[k.Method] = true, true
			run, noise, err := task.run(l, k)
			if err != nil {
				t.Fatal(err)
			}
			if run, err = l.Resolve(run); err != nil {
				t.Errorf("%s, %s: %v", task.kind, name, err)
				continue
			}
			p, a := run.Privacy, run.Algorithm
			if a.Rounds*a.Local.Steps != k.Steps || a.Local.Step != k.Setting.Step || a.Local.Batch != batch || run.Seed != k.Seed || a.Stop.Return != "last" || run.Judge.By != "test" || (a.Local.Optimiser == "momentum" && a.Local.Momentum == 0.9) != (k.Momentum > 0) {
				t.Errorf("%s, %s: %+v", task.kind, name, a)
			}
			if k.Method == noDP {
				if p.Protects != "nothing" || noise != 0 {
					t.Errorf("%s, %s: protects %s", task.kind, name, p.Protects)
				}
				continue
			}
			rule := map[method]string{online: "online", threshold: "fixed", quantile: "quantile", adamWOSM: "adam-wosm"}[k.Method]
			if p.Clipping.Rule != rule || p.Clip != k.Setting.Clip || p.Clipping.Quantile != k.Setting.Quantile || p.NoiseMultiplier != 0 || p.Epsilon != k.Epsilon || p.Runs != k.Runs || noise < 0.3 || p.Delta != delta {
				t.Errorf("%s, %s: %+v", task.kind, name, p)
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("methods with cells: %v", seen)
	}
}

// TestCellsOfAGridDrawForThemselves: no two cells that share a budget draw by one seed, and
// what shares none with others draws as a run alone does.
func TestCellsOfAGridDrawForThemselves(t *testing.T) {
	for _, task := range []task{digits, clothes, news} {
		var err error
		if task.thesis, err = thesisTables(); err != nil {
			t.Fatal(err)
		}
		for _, scale := range []string{lab.Smoke, lab.Quick, lab.Full, lab.Grids} {
			l := &lab.Lab{Options: lab.Options{Scale: scale, Seeds: 2}}
			type draw struct {
				row  row
				seed uint64
			}
			drawn := map[draw]key{}
			for _, k := range task.at(scale).cells(l) {
				place, err := placeOf(k.Method, k.Runs, k.Setting)
				if err != nil || place >= max(k.Runs, 1) {
					t.Fatalf("%v: place %d, %v", k, place, err)
				}
				if k.Runs <= 1 {
					if place != 0 {
						t.Errorf("%v, a run alone, has place %d", k, place)
					}
					continue
				}
				d := draw{row{k.Method, k.Arm, k.Epsilon, k.Runs, k.Momentum, k.Steps}, fl.DrawSeed(config.Run{Seed: k.Seed, Privacy: config.Privacy{Run: place}})}
				if other, ok := drawn[d]; ok && other != k {
					t.Errorf("%v draws as %v", k, other)
				}
				drawn[d] = k
			}
		}
	}
	if _, err := placeOf(online, 5, setting{Step: 7, Clip: startClip}); err == nil || !strings.Contains(err.Error(), "rho 7, C 0.1 is none of the settings whose 5 runs") {
		t.Errorf("a setting of no grid: %v", err)
	}
}

// TestCellsSayWhatTheyDrew: a real cell has the grid's noise, and the place by which it was
// drawn; of cells that were drawn alike, as committed ones are, the page says so.
func TestCellsSayWhatTheyDrew(t *testing.T) {
	o := options(t, lab.Smoke, 1)
	l := labtest.New(t, lab.Experiment{ID: "drawn", Needs: news.needs, Seeds: map[string]int{lab.Smoke: 1}}, o)
	task := news.at(lab.Smoke)
	cells := map[key]record{}
	for place, s := range gridOf(threshold, 5)[:3] {
		k := key{Study: news.kind, Method: threshold, Epsilon: 3, Runs: 25, Setting: s, Seed: 1, Steps: task.steps()}
		got, err := simulate(l, task, k)
		if err != nil {
			t.Fatal(err)
		}
		run, noise, err := task.run(l, k)
		if err != nil || got.Run != place || run.Privacy.Run != place || got.Noise != short(noise) {
			t.Errorf("%v: %+v, asked for noise %v by place %d, %v", k, got, noise, run.Privacy.Run, err)
		}
		cells[k] = record{Key: k, Value: got}
	}
	b := book{task: task, cells: cells}
	place := b.place(threshold, 3, 5)
	shows := func() bool {
		g, _ := b.best(place)
		return strings.Contains(b.shown(g, "").Note, "share their draws")
	}
	if b.alike(place) != 0 || b.drawnAlike() != nil || shows() {
		t.Errorf("%d cells share draws: %q", b.alike(place), b.drawnAlike())
	}
	for k, r := range cells { // as they were made before
		if r.Value.Run == 2 {
			r.Value.Run = 0
			cells[k] = r
		}
	}
	if said := strings.Join(b.drawnAlike(), ""); b.alike(place) != 2 || !strings.HasPrefix(said, "2 finished cells of 1 grids") || !shows() {
		t.Errorf("%d cells share draws: %q", b.alike(place), said)
	}
}

// TestArmsDiffer: every arm changes the run file, no two alike.
func TestArmsDiffer(t *testing.T) {
	l := &lab.Lab{Options: lab.Options{Scale: lab.Full, Seeds: 1}}
	texts := map[string]arm{}
	cells := digits.armCells(key{Study: digits.kind, Seed: 1, Steps: digits.steps()})
	for _, k := range cells {
		run, _, err := digits.run(l, k)
		if err != nil {
			t.Fatal(err)
		}
		text, err := run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := texts[string(text)]; ok {
			t.Errorf("%q is %q", k.Arm, other)
		}
		texts[string(text)] = k.Arm
	}
	if len(cells) != len(armOf) {
		t.Errorf("%d cells of %d arms", len(cells), len(armOf))
	}
}

// TestCellsGoOn: a study that was stopped makes only what is left, a line that a kill has
// cut is made again, and one that is no cell is refused by its number.
func TestCellsGoOn(t *testing.T) {
	o := options(t, lab.Quick, 1)
	o.Workers = 1
	ctx, cancel := context.WithCancel(t.Context())
	var made []key
	e := digits.experiment("clipping-mnist", "title", "paper", "", "", fake(&made))
	e.Needs = nil
	o.Tick = func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}
	if _, err := e.Run(ctx, o); !errors.Is(err, sim.ErrInterrupted) {
		t.Fatal(err)
	}
	path := filepath.Join(o.Out, "clipping-mnist.jsonl")
	lines, err := os.ReadFile(path)
	if err != nil || strings.Count(string(lines), "\n") != len(made) || len(made) < 3 {
		t.Fatalf("%d cells were made, %v:\n%s", len(made), err, lines)
	}
	if err := os.WriteFile(path, lines[:len(lines)-20], 0o644); err != nil { // the last one is cut
		t.Fatal(err)
	}
	before := made
	o.Tick = func(int, int) {}
	_, made = launched(t, digits, o)
	all := digits.at(lab.Quick).cells(&lab.Lab{Options: o})
	if len(made) != len(all)-len(before)+1 || made[0] != before[len(before)-1] {
		t.Errorf("%d cells, %d of them before: then %d, the first %+v", len(all), len(before), len(made), made[0])
	}
	if _, made = launched(t, digits, o); len(made) != 0 {
		t.Errorf("%d cells were made again", len(made))
	}
	lines, _ = os.ReadFile(path)
	if err := os.WriteFile(path, []byte(strings.Replace(string(lines), `"figure"`, `"figur"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "line 1 is no finished cell") {
		t.Error(err)
	}
}

// TestTimeIsKept: after its time a study begins no cell, says so, and goes on later.
func TestTimeIsKept(t *testing.T) {
	o := options(t, lab.Full, 1)
	o.For = time.Nanosecond
	s, made := launched(t, digits, o)
	if len(made) != 0 || !strings.Contains(strings.Join(s.Caveats, "\n"), "0 of ") {
		t.Errorf("%d cells; %q", len(made), s.Caveats)
	}
	o.For = time.Hour
	if _, made = launched(t, digits, o); len(made) == 0 {
		t.Error("nothing is made in an hour")
	}
}

// TestWhatMattersIsFirst: whoever stops a full run early has the first seed of the table's
// ends.
func TestWhatMattersIsFirst(t *testing.T) {
	cells := digits.cells(&lab.Lab{Options: lab.Options{Scale: lab.Full, Seeds: 3}})
	if cells[0].Epsilon != 3 || cells[0].Method != online || cells[0].Seed != 1 {
		t.Errorf("%+v", cells[0])
	}
	at := map[float64]int{}
	for i, k := range cells {
		if _, ok := at[k.Epsilon]; !ok {
			at[k.Epsilon] = i
		}
	}
	if !(at[3] < at[9] && at[9] < at[5] && at[5] < at[7]) {
		t.Errorf("first cells by epsilon: %v", at)
	}
}

// TestCommittedCells: what came with the program are whole runs without changed settings,
// each of a commit, a day and a cell that full scale or the grids ask for.
func TestCommittedCells(t *testing.T) {
	for name, task := range map[string]task{"clipping-mnist": digits, "clipping-fashion": clothes, "clipping-agnews": news} {
		text, err := rows.ReadFile("rows/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if task.thesis, err = thesisTables(); err != nil {
			t.Fatal(err)
		}
		asked := map[key]bool{}
		for _, scale := range []string{lab.Full, lab.Grids} {
			for _, k := range task.cells(&lab.Lab{Options: lab.Options{Scale: scale, Seeds: 5}}) {
				asked[k] = true
			}
		}
		for k, r := range labtest.Committed[key, outcome](t, text) {
			if k.Method == online && k.Arm == "" {
				// Signs move clip and step by rate at most, in every step.
				for _, m := range r.Value.Path {
					far := math.Exp(rate*float64(m.Steps)) * 1.0001
					if c, s := float64(*m.Clip)/k.Setting.Clip, float64(*m.Step)/k.Setting.Step; c > far || c < 1/far || s > far || s < 1/far {
						t.Errorf("%s: %+v has clip %v and step %v after %d steps", name, k, *m.Clip, *m.Step, m.Steps)
					}
				}
			}
			if !asked[k] {
				t.Errorf("%s: %+v of %s, %s", name, k, r.Version, r.Date)
			}
		}
	}
}

// TestKeysAreInWords: a cell that fails is named by what it was.
func TestKeysAreInWords(t *testing.T) {
	k := key{Study: "mnist", Method: online, Arm: coins, Epsilon: 3, Runs: 5, Setting: setting{31.62, 0.1, 0.5}, Momentum: 0.9, Seed: 2, Steps: 236}
	if got, want := k.String(), "mnist, Online (both moved by coins), epsilon 3 over 5 runs, rho 31.62, C 0.1, gamma 0.5, momentum 0.9, seed 2, 236 steps"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (key{Study: "mnist", Method: noDP, Setting: setting{Step: 0.1}, Seed: 1, Steps: 2}).String(), "mnist, NoDP, rho 0.1, seed 1, 2 steps"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestADivergedCellIsTheWorst: grids hold steps at which training diverges, and go on.
func TestADivergedCellIsTheWorst(t *testing.T) {
	o := options(t, lab.Full, 1)
	l := labtest.New(t, lab.Experiment{ID: "diverging", Needs: news.needs, Seeds: map[string]int{lab.Full: 1}}, o)
	got, err := simulate(l, news, key{Study: news.kind, Method: noDP, Setting: setting{Step: 31.62}, Seed: 1, Steps: news.block})
	if err != nil || got.Figure != 0 || got.Best != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if worst := clothes.diverged(config.Run{}, 1); worst.Figure != 100 || worst.Noise != 1 {
		t.Errorf("of an error: %+v", worst)
	}
}
