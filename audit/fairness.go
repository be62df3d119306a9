package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fair"
	"github.com/coterie-fl/coterie/model"
)

// ErrNoFairness means that a run's data have no labels or attributes to compare.
var ErrNoFairness = errors.New("fairness cannot be measured")

// FairnessOptions say what is compared.
type FairnessOptions struct {
	Attribute string // one sensitive attribute; empty: all
	// Groups are values of that attribute; the rows of all others are left out.
	// Empty: all values that occur.
	Groups    []string
	Bootstrap fair.Bootstrap
}

// Fairness is what trained models do to the groups of one sensitive attribute, on
// clients that were held out. A client with several models to choose from chooses
// on the first half of its rows; all are judged on the second half.
type Fairness struct {
	Attribute string `json:"attribute"`
	Models    int    `json:"models"`
	Clients   int    `json:"clients"`
	// OtherRows counts rows that were left out because of FairnessOptions.Groups.
	OtherRows int `json:"other_rows"`
	// TooSmall counts clients with a single row, which are left out: nothing would be
	// left to judge them on.
	TooSmall int `json:"too_small"`
	*fair.Report
}

// MeasureFairness judges the models of a finished run, one after another in
// hypotheses, by every sensitive attribute of its data.
func MeasureFairness(run config.Run, hypotheses []float64, folder *data.Folder, o FairnessOptions) ([]Fairness, error) {
	f, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		return nil, err
	}
	if len(f.Sensitive) == 0 {
		return nil, fmt.Errorf("%w: data of the kind %q have no sensitive attributes; adult and compas have", ErrNoFairness, run.Data.Kind)
	}
	m, err := model.Of(run, f.Shape())
	if err != nil {
		return nil, err
	}
	n := m.Parameters()
	if len(hypotheses) == 0 || len(hypotheses)%n != 0 {
		return nil, fmt.Errorf("%d values are not models of %d parameters", len(hypotheses), n)
	}
	chosen := f.Sensitive
	if o.Attribute != "" {
		at := slices.IndexFunc(f.Sensitive, func(c data.SensitiveColumn) bool { return c.Name == o.Attribute })
		if at < 0 {
			var names []string
			for _, c := range f.Sensitive {
				names = append(names, c.Name)
			}
			return nil, fmt.Errorf("%w: there is no sensitive attribute %q; the data have %s", ErrNoFairness, o.Attribute, strings.Join(names, ", "))
		}
		chosen = chosen[at : at+1]
	}
	if len(o.Groups) > 0 && o.Attribute == "" {
		return nil, fmt.Errorf("%w: groups are named, but not of which attribute", ErrNoFairness)
	}
	for _, g := range o.Groups {
		if !slices.Contains(chosen[0].Values, g) {
			return nil, fmt.Errorf("%w: %s has no value %q; it has %s", ErrNoFairness, o.Attribute, g, strings.Join(chosen[0].Values, ", "))
		}
	}
	d, err := decide(m, hypotheses, f.Validation)
	if err != nil {
		return nil, err
	}
	var out []Fairness
	for _, c := range chosen {
		rows, others := d.of(c, o.Groups)
		if len(rows.Truth) == 0 {
			return nil, fmt.Errorf("%w: no held-out row is in the groups %s", ErrNoFairness, strings.Join(o.Groups, ", "))
		}
		r, err := fair.Assess(rows, o.Bootstrap)
		if err != nil {
			return nil, err
		}
		out = append(out, Fairness{
			Attribute: c.Name, Models: len(hypotheses) / n, Clients: len(f.Validation) - d.tooSmall,
			OtherRows: others, TooSmall: d.tooSmall, Report: r,
		})
	}
	return out, nil
}

// of gives the decisions the groups of an attribute; only some of them if they are
// named.
func (d decisions) of(c data.SensitiveColumn, groups []string) (rows fair.Rows, others int) {
	for i := range d.client {
		g := c.Values[c.Groups[d.client[i]][d.row[i]]]
		if len(groups) > 0 && !slices.Contains(groups, g) {
			others++
			continue
		}
		rows.Group = append(rows.Group, g)
		rows.Truth, rows.Predicted = append(rows.Truth, d.rows.Truth[i]), append(rows.Predicted, d.rows.Predicted[i])
		rows.Cluster, rows.Loss = append(rows.Cluster, d.rows.Cluster[i]), append(rows.Loss, d.rows.Loss[i])
	}
	return rows, others
}

// decisions are the labels that models give, and to which row of which client.
type decisions struct {
	rows        fair.Rows
	client, row []int
	tooSmall    int
}

// decide lets every client choose its model and predict: 1 where 1 has the smaller
// squared error, which is where the model's value is above one half.
func decide(m model.Model, hypotheses []float64, clients []data.Client) (decisions, error) {
	learner, err := m.Learner()
	if err != nil {
		return decisions{}, err
	}
	n := m.Parameters()
	var d decisions
	var outputs []float64
	for i := range clients {
		c := &clients[i]
		half := c.Len() / 2
		if half == 0 {
			d.tooSmall++
			continue
		}
		first := data.Client{Rows: data.Rows{X: c.X[:half*c.Features], Y: c.Y[:half], Features: c.Features}}
		_, best, err := model.Best(learner, n, hypotheses, &first)
		if err != nil {
			return decisions{}, err
		}
		theta := hypotheses[best*n : (best+1)*n]
		rest := data.Client{Rows: data.Rows{X: c.X[half*c.Features:], Y: c.Y[half:], Features: c.Features}}
		var each int
		if outputs, each, err = learner.Outputs(outputs[:0], theta, &rest); err == nil && each != 1 {
			err = fmt.Errorf("%w: the model has %d outputs; allowed: 1", ErrNoFairness, each)
		}
		if err != nil {
			return decisions{}, err
		}
		for j, y := range rest.Y {
			if y != 0 && y != 1 {
				return decisions{}, fmt.Errorf("%w: a row has the target %v; allowed: 0 and 1", ErrNoFairness, y)
			}
			truth, predicted, loss := int(y), 0, (outputs[j]-y)*(outputs[j]-y)
			if outputs[j] > 0.5 {
				predicted = 1
			}
			d.rows.Truth, d.rows.Predicted = append(d.rows.Truth, truth), append(d.rows.Predicted, predicted)
			d.rows.Cluster, d.rows.Loss = append(d.rows.Cluster, i), append(d.rows.Loss, loss)
			d.client, d.row = append(d.client, i), append(d.row, half+j)
		}
	}
	if len(d.rows.Truth) == 0 {
		return decisions{}, fmt.Errorf("%w: every held-out client has a single row", ErrNoFairness)
	}
	return d, nil
}
