package study

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/report/prose"
)

func printed(t *testing.T, s Study) []string {
	t.Helper()
	var b bytes.Buffer
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	return strings.Split(b.String(), "\n")
}

func TestStudyTable(t *testing.T) {
	s := Study{Title: "T", Paper: "P", Scale: "quick", Seeds: 2, Seconds: 3.5, Caveats: []string{"Beware."}, Rows: []Row{
		{Section: "One", Label: "a", Paper: number(2.4), Measured: number(2.5), Low: number(2.1), High: number(2.9), Unit: "epsilon", Verdict: Agrees, Note: "A note."},
		{Section: "Two", Label: "budget", Measured: number(math.Inf(1)), Unit: "epsilon at the radius, heuristic", Verdict: NoNumber},
	}}
	want := `T
P
scale quick, 2 seeds, 3.5 s
! Beware.

One
          paper  ours        spread  unit                verdict
a           2.4  2.50  [2.10, 2.90]  epsilon             agrees
    A note.

Two
          paper  ours        spread  unit                verdict
budget        –   inf                epsilon at the      no number in the paper
                                     radius, heuristic

Of 2 figures, 1 agrees with the paper, 0 differ and 1 has no number in the paper.
`
	if got := strings.Join(printed(t, s), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What all rows say is said once; a spread over one seed is none.
func TestStudyTellsSharedWordsOnce(t *testing.T) {
	const unit, note = "epsilon at the radius, heuristic", "within 25 %"
	row := Row{Section: "S", Label: "a", Measured: number(3), Low: number(3), High: number(3), Unit: unit, Note: note, Verdict: NoNumber}
	other := row
	other.Label, other.Measured, other.Low, other.High = "b", number(4), number(4), number(4)
	s := Study{Seeds: 1, Rows: []Row{row, other}}
	text, page := strings.Join(printed(t, s), "\n"), render(t, s)
	for _, shown := range []string{text, page} {
		if strings.Count(shown, note) != 1 {
			t.Errorf("%q occurs %d times", note, strings.Count(shown, note))
		}
		if !strings.Contains(shown, unit) || strings.Contains(shown, "[3") {
			t.Errorf("the unit is missing or a spread over one seed is shown:\n%s", shown)
		}
	}
	s.Seeds = 2
	if !strings.Contains(render(t, s), "[3, 3]") {
		t.Error("a spread over two seeds is not shown")
	}
	s.Rows[1].Unit, s.Rows[1].Note = "dollars", ""
	if text := strings.Join(printed(t, s), " "); !strings.Contains(text, "dollars") || !strings.Contains(text, note) || !strings.Contains(text, "heuristic") {
		t.Errorf("words of single rows are lost: %s", text)
	}
	if *s.Rows[0].Low != 3 {
		t.Error("the study was changed")
	}
}

func TestStudyTableFitsTheTerminal(t *testing.T) {
	word := strings.Repeat("w", 300)
	long := strings.Repeat("some words and more of them ", 30)
	studies := []Study{hospitalStudy(), fairnessStudy(), {}, {
		Title: long, Paper: word, Scale: long, Caveats: []string{long, word}, Rows: []Row{
			{Section: long, Label: long, Metric: word, Unit: long, Verdict: Verdict(long), Note: long, Paper: number(-1.23456e-300), Measured: number(-1.23456e-300), Low: number(-1.23456e-300), High: number(-1.2e-300)},
			{Section: word, Label: word, Metric: word, Unit: word, Verdict: Verdict(word), Note: word},
		}}}
	for _, s := range studies {
		lines := printed(t, s)
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > terminalWidth {
				t.Errorf("%s: %d columns: %s", s.ID, n, l)
			}
		}
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		for _, r := range s.Rows {
			if note := strings.TrimSpace(r.Note); !strings.Contains(note, word) && !strings.Contains(text, note) {
				t.Errorf("%s: the note %q is lost", s.ID, note)
			}
		}
	}
}

func TestDurations(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0 s", 3.456: "3.46 s", 119.9: "120 s", 187.4: "3 min 7 s", 7199.7: "120 min 0 s",
		7300: "2 h 2 min", 1e6: "277 h 47 min", 1e12: "2.78×10⁸ h", -1: prose.Unknown, math.Inf(1): prose.Unknown} {
		if got := duration(seconds); got != want {
			t.Errorf("%v: %q, want %q", seconds, got, want)
		}
	}
	if got := duration(math.NaN()); got != prose.Unknown {
		t.Errorf("NaN: %q", got)
	}
}
