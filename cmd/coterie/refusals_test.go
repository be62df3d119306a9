package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// internalWords are names and syntax that only this program's authors understand.
var internalWords = regexp.MustCompile(`composed|repeated:|sampled:|metric-laplace|node-gaussian|event\.|account\.|%!|\{[A-Z0-9]|\+Inf|NaN|<nil>`)

// refusal is a command that is refused, what it says, and the number that it names.
type refusal struct {
	name   string
	args   []string
	code   int
	says   string         // the whole text, behind the file's name
	number *regexp.Regexp // the number that would do
	with   func(number float64) []string
	// off is by how much to miss the number so that it does not do any more: above 1 for
	// numbers that must not be exceeded.
	off float64
}

func refusals(t *testing.T) []refusal {
	t.Helper()
	sweep := func(noise float64) string {
		path := filepath.Join(t.TempDir(), "sweep.yaml")
		file, err := filepath.Abs(example("own-table.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("run: %s\nset: [algorithm.rounds=2]\ngrid: {algorithm.lambda: [0.1, 1]}\ntuning: {distribution: tnb, mean_trials: 2, eta: 0, entropy: seeded, score: {bound: 0.5, noise: %v}}\n", file, noise)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(file string, settings ...string) []string {
		args := []string{"run", example(file), "--out", filepath.Join(t.TempDir(), "run")}
		for _, s := range settings {
			args = append(args, "--set", s)
		}
		return args
	}
	table := func(more ...string) []string {
		return run("own-table.yaml", append([]string{"algorithm.rounds=20", "algorithm.kind=ifca", "algorithm.hypotheses=2", "algorithm.selection.rule=private", "algorithm.selection.share=0.3"}, more...)...)
	}
	calibrate := func(noise float64) []string {
		return []string{"account", "calibrate", "--epsilon", "3", "--delta", "1e-5", "--rate", "0.9", "--noise", fmt.Sprint(noise)}
	}
	return []refusal{
		{
			"run, ceiling", run("group-private.yaml", "privacy.ceiling=0.1", "algorithm.rounds=2"), exitRefused,
			"refused for privacy: one release costs 2/5 = 0.4, above privacy.ceiling 0.1: no client could ever take part; a ceiling of 0.4 would do, or privacy.noise_multiplier 20",
			regexp.MustCompile(`a ceiling of (\S+) would do`),
			func(n float64) []string {
				return run("group-private.yaml", fmt.Sprintf("privacy.ceiling=%v", n), "algorithm.rounds=2")
			}, 0.99,
		},
		{
			"run, ceiling: noise", run("group-private.yaml", "privacy.ceiling=0.3", "algorithm.rounds=2"), exitRefused,
			"refused for privacy: one release costs 2/5 = 0.4, above privacy.ceiling 0.3: no client could ever take part; a ceiling of 0.4 would do, or privacy.noise_multiplier 6.66667",
			regexp.MustCompile(`or privacy.noise_multiplier (\S+)$`),
			func(n float64) []string {
				return run("group-private.yaml", "privacy.ceiling=0.3", fmt.Sprintf("privacy.noise_multiplier=%v", n), "algorithm.rounds=2")
			}, 0.99,
		},
		{
			"run, a silo's target", table("algorithm.selection.epsilon_share=1"), exitFailure,
			"participant 0 clinic-01: noise for epsilon 4 at delta 1e-05: target cannot be reached: epsilon 4 cannot be had by any noise: what is released beside the noised steps (choices, moments, scores) costs 24 by itself, and must cost less than epsilon; 6 choices do at an algorithm.selection.epsilon_share below 0.1763",
			regexp.MustCompile(`epsilon_share below (\S+)$`),
			func(n float64) []string { return table(fmt.Sprintf("algorithm.selection.epsilon_share=%v", n*0.8)) }, 1.3,
		},
		{
			"sweep, score", []string{"sweep", sweep(0.1), "--out", filepath.Join(t.TempDir(), "sweep")}, exitFailure,
			"6 of 6 silos find no noise; the first: silo clinic-01: with a score of Gaussian noise of 0.1 times the clip: target cannot be reached: epsilon 4 cannot be had by any noise: what is released beside the noised steps (choices, moments, scores) costs ",
			regexp.MustCompile(`tuning.score.noise above (\S+)$`),
			func(n float64) []string {
				return []string{"sweep", sweep(n * 1.01), "--out", filepath.Join(t.TempDir(), "sweep")}
			}, 0.97,
		},
		{
			"account, not one step", calibrate(0.3), 0,
			"steps 0: one step with noise 0.3 at rate 0.9 costs epsilon 18.9457 (claim proved, unit example, relation add-remove, delta 1e-05), above the target of 3; noise 1.3438086 would do for one",
			regexp.MustCompile(`noise (\S+) would do for one`), calibrate, 0.99,
		},
		{
			"account, noise 0", []string{"account", "dpsgd", "--noise", "0", "--batch", "5", "--examples", "60", "--epochs", "1", "--delta", "1e-5"}, exitUsage,
			"wrong usage: Gaussian noise: value out of range: noise = 0, want a finite number > 0", nil, nil, 0,
		},
		{
			"audit, ceiling", []string{"audit", "inversion", example("group-private.yaml"), "--set", "privacy.ceiling=0.1"}, exitRefused,
			"audit: refused for privacy: one release costs 2/5 = 0.4, above privacy.ceiling 0.1: no client could ever take part; a ceiling of 0.4 would do", nil, nil, 0,
		},
	}
}

// TestRefusalsNameTheNumber: what is refused says which number would do, in words for
// people; with that number the command goes through, and with one that misses it the same
// is said again. What a ledger and a participant refuse is tested with them.
func TestRefusalsNameTheNumber(t *testing.T) {
	for _, r := range refusals(t) {
		t.Run(r.name, func(t *testing.T) {
			text := refused(t, r.args, r.code)
			if !strings.Contains(text, r.says) {
				t.Errorf("it says\n%s\nwant\n%s", text, r.says)
			}
			if r.number == nil {
				return
			}
			told := r.number.FindStringSubmatch(strings.TrimSpace(text))
			if told == nil {
				t.Fatalf("no number in %s", text)
			}
			number, err := strconv.ParseFloat(told[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, code := coterie(t, r.with(number)...); code != 0 || r.number.MatchString(strings.TrimSpace(stdout+stderr)) {
				t.Errorf("%v would do, and does not: exit %d, %s", number, code, stderr)
			}
			if text := refused(t, r.with(number*r.off), r.code); !r.number.MatchString(strings.TrimSpace(text)) {
				t.Errorf("%v does as well: %s", number*r.off, text)
			}
		})
	}
}

// refused runs a command that is refused and holds its text against internalWords.
func refused(t *testing.T, args []string, code int) string {
	t.Helper()
	stdout, stderr, got := coterie(t, args...)
	if got != code {
		t.Errorf("exit %d, want %d: %s", got, code, stderr)
	}
	if word := internalWords.FindString(stdout + stderr); word != "" {
		t.Errorf("%q is shown in %s%s", word, stdout, stderr)
	}
	return stdout + stderr
}

// TestRowsAreNamedByAFlag: whoever puts the new rows behind the models is told where they go.
func TestRowsAreNamedByAFlag(t *testing.T) {
	for _, command := range []string{"predict", "evaluate"} {
		if text := refused(t, []string{command, "runs/wards", "new.csv"}, exitUsage); !strings.Contains(text, "named by --data, here --data new.csv") {
			t.Error(text)
		}
		if text := refused(t, []string{command}, exitUsage); !strings.Contains(text, "name a folder of models") {
			t.Error(text)
		}
	}
}
