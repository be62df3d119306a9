package fair

import "fmt"

// Rows are decisions about people: one value of each column for every row.
type Rows struct {
	Truth     []int    // the true label, 0 or 1
	Predicted []int    // the model's label, 0 or 1
	Group     []string // the value of the sensitive attribute
	// Cluster names the independent unit that a row belongs to: the client or
	// user whose rows come together. If it is nil, rows are independent.
	Cluster []int
	// Loss is the model's loss on the row. It may be nil.
	Loss []float64
}

// Group is one line of the table by group.
type Group struct {
	Name              string   `json:"name"`
	Count             int      `json:"count"`
	Units             int      `json:"units"`
	Positives         int      `json:"positives"`
	BaseRate          Estimate `json:"base_rate"`
	SelectionRate     Estimate `json:"selection_rate"`
	TruePositiveRate  Estimate `json:"true_positive_rate"`
	FalsePositiveRate Estimate `json:"false_positive_rate"`
	Accuracy          Estimate `json:"accuracy"`
	// MeanLoss is nil if no losses were given. Compare gives it an interval.
	MeanLoss *float64 `json:"mean_loss,omitempty"`
	// VersusRest is nil on the line of all rows.
	VersusRest *Gaps `json:"versus_rest,omitempty"`
}

// Gaps are a group's rates less those of all other rows. They have a sign, so
// their intervals can hold 0; that of a Metrics difference hardly ever does.
type Gaps struct {
	SelectionRate     Estimate `json:"selection_rate"`
	TruePositiveRate  Estimate `json:"true_positive_rate"`
	FalsePositiveRate Estimate `json:"false_positive_rate"`
}

// Report is what Measure and Assess found: groups are sorted by name.
type Report struct {
	Sampling
	Metrics Metrics `json:"metrics"`
	Overall Group   `json:"overall"`
	Groups  []Group `json:"groups"`
}

// Measure gives all figures without intervals.
func Measure(rows Rows) (*Report, error) { return assess(rows, nil) }

// Assess gives all figures with bootstrap intervals.
func Assess(rows Rows, b Bootstrap) (*Report, error) {
	b, err := b.resolved()
	if err != nil {
		return nil, err
	}
	return assess(rows, &b)
}

func assess(rows Rows, b *Bootstrap) (*Report, error) {
	if err := rows.check(); err != nil {
		return nil, err
	}
	names, groupOf, err := indexGroups(rows.Group)
	if err != nil {
		return nil, err
	}
	s := newSample(groupOf, len(names), rows.Cluster, confusionWidth, func(row int, sums []float64) {
		sums[confusionCell(rows.Truth[row], rows.Predicted[row])]++
	})
	l := layout{len(names)}
	w := &writer{layout: l, names: names, value: make([]float64, l.size())}
	confusion := make([]float64, len(names)*confusionWidth)
	s.columns().totals(s.copies, confusion)
	l.measure(confusion, w.value)
	for sort, has := range sorts {
		w.support[sort] = s.support(has.in)
	}
	if b != nil {
		if w.resampled, err = s.resample(*b, l.size(), l.measure); err != nil {
			return nil, err
		}
	} else {
		b = &Bootstrap{}
	}

	report := &Report{Sampling: newSampling(s, rows.Cluster, *b), Metrics: w.metrics(), Overall: w.overall()}
	for g, name := range names {
		line := w.group(g)
		line.Name = name
		count(&line, confusion[g*confusionWidth:])
		report.Overall.Count += line.Count
		report.Overall.Positives += line.Positives
		report.Groups = append(report.Groups, line)
	}
	if rows.Loss != nil {
		addMeanLoss(report, groupOf, rows.Loss)
	}
	return report, nil
}

func (r Rows) check() error {
	err := checkRows(len(r.Truth),
		column{name: "Predicted", length: len(r.Predicted)},
		column{name: "Group", length: len(r.Group)},
		column{name: "Cluster", length: len(r.Cluster), optional: true, given: r.Cluster != nil},
		column{name: "Loss", length: len(r.Loss), optional: true, given: r.Loss != nil})
	if err != nil {
		return err
	}
	for i := range r.Truth {
		if uint(r.Truth[i]) > 1 {
			return fmt.Errorf("fair: the true label of row %d is %d: allowed are 0 and 1", i, r.Truth[i])
		}
		if uint(r.Predicted[i]) > 1 {
			return fmt.Errorf("fair: the predicted label of row %d is %d: allowed are 0 and 1", i, r.Predicted[i])
		}
	}
	return checkLosses("Loss", r.Loss)
}

func confusionCell(truth, predicted int) int {
	switch {
	case truth == 1 && predicted == 1:
		return truePositive
	case truth == 1:
		return falseNegative
	case predicted == 1:
		return falsePositive
	}
	return trueNegative
}

func count(line *Group, confusion []float64) {
	line.Positives = int(confusion[truePositive] + confusion[falseNegative])
	line.Count = line.Positives + int(confusion[falsePositive]+confusion[trueNegative])
}

func addMeanLoss(report *Report, groupOf []int32, loss []float64) {
	sums, all := make([]float64, len(report.Groups)), 0.0
	for i, v := range loss {
		sums[groupOf[i]] += v
	}
	for g := range report.Groups {
		all += sums[g]
		report.Groups[g].MeanLoss = number(sums[g] / float64(report.Groups[g].Count))
	}
	report.Overall.MeanLoss = number(all / float64(report.Overall.Count))
}
