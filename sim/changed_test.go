package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	_ "github.com/coterie-fl/coterie/data/source"
)

// rowsOf is a table of four clients with 20 rows each.
func rowsOf() string {
	var text strings.Builder
	text.WriteString("site,y,a,b\n")
	for i := range 80 {
		fmt.Fprintf(&text, "%s,%d,%d,%d\n", []string{"east", "north", "south", "west"}[i%4], i/7%2, i*37%100, i*53%100)
	}
	return text.String()
}

// tableRun is a run file on the table at a path; every round is kept.
func tableRun(t *testing.T, path, more string) config.Run {
	t.Helper()
	run, err := config.Resolve([]byte(`
seed: 3
data: {kind: table, source: {path: `+path+`, client: site}, target: y, task: yes/no,
  features: [{name: a, type: number, range: [0, 100]}, {name: b, type: number, range: [0, 100]}]}
`+more), nil, Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	run.Run.CheckpointSeconds = 0
	return run
}

// TestChangedDataAreNotGoneOnWith: whoever changes the data of a run that was stopped is told
// that it is the data that were changed, and what of them; on the data as they were the run
// goes on to the end that it has in one piece. So it is where clients are not held, too.
func TestChangedDataAreNotGoneOnWith(t *testing.T) {
	was := rowsOf()
	for name, more := range map[string]string{
		"silos":   "algorithm: {kind: ditto, mode: paper, rounds: 4}\nprivacy: {accounting: paper}\n",
		"updates": "algorithm: {kind: fedavg, mode: paper, rounds: 4, clients_per_round: 2}\nprivacy: {protects: nothing, epsilon: 0}\njudge: {by: test}\n",
		"asked":   "algorithm: {kind: fedavg, mode: paper, rounds: 4, clients_per_round: 2}\nprivacy: {protects: nothing, epsilon: 0}\njudge: {by: test}\nrun: {hold: asked}\n",
	} {
		path := filepath.Join(t.TempDir(), "rows.csv")
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(was)
		run := tableRun(t, path, more)
		whole, err := execute(t, context.Background(), directory(t, run), run, nil, nothing)
		if err != nil {
			t.Fatal(name, err)
		}
		d := directory(t, run)
		ctx, cancel := context.WithCancel(context.Background())
		_, err = execute(t, ctx, d, run, nil, func(m Moment) {
			if m.Round == 2 {
				cancel()
			}
		})
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(name, err)
		}
		for change, c := range map[string]struct{ text, says string }{
			"a value":            {strings.Replace(was, "north,0,37,53", "north,0,38,53", 1), "examples are not what they were"},
			"a client's name":    {strings.ReplaceAll(was, "south", "zenith"), "clients have other names"},
			"a client less":      {strings.ReplaceAll(was, "west", "east"), "the number of clients is 3, and was 4"},
			"everybody's places": {strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(was, "east", "x"), "west", "east"), "x,", "west,"), "examples"},
			"a row less":         {was[:strings.LastIndex(strings.TrimSuffix(was, "\n"), "\n")+1], "examples"},
		} {
			if c.text == was {
				t.Fatal(change, "changes nothing")
			}
			write(c.text)
			_, err := execute(t, context.Background(), d, run, nil, nothing)
			if err == nil || !strings.Contains(err.Error(), "other data") || strings.Contains(err.Error(), RunFile) ||
				name != "asked" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v, want a refusal that says %q", name, change, err, c.says)
			}
		}
		write(was)
		res, err := execute(t, context.Background(), d, run, nil, nothing)
		if err != nil || res.ModelSHA256 != whole.ModelSHA256 {
			t.Errorf("%s: on the data as they were the run ends otherwise: %v", name, err)
		}
	}
}

// TestCheckpointsAreTheOwners: they hold what clients keep to themselves, and what guesses at
// the data can be tried against.
func TestCheckpointsAreTheOwners(t *testing.T) {
	run := smallRun("ditto")
	run.Algorithm.Rounds, run.Run.CheckpointSeconds = 3, 0
	d := directory(t, run)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := execute(t, ctx, d, run, smallSchools(t), func(Moment) { cancel() })
	if !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	info, err := os.Stat(d.File(CheckpointFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
