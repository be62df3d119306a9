package fair

import (
	"fmt"
	"math"
)

// ModelLoss is the loss of one model on every row, or its error, 0 or 1.
type ModelLoss struct {
	Name string
	Loss []float64
}

// Losses are what several models lose on the same rows.
type Losses struct {
	Group   []string
	Cluster []int // the client of each row; nil: every row is one
	// Models are in the order in which they are compared: each with all before it.
	Models []ModelLoss
}

// Comparison tells who gains and who loses by which model.
type Comparison struct {
	Sampling
	Overall Panel   `json:"overall"`
	Groups  []Panel `json:"groups"`
}

// Panel is the comparison within one group, or over all rows.
type Panel struct {
	Group   string `json:"group"`
	Rows    int    `json:"rows"`
	Clients int    `json:"clients"`
	// Models are in the order given, Pairs each model against all before it.
	Models []ModelMean `json:"models"`
	Pairs  []Pair      `json:"pairs"`
	// NoBest is the share of clients for whom two models or more are equally best.
	NoBest float64 `json:"no_best"`
}

// ModelMean is what one model loses on average.
type ModelMean struct {
	Name     string   `json:"name"`
	MeanLoss Estimate `json:"mean_loss"`
	// Best is the share of clients who lose least by this model, and by it alone.
	Best Estimate `json:"best"`
}

// Pair is a model beside another on the same rows.
type Pair struct {
	Model    string `json:"model"`
	Baseline string `json:"baseline"`
	// Difference is the mean of the model's loss less the baseline's: below 0 the
	// model is better. The resamples are the same for both.
	Difference Estimate `json:"difference"`
	// Verdict reads the interval of Difference.
	Verdict Verdict `json:"verdict"`
	// Better and Worse are the shares of clients whose mean loss is lower and
	// higher by the model than by the baseline; Same is what is left.
	Better Estimate `json:"better"`
	Worse  Estimate `json:"worse"`
	Same   float64  `json:"same"`
}

// Verdict says which way a difference goes, as far as its interval tells.
type Verdict string

// The verdicts. Unclear is an interval that holds 0, or none.
const (
	Gains   Verdict = "gains"
	Loses   Verdict = "loses"
	Unclear Verdict = "unclear"
)

// Compare gives mean losses by group and model, their paired differences, and the
// shares of clients better off. Means have bootstrap intervals and weigh rows
// equally; shares weigh clients equally and have Wilson's intervals, which do not
// shrink to a point when all clients agree. A client with rows in several groups
// counts in each with its rows there.
func Compare(in Losses, b Bootstrap) (*Comparison, error) {
	b, err := b.resolved()
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	names, groupOf, err := indexGroups(in.Group)
	if err != nil {
		return nil, err
	}
	// A cell holds its rows, then the loss of each model.
	s := newSample(groupOf, len(names), in.Cluster, 1+len(in.Models), func(row int, sums []float64) {
		sums[0]++
		for m := range in.Models {
			sums[1+m] += in.Models[m].Loss[row]
		}
	})
	c := newComparer(s, in.Models, names)
	if c.resampled, err = s.resample(b, c.size(), c.measure); err != nil {
		return nil, err
	}
	out := &Comparison{Sampling: newSampling(s, in.Cluster, b), Overall: c.panel(len(names), "all")}
	for g, name := range names {
		out.Groups = append(out.Groups, c.panel(g, name))
	}
	return out, nil
}

func (in Losses) check() error {
	if len(in.Models) < 2 {
		return fmt.Errorf("fair: %d models to compare: give at least 2", len(in.Models))
	}
	columns := []column{{name: "Cluster", length: len(in.Cluster), optional: true, given: in.Cluster != nil}}
	seen := map[string]bool{}
	for i, m := range in.Models {
		if m.Name == "" || seen[m.Name] {
			return fmt.Errorf("fair: model %d is named %q: every model needs a name of its own", i, m.Name)
		}
		seen[m.Name] = true
		columns = append(columns, column{name: fmt.Sprintf("the loss of model %q", m.Name), length: len(m.Loss)})
	}
	if err := checkRows(len(in.Group), columns...); err != nil {
		return err
	}
	for _, m := range in.Models {
		if err := checkLosses(fmt.Sprintf("the loss of model %q", m.Name), m.Loss); err != nil {
			return err
		}
	}
	return nil
}

// verdict reads an interval.
func verdict(difference Estimate) Verdict {
	switch {
	case difference.High != nil && *difference.High < 0:
		return Gains
	case difference.Low != nil && *difference.Low > 0:
		return Loses
	}
	return Unclear
}

// share is k of n with Wilson's score interval (Wilson 1927).
func share(k, n int, level float64) Estimate {
	z := math.Sqrt2 * math.Erfinv(level)
	p, size := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*size)) / (1 + z*z/size)
	half := z / (1 + z*z/size) * math.Sqrt(p*(1-p)/size+z*z/(4*size*size))
	// The ends of 0 and n of n are 0 and 1; rounding must not pass the share.
	low, high := min(max(centre-half, 0), p), max(min(centre+half, 1), p)
	return Estimate{Value: &p, Low: &low, High: &high}
}
