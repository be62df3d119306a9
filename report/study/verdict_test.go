package study

import (
	"io"
	"strings"
	"testing"
)

// judged is a row that may have this verdict.
func judged(v Verdict) Row {
	r := Row{Label: "x", Verdict: v}
	if v == Agrees || v == Differs {
		r.Sentence = "the paper says so"
	}
	return r
}

// TestVerdictsNeedSomethingToCompareWith: neither agreement nor difference without a
// number or a sentence of the paper, and no number where there is one.
func TestVerdictsNeedSomethingToCompareWith(t *testing.T) {
	for name, c := range map[string]struct {
		row  Row
		want string
	}{
		"agrees with nothing":  {Row{Verdict: Agrees, Measured: number(1)}, "neither a number nor a sentence"},
		"differs from nothing": {Row{Verdict: Differs, Note: "agrees: below 1"}, "neither a number nor a sentence"},
		"a number is there":    {Row{Verdict: NoNumber, Paper: number(2)}, "beside the paper's 2"},
		"a sentence is there":  {Row{Verdict: NoNumber, Sentence: "it says"}, "leave the sentence out"},
		"number":               {Row{Verdict: Agrees, Paper: number(2)}, ""},
		"sentence":             {Row{Verdict: Differs, Sentence: "it says"}, ""},
		"of something else":    {Row{Verdict: Incomparable, Paper: number(2)}, ""},
		"nothing":              {Row{Verdict: NoNumber}, ""},
	} {
		err := HTML(io.Discard, Study{Paper: "P", Rows: []Row{c.row}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOwnFiguresNameNoPaper: without a paper there is nothing of one on the page.
func TestOwnFiguresNameNoPaper(t *testing.T) {
	page := render(t, Study{Title: "Mine", Seeds: 1, Rows: []Row{{Section: "Found", Label: "dlg", Metric: "PSNR", Unit: "dB", Measured: number(12)}}})
	_, body, _ := strings.Cut(page, "<body")
	for _, word := range []string{"aper", "Verdict", "compare", "theirs", "Ours"} {
		if strings.Contains(body, word) {
			t.Errorf("the page says %q", word)
		}
	}
	for _, word := range []string{"Measured", "1 figure was measured.", ">12<"} {
		if !strings.Contains(body, word) {
			t.Errorf("the page does not say %q", word)
		}
	}
}
