package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/metrics"
)

const toldText = `
name: told
seed: 5
data: {kind: synthetic, users: 12, samples: 20}
algorithm: {kind: group-private, mode: paper, hypotheses: 2, rounds: 40, clients_per_round: 4, stop: {patience: 1000}}
privacy: {noise_multiplier: 5, ceiling: 50}
`

// toldRun is a run in its directory.
func toldRun(t *testing.T, dir string, set ...string) (*Directory, *Simulation) {
	t.Helper()
	run, err := config.Resolve([]byte(toldText), set, Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	d, err := CreateDirectory(dir, text)
	if err != nil {
		d, _, err = OpenDirectory(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, s
}

func readTold(t *testing.T, path string) []Progress {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, _, err := ReadProgress(file, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestProgressIsTheResultsHistory: what is told while a run goes on is what its result says
// in the end, with the judge's interval, and what was spent, in its terms.
func TestProgressIsTheResultsHistory(t *testing.T) {
	d, s := toldRun(t, filepath.Join(t.TempDir(), "run"))
	halves := map[int]float64{}
	e := execution{s: s, d: d, began: time.Now()}
	e.teller = startTelling(d, e.began, 0)
	for more := true; more; {
		var err error
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
		e.teller.record = time.Time{} // every round is due
		e.teller.round(s, !more)
		_, halves[s.rounds.State.Round] = metrics.Spread(s.judge.(*clientJudge).losses[:len(s.federation.Validation)])
	}
	e.teller.close()
	res, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	told := readTold(t, d.File(ProgressFile))
	if len(told) != len(res.History.Rounds) || len(told) != 40 {
		t.Fatalf("%d rounds told, %d in the result", len(told), len(res.History.Rounds))
	}
	for i, p := range told {
		if !reflect.DeepEqual(*p.Record, res.History.Rounds[i]) {
			t.Fatalf("round %d is told as %+v, the result says %+v", i+1, *p.Record, res.History.Rounds[i])
		}
		half := halves[p.Record.Round]
		if p.Low == nil || math.Abs(float64(*p.High-*p.Low)/(2*half)-1) > 1e-9 || math.Abs(float64(*p.High+*p.Low)/2-float64(p.Record.Loss)) > 1e-12 {
			t.Errorf("round %d: interval %v to %v around %v; half of it is %v", i+1, p.Low, p.High, p.Record.Loss, half)
		}
	}
	last := told[len(told)-1]
	if last.Privacy == nil || !reflect.DeepEqual(*last.Privacy, res.Privacy.Statement) || last.Ceiling == nil || *last.Ceiling != 50 {
		t.Errorf("told is %+v of %v, the result says %+v", last.Privacy, last.Ceiling, res.Privacy.Statement)
	}
}

// TestProgressGoesBackWithAResume: rounds that are made again are told once, a torn line and
// one of another kind are passed over, and a reader that comes back reads only what is new.
func TestProgressGoesBackWithAResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), ProgressFile)
	line := func(round int, loss float64) string {
		text, err := json.Marshal(Progress{Round: round, Record: &RoundRecord{Round: round, Loss: 0}, Seconds: loss})
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	moment := `{"round":3,"rounds":9,"doing":"training"}` + "\n"
	text := line(1, 1) + line(2, 2) + moment + line(3, 3) + line(4, 4) + `{"round":5,"rec` + "\n" + "what?\n" + moment + moment + line(3, 5) + `{"round":4,"re`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, next, err := ReadProgress(file, 0, nil)
	seconds := func() (out []float64) {
		for _, p := range lines {
			out = append(out, p.Seconds)
		}
		return out
	}
	if got := seconds(); err != nil || !reflect.DeepEqual(got, []float64{1, 2, 5}) || next != int64(len(text)-len(`{"round":4,"re`)) {
		t.Fatalf("%v, next %d of %d: %v", got, next, len(text), err)
	}
	if _, err := file.WriteString(`cord":null,"seconds":6}` + "\n" + line(4, 7)); err != nil {
		t.Fatal(err)
	}
	if lines, next, err = ReadProgress(file, next, lines); err != nil || !reflect.DeepEqual(seconds(), []float64{1, 2, 5, 7}) {
		t.Fatalf("%v: %v", seconds(), err)
	}
	if err := file.Truncate(0); err != nil { // another run's
		t.Fatal(err)
	}
	if lines, next, err = ReadProgress(file, next, lines); err != nil || len(lines) != 0 || next != 0 {
		t.Errorf("of an empty file: %v, %d, %v", lines, next, err)
	}
}

// TestProgressOfAnInterruptedRun: it says that it was stopped, goes on in the same file, and a
// file that cannot be written stops nobody.
func TestProgressOfAnInterruptedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	d, s := toldRun(t, dir, "algorithm.rounds=100000000", "privacy.ceiling=1e9")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := s.Execute(ctx, d, func(m Moment) {
		if m.Round > 50 {
			cancel()
		}
	}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	lines := readTold(t, d.File(ProgressFile))
	if last := lines[len(lines)-1]; last.Doing != "stopped" || lines[0].Record == nil || lines[0].Record.Round != 1 {
		t.Errorf("it begins with %+v and ends with %+v", lines[0], last)
	}
	d.Close()
	if err := os.WriteFile(d.File(ProgressFile), []byte(`{"round":1`), 0o644); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	d, s = toldRun(t, dir, "algorithm.rounds=100000000", "privacy.ceiling=1e9")
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if _, err := s.Execute(ctx, d, func(m Moment) {
		if m.Round > 500 {
			cancel()
		}
	}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if lines := readTold(t, d.File(ProgressFile)); len(lines) < 2 {
		t.Errorf("after a torn line: %+v", lines)
	}
	other, s := toldRun(t, filepath.Join(t.TempDir(), "run"))
	if err := os.Mkdir(other.File(ProgressFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Execute(t.Context(), other, func(Moment) {}); err != nil {
		t.Errorf("a run that cannot be watched: %v", err)
	}
}

// TestProgressStaysSmall: quick rounds and long runs do not make it large.
func TestProgressStaysSmall(t *testing.T) {
	w := teller{file: os.Stdout}
	written, now := 0, w.began.Add(time.Hour)
	w.began = now
	for range 100_000 { // ten thousand seconds, ten rounds a second
		if now = now.Add(100 * time.Millisecond); w.due(now, w.record, linesApart) {
			w.record = now
			written++
		}
	}
	if written < 2000 || written > 6000 {
		t.Errorf("%d lines of 100,000 rounds in 10,000 seconds", written)
	}
}
