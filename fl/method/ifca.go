package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "ifca", Words: "one model for every cluster; participants choose theirs", Common: fl.CommonGlobal,
		Keys: slices.Concat(stepKeys, clusterKeys, judgedKeys, askedKeys, meanKeys, []string{"algorithm.clustering", "algorithm.selection.share"}),
		Settings: func(run *config.Run) {
			run.Algorithm.Hypotheses = 2
			if run.Algorithm.Clustering == "declared" {
				run.Algorithm.Hypotheses = 3
			}
		},
		Check: func(c *config.Checker, run config.Run) {
			checkClusters(c, run)
			checkRobust(c, run)
		},
		New: func(s fl.Setup) (fl.Method, error) { return newClustered(s), nil },
	})
	fl.RegisterMethod(fl.MethodKind{
		Name: "group-private", Words: "Algorithm 1 of papers 000 and 004: releases name no cluster, the server finds them", Common: fl.CommonGlobal,
		Keys: slices.Concat(stepKeys, clusterKeys, judgedKeys, askedKeys, []string{"algorithm.selection.share"}),
		Settings: func(run *config.Run) {
			a := &run.Algorithm
			a.Hypotheses, a.Clustering, a.Empty, a.Weights = 2, "k-means", "relocate", "equal"
			a.Selection.Rule, a.Selection.Share = "best", 1
			run.Privacy.Protects = "update"
		},
		Check: func(c *config.Checker, run config.Run) {
			checkClusters(c, run)
			c.Require(run.Algorithm.Clustering == "k-means", "algorithm.clustering", "is %q, but in Algorithm 1 releases name no cluster; allowed: k-means (or algorithm.kind ifca)", run.Algorithm.Clustering)
		},
		New: func(s fl.Setup) (fl.Method, error) { return newClustered(s), nil },
	})
}

// clustered is one model for every cluster, which participants choose by their own data
// in a share of the rounds: IFCA (Ghosh et al. 2020) or HypCluster where they name it,
// Algorithm 1 where the server clusters what it gets.
type clustered struct{ centres }

func newClustered(s fl.Setup) *clustered {
	a := s.Run.Algorithm
	return &clustered{newCentres(s, roundsOf(a.Selection.Share, a.Rounds), a.Rounds, false)}
}
