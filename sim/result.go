// Package sim runs thousands of participants in one process.
package sim

import (
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// Summary is what one run prints with --output json. Its keys are stable:
// docs/json.md.
type Summary struct {
	RunID        string     `json:"run_id"`
	Name         string     `json:"name"`
	Algorithm    string     `json:"algorithm"`
	Mode         string     `json:"mode"`
	Seed         uint64     `json:"seed"`
	Rounds       int        `json:"rounds"`
	BestRound    int        `json:"best_round"`
	Returned     string     `json:"returned"` // best or last
	Stopped      string     `json:"stopped"`
	Clients      int        `json:"clients"`
	Hypotheses   int        `json:"hypotheses"`
	Parameters   int        `json:"parameters"`
	Metrics      Metrics    `json:"metrics"`
	Privacy      fl.Privacy `json:"privacy"`
	ModelSHA256  string     `json:"model_sha256"`
	ConfigSHA256 string     `json:"config_sha256"`
	Kernel       string     `json:"kernel"`
	Version      string     `json:"version"`
	WallSeconds  float64    `json:"wall_seconds"`
	Directory    string     `json:"directory"`
	Report       string     `json:"report"`
}

// Metrics are of the returned models: mean over clients of the root mean squared
// error (for pictures the cross entropy) under each client's best hypothesis. They
// are known in simulation only.
type Metrics struct {
	ValidationLoss event.Number `json:"validation_loss"`
	TrainLoss      event.Number `json:"train_loss"`
	// Accuracy is the share of the validation clients' pictures that are classified
	// right, each client under its best model; null for rows.
	Accuracy *event.Number `json:"accuracy"`
	// HonestLoss scores every validation row under the model that fits the client's
	// other rows best; null for pictures.
	HonestLoss *event.Number `json:"honest_loss"`
	// WorstDistance is the largest distance from a group's true parameters to the
	// nearest hypothesis; null when the truth is not known.
	WorstDistance *event.Number `json:"worst_distance"`
}

// The reasons why a run ends.
const (
	StoppedRounds   = "rounds"   // all rounds were made
	StoppedPatience = "patience" // no improvement on the validation clients
	StoppedBudget   = "budget"   // every client has reached its ceiling
)

// Result is a finished run with all that a report shows: result.json.
type Result struct {
	Summary
	Command string  `json:"command"` // reproduces the run
	Config  string  `json:"config"`  // the resolved run file
	History History `json:"history"`
}

// History is how a run went. All of it is known in simulation only: a real
// federation would have to pay for every one of these figures.
type History struct {
	// Rounds holds every Stride-th round and the last one.
	Rounds []RoundRecord `json:"rounds"`
	Stride int           `json:"stride"`
	// Early and Late are released vectors of the first and of the last rounds.
	Early []Release `json:"early"`
	Late  []Release `json:"late"`
	// Start and Returned are the hypotheses before the first round and as returned.
	Start    [][]float64 `json:"start"`
	Returned [][]float64 `json:"returned"`
	// Truth is every group's true parameters, if the data are generated.
	Truth [][]float64 `json:"truth"`
	// Budgets is every client's total epsilon, in client order.
	Budgets []event.Number `json:"budgets"`
	// Declined are the clients that declined at least once.
	Declined []int           `json:"declined"`
	Clusters []ClusterBudget `json:"clusters"`
}

// RoundRecord is one round.
type RoundRecord struct {
	Round          int          `json:"round"` // from 1
	ValidationLoss event.Number `json:"validation_loss"`
	// MaxLeakage is the largest total epsilon among the clients that ever had a
	// release in the cluster.
	MaxLeakage []event.Number `json:"max_leakage"`
	Sizes      []int          `json:"sizes"` // releases in every cluster
	Median     event.Number   `json:"median_epsilon"`
	Max        event.Number   `json:"max_epsilon"`
	Declined   int            `json:"declined"`
	Relocated  int            `json:"relocated"`
	// Hypotheses after the round: the first two coordinates of each.
	Hypotheses [][2]float64 `json:"hypotheses"`
}

// Release is one released vector: its first two coordinates.
type Release struct {
	Round   int        `json:"round"`
	Cluster int        `json:"cluster"`
	At      [2]float64 `json:"at"`
}

// ClusterBudget is what the clients whose last release fell into a cluster spent.
type ClusterBudget struct {
	Clients int          `json:"clients"`
	Median  event.Number `json:"median_epsilon"`
	Max     event.Number `json:"max_epsilon"`
}
