package study

import (
	"cmp"
	"slices"
	"strings"
)

// differing are rows that differ from the paper for one reason: those are told first.
type differing struct {
	Rows []differingRow
	Why  string
}

// differingRow is one of them in a sentence.
type differingRow struct{ What, Figures string }

// noReason stands where nobody has found out yet.
const noReason = "No reason is known, and none was tested."

func differingOf(s Study) (out []differing) {
	for _, r := range seeded(s) {
		if r.Verdict != Differs {
			continue
		}
		figures := figuresOf(r)
		theirs := r.Sentence
		if r.Paper != nil {
			theirs = "the paper has " + figures.paper
		}
		ours := "; ours is " + figures.ours
		if figures.spread != "" {
			ours += " " + figures.spread
		}
		what := r.Label
		if r.Section != "" {
			what = r.Section + ": " + what
		}
		if r.Metric != "" && !strings.Contains(r.Label, r.Metric) {
			what += ", " + r.Metric
		}
		why := cmp.Or(r.Why, noReason)
		at := slices.IndexFunc(out, func(d differing) bool { return d.Why == why })
		if at < 0 {
			at = len(out)
			out = append(out, differing{Why: why})
		}
		out[at].Rows = append(out[at].Rows, differingRow{what, theirs + ours})
	}
	return out
}
