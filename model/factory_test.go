package model

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

func TestCheckModelsOfSilos(t *testing.T) {
	for _, kind := range []string{"school", "vehicle", "gleam", "adni", "rotated-mnist", "cifar10-silos"} {
		run := config.Default(kind, "local", "paper")
		if faults := Check(run); faults != nil {
			t.Errorf("%s: the defaults are refused: %v", kind, faults)
		}
		other := config.Model{Kind: "network", Name: "cross-silo-adni"}
		if kind == "adni" {
			other = config.Model{Kind: "linear"}
		}
		run.Model = other
		if faults := Check(run); len(faults) == 0 {
			t.Errorf("%s: %+v was accepted", kind, other)
		}
	}
}

// TestCheckTheLoss: one that does not fit the targets is refused with those that do,
// before any data are read.
func TestCheckTheLoss(t *testing.T) {
	for _, v := range []struct{ kind, loss, says string }{
		{"synthetic", "cross-entropy", "the targets are values; allowed: squared-error, half-squared-error, rmse"},
		{"synthetic", "hinge", "the targets are values"},
		{"synthetic", "half-squared-error", ""},
		{"school", "hinge", "the targets are values"},
		{"school", "squared-error", ""},
		{"vehicle", "cross-entropy", ""},
		{"vehicle", "squared-error", ""},
		{"rotated-mnist", "hinge", "the targets are 10 classes; allowed: squared-error, half-squared-error, rmse, cross-entropy, focal"},
		{"rotated-mnist", "squared-error", ""},
	} {
		run := config.Default(v.kind, "", "paper")
		run.Algorithm.Local.Loss = v.loss
		faults := Check(run)
		if v.says == "" && faults != nil || v.says != "" && (len(faults) != 1 || faults[0].Path != "algorithm.local.loss" || !strings.Contains(faults[0].Message, v.says)) {
			t.Errorf("%s with %s: %v, wanted %q", v.kind, v.loss, faults, v.says)
		}
	}
}

func TestCheckTheOptimiser(t *testing.T) {
	for optimiser, path := range map[string]string{"sgd": "algorithm.local.momentum", "momentum": "algorithm.local.beta2", "adam": "algorithm.local.momentum"} {
		run := config.Default("synthetic", "", "paper")
		run.Algorithm.Local.Optimiser = optimiser
		if faults := Check(run); faults != nil {
			t.Errorf("%s: %v", optimiser, faults)
		}
		run.Algorithm.Local.Momentum, run.Algorithm.Local.Beta2 = 0.5, 0.9
		if optimiser != "adam" && optimiser != "sgd" {
			run.Algorithm.Local.Momentum = 0.9
		}
		if faults := Check(run); len(faults) == 0 || faults[0].Path != path {
			t.Errorf("%s with another's keys: %v", optimiser, faults)
		}
	}
}

func TestOf(t *testing.T) {
	rows := func(classes int) data.Shape { return data.Shape{Features: 3, Classes: classes} }
	pictures := func(classes int) data.Shape { return data.Shape{Height: 28, Width: 28, Classes: classes} }
	layers := func(outputs int) config.Model {
		return config.Model{Kind: "network", Layers: []Layer{{Kind: "linear", Units: 4}, {Kind: "tanh"}, {Kind: "linear", Units: outputs}}}
	}
	linear := config.Model{Kind: "linear"}
	for name, c := range map[string]struct {
		m    config.Model
		loss Loss
		s    data.Shape
		says string
	}{
		"linear values":         {linear, RMSE, rows(0), ""},
		"logistic regression":   {linear, CrossEntropy, rows(2), ""},
		"an SVM":                {linear, Hinge, rows(2), ""},
		"a network of rows":     {config.Model{Kind: "network", Name: "hospital"}, HalfSquaredError, rows(0), ""},
		"one logit":             {layers(1), CrossEntropy, rows(2), ""},
		"two scores":            {layers(2), CrossEntropy, rows(2), ""},
		"a network's hinge":     {layers(1), Hinge, rows(2), ""},
		"three scores":          {layers(3), CrossEntropy, rows(3), ""},
		"one-hot squares":       {layers(10), SquaredError, pictures(10), ""},
		"values of pictures":    {layers(1), HalfSquaredError, pictures(0), ""},
		"linear pictures":       {linear, CrossEntropy, pictures(10), "allowed: network"},
		"softmax regression":    {linear, CrossEntropy, rows(3), ""},
		"focal of three":        {linear, Focal, rows(3), ""},
		"linear one-hot":        {linear, SquaredError, rows(3), ""},
		"linear one-hot root":   {linear, RMSE, rows(3), "allowed: cross-entropy"},
		"focal, one logit":      {layers(1), Focal, rows(2), ""},
		"focal, two scores":     {layers(2), Focal, rows(2), ""},
		"focal, values":         {linear, Focal, rows(0), "the targets are values"},
		"cross entropy, values": {linear, CrossEntropy, rows(0), "allowed: squared-error"},
		"hinge, values":         {linear, Hinge, rows(0), "the targets are values"},
		"hinge, three classes":  {layers(3), Hinge, rows(3), "the targets are 3 classes"},
		"hinge, two outputs":    {layers(2), Hinge, rows(2), "hinge loss takes one"},
		"another size":          {config.Model{Kind: "network", Name: "cross-silo-cifar"}, CrossEntropy, pictures(10), "32x32x3"},
		"other classes":         {config.Model{Kind: "network", Name: "cross-silo-mnist"}, CrossEntropy, pictures(3), "10 values for 3 classes"},
		"other features":        {config.Model{Kind: "network", Name: "hospital"}, SquaredError, data.Shape{Features: 4}, "takes 3 values"},
		"two values for one":    {layers(2), SquaredError, rows(0), "the target is one"},
		"no such network":       {config.Model{Kind: "network", Name: "x"}, CrossEntropy, pictures(10), "not known"},
		"nothing to train":      {config.Model{Kind: "network", Layers: []Layer{{Kind: "mean-pool", Kernel: 28}}}, SquaredError, pictures(0), "no parameters"},
	} {
		m, err := Of(runOf(c.m, c.loss), c.s)
		switch {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, wanted %q", name, err, c.says)
		case c.says == "":
			if _, err := m.Learner(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestCheckTheLimit: only of pictures a client can draw some for a round.
func TestCheckTheLimit(t *testing.T) {
	for kind, faulty := range map[string]bool{"synthetic": true, "school": true, "rotated-mnist": false, "writers": false} {
		run := config.Default(kind, "fedavg", "paper")
		run.Algorithm.Local.Limit = 3
		found := false
		for _, f := range Check(run) {
			found = found || f.Path == "algorithm.local.limit"
		}
		if found != faulty {
			t.Errorf("%s: a fault at algorithm.local.limit %v, want %v", kind, found, faulty)
		}
	}
}
