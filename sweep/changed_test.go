package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/sim"
)

// ownTable is a table of three clients in a file, and a run on it.
type ownTable struct {
	t    *testing.T
	path string
	text string
	made int // runs
}

func newOwnTable(t *testing.T) *ownTable {
	var text strings.Builder
	text.WriteString("site,y,a\n")
	for i := range 90 {
		fmt.Fprintf(&text, "%s,%d,%d\n", []string{"east", "north", "west"}[i%3], i/5%2, i*37%100)
	}
	o := &ownTable{t: t, path: filepath.Join(t.TempDir(), "rows.csv"), text: text.String()}
	o.is(o.text)
	return o
}

// is has the file say something else.
func (o *ownTable) is(text string) {
	o.t.Helper()
	if err := os.WriteFile(o.path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// changed has another value in one row.
func (o *ownTable) changed() string { return strings.Replace(o.text, "north,0,37", "north,1,38", 1) }

func (o *ownTable) run() string {
	return `
data: {kind: table, source: {path: ` + o.path + `, client: site}, target: y, task: yes/no, features: [{name: a, type: number, range: [0, 100]}]}
algorithm: {kind: fedavg, mode: paper, rounds: 3, local: {step: 0.5}}
privacy: {protects: nothing, epsilon: 0}
`
}

// repeat makes a run with seeds, and counts the runs that are made.
func (o *ownTable) repeat(out, seeds string, set ...string) (Repeated, error) {
	o.t.Helper()
	return o.repeatRun(out, seeds, o.run(), set...)
}

func (o *ownTable) repeatRun(out, seeds, text string, set ...string) (Repeated, error) {
	o.t.Helper()
	run, err := config.Resolve([]byte(text), set, sim.Checks()...)
	if err != nil {
		o.t.Fatal(err)
	}
	all, err := ParseSeeds(seeds)
	if err != nil {
		o.t.Fatal(err)
	}
	load := func(dir string) (res sim.Result, err error) {
		text, err := os.ReadFile(filepath.Join(dir, sim.ResultFile))
		if err == nil {
			err = json.Unmarshal(text, &res)
		}
		return res, err
	}
	leave := func(dir string, res sim.Result) error {
		o.made++
		text, err := json.Marshal(res)
		if err != nil {
			return err
		}
		return sim.WriteFile(filepath.Join(dir, sim.ResultFile), text)
	}
	return Repeat(o.t.Context(), run, all, Options{Out: out, Workers: 1, Version: "test", Tick: func(int, int) {}}, load, leave)
}

// TestFinishedSeedsAreOfWhatIsAsked: the folder of a repeated run holds the figures of one
// run file on one content of the data; whoever asks for others there is told which folder
// holds what, and gets no figure.
func TestFinishedSeedsAreOfWhatIsAsked(t *testing.T) {
	o, out := newOwnTable(t), t.TempDir()
	first, err := o.repeat(out, "1..2")
	if err != nil || o.made != 2 {
		t.Fatal(o.made, err)
	}
	again, err := o.repeat(out, "2..3", "name=other", "run.checkpoint_seconds=5") // which change no result
	if err != nil || o.made != 3 || again.Runs[0] != first.Runs[1] {
		t.Errorf("%d were made, %+v and %+v: %v", o.made, first.Runs, again.Runs, err)
	}
	for name, c := range map[string]struct {
		do   func() (Repeated, error)
		says []string
	}{
		"more rounds":       {func() (Repeated, error) { return o.repeat(out, "1..2", "algorithm.rounds=40") }, []string{"another run file", `"rounds: 3"`, `"rounds: 40"`}},
		"beside other ones": {func() (Repeated, error) { return o.repeat(out, "7", "algorithm.rounds=40") }, []string{"another run file", `"rounds: 40"`}},
		"another file": {func() (Repeated, error) {
			return o.repeatRun(out, "1", "algorithm: {kind: ifca, rounds: 3}\n")
		}, []string{"another run file"}},
		"another value": {func() (Repeated, error) {
			o.is(o.changed())
			return o.repeat(out, "1..2")
		}, []string{"other data", "changed", "not what they were"}},
		"another name": {func() (Repeated, error) {
			o.is(strings.ReplaceAll(o.text, "west", "south"))
			return o.repeat(out, "1..2")
		}, []string{"other data", "other names"}},
		"changed, and a seed beside them": {func() (Repeated, error) {
			o.is(o.changed())
			return o.repeat(out, "9")
		}, []string{"other data"}},
	} {
		o.is(o.text)
		r, err := c.do()
		if err == nil || o.made != 3 || r.Runs != nil {
			t.Errorf("%s: %+v, %d were made: %v", name, r, o.made, err)
			continue
		}
		for _, words := range append(c.says, filepath.Join(out, "seed-"), "give another --out", "remove") {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v does not say %q", name, err, words)
			}
		}
	}
	o.is(o.text)
	if again, err = o.repeat(out, "1..2"); err != nil || !slices.Equal(again.Runs, first.Runs) {
		t.Errorf("what is asked again: %+v, %v", again, err)
	}
}

// TestSeedsInAnothersFolder: a folder that was moved or copied to another seed's place is
// taken for what it is.
func TestSeedsInAnothersFolder(t *testing.T) {
	o, out := newOwnTable(t), t.TempDir()
	if _, err := o.repeat(out, "1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(SeedFolder(out, 1), SeedFolder(out, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.repeat(out, "2"); err == nil || !strings.Contains(err.Error(), "seed 1") {
		t.Error(err)
	}
}

// TestSeedsThatDoNotSayOfWhichData: what an earlier version left is not trusted to be of the
// same data. Data that are drawn follow from the run file, and say nothing.
func TestSeedsThatDoNotSayOfWhichData(t *testing.T) {
	o, out := newOwnTable(t), t.TempDir()
	if _, err := o.repeat(out, "1"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(SeedFolder(out, 1), sim.FingerprintFile)
	for _, left := range []string{"", "{", `{"data":{}}`} {
		err := os.Remove(file)
		if left != "" {
			err = os.WriteFile(file, []byte(left), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.repeat(out, "1"); err == nil || !strings.Contains(err.Error(), "does not say") || !strings.Contains(err.Error(), "give another --out") {
			t.Errorf("%q: %v", left, err)
		}
	}
	out, text := t.TempDir(), "algorithm: {kind: ifca, rounds: 3}\n"
	for range 2 {
		if _, err := o.repeatRun(out, "1..2", text); err != nil {
			t.Error(err)
		}
	}
	if o.made != 3 {
		t.Errorf("%d were made", o.made)
	}
	if _, err := os.Stat(filepath.Join(SeedFolder(out, 1), sim.FingerprintFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("drawn data have a fingerprint: %v", err)
	}
}

// TestFingerprintsAreTheOwners: what recognises private rows is in no file that may be
// published, and nobody else reads it.
func TestFingerprintsAreTheOwners(t *testing.T) {
	o, out := newOwnTable(t), t.TempDir()
	if _, err := o.repeat(out, "1"); err != nil {
		t.Fatal(err)
	}
	p := loaded(t, o.run(), "run: run.yaml\ngrid: {algorithm.local.step: [0.1, 0.5]}\n")
	swept := options(t, nil)
	if _, err := p.Run(t.Context(), swept); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{SeedFolder(out, 1), swept.Out} {
		path := filepath.Join(dir, sim.FingerprintFile)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "for their owner alone") {
			t.Errorf("%s: %v", text, err)
		}
		secrets := strings.Split(string(text), `"`)
		err = filepath.WalkDir(dir, func(other string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || other == path {
				return err
			}
			text, err := os.ReadFile(other)
			for _, secret := range secrets {
				if len(secret) == 44 && strings.Contains(string(text), secret) { // 32 bytes in base64
					t.Errorf("%s has %s", other, secret)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestGridsOnChangedDataAreMadeAnew: cells that were made on an earlier content of the data,
// or do not say on which, are not taken up, and that is said. On the same data they are.
func TestGridsOnChangedDataAreMadeAnew(t *testing.T) {
	o := newOwnTable(t)
	p := loaded(t, o.run(), "run: run.yaml\nseeds: 2\ngrid: {algorithm.local.step: [0.1, 0.5]}\n")
	out := t.TempDir()
	made := func(of *Plan) (r Result, cells int, said string) {
		t.Helper()
		opts := options(t, nil)
		opts.Out, opts.Say = out, func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
		before := cellsIn(t, out)
		r, err := of.Run(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, PlanFile))
		var plan Outline
		if err != nil || json.Unmarshal(text, &plan) != nil {
			t.Fatal(err)
		}
		after := cellsIn(t, out)
		for _, point := range plan.Points { // whoever watches finds them
			for _, cell := range point.Cells {
				if !slices.Contains(after, filepath.Base(cell)) {
					t.Errorf("there is no %s", cell)
				}
			}
		}
		return r, len(after) - len(before), said
	}
	first, n, said := made(p)
	if n != 4 || said != "" {
		t.Fatalf("%d cells, %q", n, said)
	}
	if again, n, said := made(p); n != 0 || said != "" || again.Points[0].Mean != first.Points[0].Mean {
		t.Errorf("on the same data %d cells are made: %s", n, said)
	}
	more := *p
	more.Seeds = 3
	if _, n, said := made(&more); n != 2 || said != "" {
		t.Errorf("one seed more is %d cells: %s", n, said)
	}
	o.is(o.changed())
	changed, n, said := made(p)
	if n != 4 || !strings.Contains(said, "the data were changed") || !strings.Contains(said, "anew") || !strings.Contains(said, out) || changed.Points[0].Mean == first.Points[0].Mean {
		t.Errorf("on other data %d cells are made, of %v and %v: %q", n, first.Points[0].Mean, changed.Points[0].Mean, said)
	}
	if _, n, said := made(p); n != 0 || said != "" {
		t.Errorf("and then %d: %s", n, said)
	}
	if err := os.Remove(filepath.Join(out, sim.FingerprintFile)); err != nil {
		t.Fatal(err)
	}
	if again, n, said := made(p); n != 4 || !strings.Contains(said, "no "+sim.FingerprintFile) || again.Points[0].Mean != changed.Points[0].Mean {
		t.Errorf("cells of which nobody knows the data: %d are made, %q", n, said)
	}
	if err := os.WriteFile(filepath.Join(out, sim.FingerprintFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := options(t, nil)
	opts.Out = out
	if _, err := p.Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged file: %v", err)
	}
}

func cellsIn(t *testing.T, out string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(out, "cells"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestDataAreReadOncePerKey: many runs on the same data read and hash them once.
func TestDataAreReadOncePerKey(t *testing.T) {
	o := newOwnTable(t)
	all := digests{folder: (*data.Folder)(nil).Keeping()}
	for i, step := range []string{"0.1", "0.5"} {
		run, err := config.Resolve([]byte(o.run()), []string{"algorithm.local.step=" + step}, sim.Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.of(t.Context(), run); err != nil || len(all.known) != 1 {
			t.Errorf("run %d: %d readings, %v", i, len(all.known), err)
		}
	}
}
