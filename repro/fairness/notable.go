package fairness

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// judgedGroups are, by seed, the groups of the pictures that a run of the set is judged on.
func judgedGroups(l *lab.Lab, run config.Run) (out [][]int, err error) {
	for seed := range l.Seeds {
		f, err := l.Folder.Load(run.Data, uint64(seed+1))
		if err != nil {
			return nil, err
		}
		var groups []int
		for u := range f.Validation {
			_, judge := halves(&f.Validation[u])
			for range judge.Index {
				groups = append(groups, judge.Group)
			}
		}
		out = append(out, groups)
	}
	return out, nil
}

// missedBy is what both groups misread, by seed; seeds without a held-out minority are left
// out.
func missedBy(cells []cell, groups [][]int) (out [][]float64) {
	for seed, c := range cells {
		if m := missed(c.Wrong, groups[seed]); m != nil {
			out = append(out, m)
		}
	}
	return out
}

// riseOf is how much less fair noise makes models, seed by seed: the mean over the papers'
// metrics, and over one model and two.
func riseOf(at func(k int, nu float64) []cell, most float64) []float64 {
	out := make([]float64, len(at(1, 0)))
	for _, k := range []int{1, 2} {
		for _, m := range differences {
			for seed, rise := range m.paired(at(k, most), at(k, 0)) {
				out[seed] += rise / float64(2*len(differences))
			}
		}
	}
	return out
}

// syntheticRise is riseOf of the loan study, by setting: what the papers compare with. It is
// trained as that study is, whatever the caller sets, and on the processor.
func syntheticRise(l *lab.Lab) (map[string][]float64, error) {
	out := map[string][]float64{}
	for _, set := range loanSettings {
		cells := map[loanKey][]cell{}
		var jobs []func() error
		for _, k := range []int{1, 2} {
			for _, nu := range []float64{0, noiseLevels[len(noiseLevels)-1]} {
				key := loanKey{set, k, nu}
				row := make([]cell, l.Seeds)
				cells[key] = row
				for seed := range row {
					run := key.run()
					run.Seed, run.Run.Workers = uint64(seed+1), 1
					jobs = append(jobs, func() error {
						return l.Remember([]any{"fairness", run}, &row[seed], func(l *lab.Lab) (any, error) { return loan(l, run) })
					})
				}
			}
		}
		if err := l.All(jobs); err != nil {
			return nil, err
		}
		out[set.name] = riseOf(func(k int, nu float64) []cell { return cells[loanKey{set, k, nu}] }, noiseLevels[len(noiseLevels)-1])
	}
	return out, nil
}

// notableRows are the sentence that noise changes fairness less on handwriting than on the
// synthetic data, against both readings of these.
func notableRows(set string, synthetic map[string][]float64, rise []float64) (rows []study.Row) {
	for _, reading := range loanSettings {
		r := study.Row{
			Section: "What the papers claim of noise", Label: fmt.Sprintf("synthetic data, setting %s, less %s: rise with the largest noise", reading.name, set), Metric: "mean of the three differences", Unit: "difference",
			Settings: map[string]any{"set": set, "setting": reading.name}, Sentence: "paper 003, section 5.2.2: the change in fairness due to noise was not as notable as with the synthetic data",
			Why: "We believe that there is nothing to compare where noise moves neither. Tested by the rows on noise of both studies.",
		}
		rows = append(rows, lab.Effect(r, lab.Differences(synthetic[reading.name], rise, func(v float64) float64 { return v }), 0))
	}
	return rows
}
