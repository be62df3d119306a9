package method

import (
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Keys that only some methods read.
var (
	// clusterKeys are of methods whose participants may belong to clusters.
	clusterKeys = []string{
		"algorithm.hypotheses", "algorithm.empty", "algorithm.idle_rounds",
		"algorithm.selection.rule", "algorithm.selection.epsilon_share", "algorithm.selection.score", "algorithm.selection.bound",
	}
	// warmKeys are of methods that may first find clusters.
	warmKeys = append([]string{"algorithm.warm_start", "algorithm.clustering"}, clusterKeys...)
	// judgedKeys are of methods that stop, and return a round's models, by what held-out
	// clients say.
	judgedKeys = []string{"algorithm.stop.patience", "algorithm.stop.return", "algorithm.stop.validation_clients"}
	lambdaKeys = []string{"algorithm.lambda", "algorithm.prox"}
	askedKeys  = []string{"algorithm.clients_per_round", "algorithm.sampling"}
	weightKeys = []string{"algorithm.weights"}
	// meanKeys are of methods whose server finds means.
	meanKeys = []string{"algorithm.weights", "algorithm.robust", "algorithm.robust_share"}
	// stepKeys are of methods that train, by steps and round after round.
	stepKeys = []string{"algorithm.local", "algorithm.rounds", "algorithm.stop.every", "privacy.public_size", "privacy.clipping"}
)

// checkOneModel is for methods with one model at the server.
func checkOneModel(c *config.Checker, run config.Run) {
	a := run.Algorithm
	c.Require(a.Hypotheses == 1, "algorithm.hypotheses", "is %d, but %s has one model; allowed: 1", a.Hypotheses, a.Kind)
	c.Require(a.WarmStart == 0, "algorithm.warm_start", "is %v, but %s has none; allowed: 0", a.WarmStart, a.Kind)
}

// checkWarmStart is for methods that may first find clusters.
func checkWarmStart(c *config.Checker, run config.Run) {
	a := run.Algorithm
	if a.WarmStart == 0 {
		c.Require(a.Hypotheses == 1, "algorithm.hypotheses", "is %d, but %s has one model; allowed: 1 (or set algorithm.warm_start)", a.Hypotheses, a.Kind)
		return
	}
	c.Require(a.Hypotheses > 1, "algorithm.hypotheses", "is %d: one cluster is no choice; allowed: 2 or more", a.Hypotheses)
	checkClustering(c, run)
}

// checkRobust is for methods whose server may find something else than means.
func checkRobust(c *config.Checker, run config.Run) {
	a := run.Algorithm
	if a.Robust == "" {
		return
	}
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but a weight that a participant declares can be forged like the rest of its release; allowed with algorithm.robust: equal", a.Weights)
	c.Require(a.Hypotheses == 1 || a.Clustering != "k-means", "algorithm.robust", "is %s, but k-means finds clusters by their means; allowed with algorithm.clustering k-means: no robust rule", a.Robust)
	c.Require(a.Lambda != config.LambdaAuto, "algorithm.lambda", "is auto, which goes by what participants declare, and that can be forged; allowed with algorithm.robust: a number")
}

// checkClusters is for methods whose participants choose a cluster.
func checkClusters(c *config.Checker, run config.Run) {
	a := run.Algorithm
	c.Require(a.WarmStart == 0, "algorithm.warm_start", "is %v, but %s has none; allowed: 0", a.WarmStart, a.Kind)
	c.Require(a.Hypotheses > 1 || a.Clustering == "k-means", "algorithm.hypotheses", "is %d: one cluster is no choice; allowed: 2 or more", a.Hypotheses)
	checkClustering(c, run)
}

func checkClustering(c *config.Checker, run config.Run) {
	a := run.Algorithm
	if shape, whole := data.ShapeOf(run.Data); whole && shape.Classes == 0 && a.Selection.Rule != "nearest" {
		c.Require(a.Selection.Score != "error", "algorithm.selection.score", "is error, but the answers are values, of which none is wrong, so that all would choose the first cluster; allowed: loss")
	}
	if a.Clustering != "k-means" {
		return
	}
	c.Require(a.Empty != "split", "algorithm.empty", "is split, which needs releases that name their cluster; allowed: keep, relocate")
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but k-means weighs all releases the same; allowed: equal (or algorithm.clustering declared)", a.Weights)
	c.Require(a.Lambda != config.LambdaAuto || a.WarmStart == 0, "algorithm.lambda", "is auto, whose releases say more than a model, and k-means takes models alone; allowed: a number (or algorithm.clustering declared)")
}

// personal are the settings of methods that leave everybody a model of its own: those are
// judged on everybody's own examples, and earlier ones are not kept.
func personal(run *config.Run) {
	run.Algorithm.Stop = config.Stop{Return: "last", Every: run.Algorithm.Stop.Every}
	if run.Judge.By == "clients" {
		run.Judge.By, run.Data.TestShare = "own", 0.2
	}
}

// checkPersonal is for methods that leave everybody a model of its own.
func checkPersonal(c *config.Checker, run config.Run) {
	stop := run.Algorithm.Stop
	c.Require(stop.Return == "last" && stop.Patience == 0, "algorithm.stop",
		"returns %s with patience %d, but participants keep no own models of earlier rounds; allowed: return last, patience 0", stop.Return, stop.Patience)
}

func checkLambda(c *config.Checker, run config.Run) {
	a := run.Algorithm
	auto := a.Lambda == config.LambdaAuto
	l := a.Lambda.Value()
	if a.Kind == "mr-mtl" {
		c.Require(auto || l >= 0, "algorithm.lambda", "is %q; allowed: 0 or more, inf, auto", a.Lambda)
		c.Require(!auto || run.Privacy.Protects == "example", "algorithm.lambda",
			"is auto, which balances what participants have apart with the noise of their steps, and under privacy.protects %s steps have none; allowed: a number", run.Privacy.Protects)
		c.Require(!auto || a.Local.Optimiser == "sgd" && a.Local.Schedule == "constant", "algorithm.lambda",
			"is auto, which reads curvature and noise off plain steps of one size, but algorithm.local has optimiser %s and schedule %s; allowed: a number, or sgd and constant",
			a.Local.Optimiser, a.Local.Schedule)
		if a.Prox == "server" || auto {
			return
		}
	} else {
		c.Require(l >= 0, "algorithm.lambda", "is %q; allowed for %s: 0 or more", a.Lambda, a.Kind)
		c.Require(a.Prox != "server", "algorithm.prox", "is %q; allowed for %s: outside, inside", a.Prox, a.Kind)
	}
	c.Require(math.IsNaN(l) || l*a.Local.Step < 2, "algorithm.lambda",
		"is %s: with algorithm.local.step %v the regulariser's steps grow without bound; allowed: less than %.4g (or prox: server with mr-mtl)",
		a.Lambda, a.Local.Step, 2/a.Local.Step)
}
