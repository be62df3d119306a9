package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "central", Words: "one model, trained where all examples are", Common: fl.CommonGlobal, Central: true,
		Keys: slices.Concat(stepKeys, judgedKeys),
		Settings: func(run *config.Run) {
			a := &run.Algorithm
			a.Hypotheses, a.ClientsPerRound, a.Weights, a.Selection.Rule = 1, 0, "equal", "best"
			a.Stop = config.Stop{Return: "last", Every: a.Stop.Every}
			if run.Judge.By != "clients" || run.Data.TestShare > 0 {
				run.Judge.By = "test"
			}
		},
		Check: func(c *config.Checker, run config.Run) {
			checkOneModel(c, run)
			a, p := run.Algorithm, run.Privacy
			c.Require(a.ClientsPerRound == 0 || a.ClientsPerRound == 1, "algorithm.clients_per_round", "is %d, but central trains where all examples are; allowed: 0", a.ClientsPerRound)
			c.Require(p.Protects != "update" && p.Protects != "client", "privacy.protects", "is %s, but central has no participants that could send something; allowed: example, node, nothing", p.Protects)
			c.Require(run.Data.Partition != "region", "data.partition", "is region, but central trains where everybody is; allowed: central")
			c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but central has nobody to weigh; allowed: equal", a.Weights)
			c.Require(run.Judge.By != "own", "judge.by", "is own, but central has one model and no participants; allowed: test, clients")
		},
		New: func(s fl.Setup) (fl.Method, error) {
			return &central{newCentres(s, 0, s.Run.Algorithm.Rounds, false)}, nil
		},
	})
}

// central is training in one place: the rounds are blocks of steps between two judgements
// and checkpoints, and each goes on where the last one ended, optimiser, clip and step
// size included.
type central struct{ centres }

func (m *central) Outline() fl.Outline {
	o := m.centres.Outline()
	o.Continues = true
	return o
}
