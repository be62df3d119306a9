package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "fedavg", Words: "one model for all; after a warm start one for every cluster", Common: fl.CommonGlobal,
		Keys: slices.Concat(stepKeys, warmKeys, judgedKeys, askedKeys, meanKeys),
		Check: func(c *config.Checker, run config.Run) {
			checkWarmStart(c, run)
			checkRobust(c, run)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			return &federatedAveraging{newCentres(s, warmRounds(s.Run), s.Run.Algorithm.Rounds, false)}, nil
		},
	})
}

// federatedAveraging is one model for all (McMahan et al. 2017); after a warm start, one
// for every cluster.
type federatedAveraging struct{ centres }
