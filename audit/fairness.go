package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/artifact"
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
// clients that were held out, or, where there are none, on what the clients that train
// hold out, each with its own model. A client without one that has several models to
// choose from chooses on the first half of its rows; held-out clients are judged on the
// second half.
type Fairness struct {
	Attribute string `json:"attribute"`
	Models    int    `json:"models"`
	Clients   int    `json:"clients"`
	// OtherRows counts rows that were left out because of FairnessOptions.Groups.
	OtherRows int `json:"other_rows"`
	// NoGroup counts rows that were left out because they are in none of the groups.
	NoGroup int `json:"no_group"`
	// TooSmall counts clients with a single row, which are left out: nothing would be
	// left to judge them on.
	TooSmall int `json:"too_small"`
	*fair.Report
}

// MeasureFairness judges the models of a finished run by every sensitive attribute of
// its data: the server's, one after another in hypotheses, and the clients' own in the
// run's folder, which may be nil.
func MeasureFairness(run config.Run, hypotheses []float64, own *artifact.Model, folder *data.Folder, o FairnessOptions) ([]Fairness, error) {
	f, err := folder.Load(run.Data, run.Seed)
	if err != nil {
		return nil, err
	}
	if len(f.Sensitive) == 0 {
		return nil, fmt.Errorf("%w: data of the kind %q have no sensitive attributes; adult and compas have, and tables whose data.sensitive names some", ErrNoFairness, run.Data.Kind)
	}
	if f.Classes != 2 && f.Encoding != nil {
		return nil, fmt.Errorf("%w: data.task is %s; allowed: yes/no", ErrNoFairness, f.Encoding.Task)
	}
	m, err := model.Of(run, f.Shape())
	if err != nil {
		return nil, err
	}
	loss, err := model.ParseLoss(run.Algorithm.Local.Loss)
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
	asked, err := askedOf(f, hypotheses, n, own)
	if err != nil {
		return nil, err
	}
	d, err := decide(m, loss, hypotheses, asked)
	if err != nil {
		return nil, err
	}
	var out []Fairness
	for _, c := range chosen {
		rows, others, none := d.of(c, o.Groups)
		if len(rows.Truth) == 0 {
			groups := o.Groups
			if len(groups) == 0 {
				groups = c.Values
			}
			return nil, fmt.Errorf("%w: no held-out row is in the groups %s", ErrNoFairness, strings.Join(groups, ", "))
		}
		r, err := fair.Assess(rows, o.Bootstrap)
		if err != nil {
			return nil, err
		}
		out = append(out, Fairness{
			Attribute: c.Name, Models: max(len(hypotheses)/n, d.own), Clients: d.judged,
			OtherRows: others, NoGroup: none, TooSmall: d.tooSmall, Report: r,
		})
	}
	return out, nil
}

// of gives the decisions the groups of an attribute; only some of them if they are
// named. Others are rows of other groups, none those of no group.
func (d decisions) of(c data.SensitiveColumn, groups []string) (rows fair.Rows, others, none int) {
	for i := range d.client {
		at := c.Groups[d.client[i]][d.row[i]]
		if at < 0 {
			none++
			continue
		}
		g := c.Values[at]
		if len(groups) > 0 && !slices.Contains(groups, g) {
			others++
			continue
		}
		rows.Group = append(rows.Group, g)
		rows.Truth, rows.Predicted = append(rows.Truth, d.rows.Truth[i]), append(rows.Predicted, d.rows.Predicted[i])
		rows.Cluster, rows.Loss = append(rows.Cluster, d.rows.Cluster[i]), append(rows.Loss, d.rows.Loss[i])
	}
	return rows, others, none
}

// asked is a client whose rows are judged: with one model, or with the one of the
// server's that it chooses.
type asked struct {
	rows   data.Rows
	theta  []float64 // nil: it chooses, on the first half of its rows
	own    bool      // that one is nobody else's
	halves bool      // rows of the first half are not judged
}

// askedOf are the clients that are held out, or, without such, all that train, on what
// they hold out themselves.
func askedOf(f *data.Federation, hypotheses []float64, n int, own *artifact.Model) ([]asked, error) {
	var out []asked
	for i := range f.Validation {
		out = append(out, asked{rows: f.Validation[i].Rows, halves: true})
	}
	if len(out) > 0 {
		return out, nil
	}
	for i := range f.Train {
		one := asked{rows: data.Rows{Features: f.Features}}
		if held := f.Train[i].Held; held != nil {
			one.rows = held.Rows
		}
		if len(hypotheses) == n {
			one.theta = hypotheses
		}
		if own != nil {
			c, err := own.Choose(cmp.Or(f.Train[i].Name, strconv.Itoa(i)))
			switch {
			case err != nil && !errors.Is(err, artifact.ErrNeedsLabels):
				return nil, err
			case err == nil && c.Role == artifact.RoleClient:
				one.theta, one.own = c.Parameters(), true
				if centre, scale := c.Scaled(); scale != nil {
					one.rows = one.rows.Standardised(centre, scale)
				}
			}
		}
		one.halves = one.theta == nil
		out = append(out, one)
	}
	return out, nil
}

// decisions are the labels that models give, and to which row of which client.
type decisions struct {
	rows        fair.Rows
	client, row []int
	judged      int // clients
	own         int // of them with models of their own
	tooSmall    int
}

// decide lets every client choose its model, where it has a choice, and predict: 1 where
// 1 has the smaller loss.
func decide(m model.Model, loss model.Loss, hypotheses []float64, clients []asked) (decisions, error) {
	learner, err := m.Learner()
	if err != nil {
		return decisions{}, err
	}
	n := m.Parameters()
	var d decisions
	var outputs, losses []float64
	for i, c := range clients {
		from, features, theta := 0, c.rows.Features, c.theta
		if c.halves {
			from = c.rows.Len() / 2
		}
		if c.rows.Len() == 0 || c.halves && from == 0 {
			d.tooSmall++
			continue
		}
		if theta == nil {
			first := data.Client{Rows: data.Rows{X: c.rows.X[:from*features], Y: c.rows.Y[:from], Features: features}}
			_, best, err := model.Best(learner, n, hypotheses, &first)
			if err != nil {
				return decisions{}, err
			}
			theta = hypotheses[best*n : (best+1)*n]
		}
		if c.own {
			d.own++
		}
		d.judged++
		rest := data.Client{Rows: data.Rows{X: c.rows.X[from*features:], Y: c.rows.Y[from:], Features: features}}
		for _, y := range rest.Y {
			if y != 0 && y != 1 {
				return decisions{}, fmt.Errorf("%w: a row has the target %v; allowed: 0 and 1", ErrNoFairness, y)
			}
		}
		var each int
		if outputs, each, err = learner.Outputs(outputs[:0], theta, &rest); err == nil && each > 2 {
			err = fmt.Errorf("%w: the model has %d outputs; allowed: 1 or 2", ErrNoFairness, each)
		}
		if err != nil {
			return decisions{}, err
		}
		losses = slices.Grow(losses[:0], rest.Len())[:rest.Len()]
		if err := learner.Losses(losses, theta, &rest); err != nil {
			return decisions{}, err
		}
		for j, y := range rest.Y {
			predicted := 0
			if saysOne(outputs[j*each:(j+1)*each], loss) {
				predicted = 1
			}
			d.rows.Truth, d.rows.Predicted = append(d.rows.Truth, int(y)), append(d.rows.Predicted, predicted)
			d.rows.Cluster, d.rows.Loss = append(d.rows.Cluster, i), append(d.rows.Loss, losses[j])
			d.client, d.row = append(d.client, i), append(d.row, from+j)
		}
	}
	if len(d.rows.Truth) == 0 {
		return decisions{}, fmt.Errorf("%w: no client has held-out rows enough to be judged by", ErrNoFairness)
	}
	return d, nil
}

// saysOne says that outputs are those of class 1: the larger of two, a logit or margin
// above 0, or a value above one half.
func saysOne(outputs []float64, loss model.Loss) bool {
	switch {
	case len(outputs) == 2:
		return outputs[1] > outputs[0]
	case loss.OfClasses():
		return outputs[0] > 0
	}
	return outputs[0] > 0.5
}
