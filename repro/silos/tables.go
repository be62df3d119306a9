package silos

import (
	"slices"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// claimsApart gives the claims of a section that also has plain figures a table of their own:
// claims are told in sentences, for which a table of figures has no room.
func claimsApart(rows []study.Row) []study.Row {
	plain := func(r study.Row) bool { return r.Verdict == study.NoNumber }
	out := slices.Clone(rows)
	for i, r := range rows {
		if !plain(r) && slices.ContainsFunc(rows, func(o study.Row) bool { return o.Section == r.Section && plain(o) }) {
			out[i].Section += ": what the text claims"
		}
	}
	return out
}

// apartly is a launch whose claims stand apart from its figures.
func apartly(launch func(*lab.Lab) (study.Study, error)) func(*lab.Lab) (study.Study, error) {
	return func(l *lab.Lab) (study.Study, error) {
		s, err := launch(l)
		s.Rows = claimsApart(s.Rows)
		return s, err
	}
}
