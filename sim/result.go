// Package sim runs thousands of participants in one process.
package sim

import (
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/metrics"
)

// Summary is what one run prints with --output json. Its keys are stable:
// docs/json.md.
type Summary struct {
	RunID      string  `json:"run_id"`
	Name       string  `json:"name"`
	Dataset    string  `json:"dataset"` // data.kind
	Algorithm  string  `json:"algorithm"`
	Mode       string  `json:"mode"`
	Judge      string  `json:"judge"`
	Seed       uint64  `json:"seed"`
	Rounds     int     `json:"rounds"`
	BestRound  int     `json:"best_round"`
	Returned   string  `json:"returned"` // best or last
	Stopped    string  `json:"stopped"`
	Clients    int     `json:"clients"`
	Hypotheses int     `json:"hypotheses"` // models of the server
	Parameters int     `json:"parameters"`
	Metrics    Metrics `json:"metrics"`
	// Untrained are the models of people beside scores that nobody trained; null: the
	// examples are no people.
	Untrained *Untrained `json:"untrained"`
	Privacy   fl.Privacy `json:"privacy"`
	// Steps are those of the last round, in central training and where the clip moves; null
	// elsewhere.
	Steps *StepsRecord `json:"steps"`
	// Participants is null where none has a figure or a target of its own; of more than
	// 10,000 it lists so many, drawn by the seed.
	Participants []Line       `json:"participants"`
	Comparison   []Comparison `json:"comparison"` // with judge.compare's methods; null: none
	// Crowd says how many were asked where nobody else is held; absent: all are held.
	Crowd *CrowdFigures `json:"crowd,omitempty"`
	// Evaluation is what the evaluation round's noised counts say; absent: there was none.
	Evaluation   *evaluate.Figures `json:"evaluation,omitempty"`
	Data         *data.LoadReport  `json:"data"` // what was read, and what was left out and why; null for drawn data
	ModelSHA256  string            `json:"model_sha256"`
	ConfigSHA256 string            `json:"config_sha256"`
	Kernel       string            `json:"kernel"`
	Device       *compute.Used     `json:"device"` // null: the run file asks for none
	Version      string            `json:"version"`
	WallSeconds  float64           `json:"wall_seconds"`
	Directory    string            `json:"directory"`
	Report       string            `json:"report"`
}

// Metrics are of the returned models, by the run's judge: of held-out clients, each
// under the model that fits it best, or of every participant's own model on its own
// held-out examples. They are known in simulation only.
type Metrics struct {
	// Loss is what decides when training stops. Of held-out clients it is the mean, over
	// clients, of the root mean squared error (of classes: the mean loss); of own
	// held-out examples the mean, over examples, of the squared error (of classes: the
	// loss).
	Loss      event.Number `json:"loss"`
	TrainLoss event.Number `json:"train_loss"` // the same of training examples
	// Error is the share of wrong answers; null for values.
	Error *event.Number `json:"error"`
	// Figures by the task, each with its interval over clients; null for other tasks.
	metrics.Figures
	// HonestLoss scores every row of held-out clients under the model that fits the
	// client's other rows best; null for pictures, and for own examples.
	HonestLoss *event.Number `json:"honest_loss"`
	// WorstDistance is the largest distance from a group's true parameters to the
	// nearest hypothesis; null when the truth is not known.
	WorstDistance *event.Number `json:"worst_distance"`
	// Lambda is the median, over participants and coordinates, of what the server set
	// last, and Shared the share of coordinates that it set to infinity; null unless auto.
	Lambda *event.Number `json:"lambda"`
	Shared *event.Number `json:"shared"`
}

// Line is one participant: what it asked for, what it did, and what came out.
type Line struct {
	Name         string        `json:"name"`
	Examples     int           `json:"examples"`
	TestExamples int           `json:"test_examples"`
	Target       Target        `json:"target"`
	Noise        event.Number  `json:"noise"`
	Moments      *event.Number `json:"moments_noise"` // of the moments that scale the features; null: none are paid for
	Batch        int           `json:"batch"`
	Steps        int           `json:"steps"` // in a round
	Epsilon      event.Number  `json:"epsilon"`
	Delta        event.Number  `json:"delta"`
	Claim        event.Claim   `json:"claim"`
	Unit         event.Unit    `json:"unit"`
	Relation     string        `json:"relation"`
	Trust        event.Trust   `json:"trust"`
	Sampling     string        `json:"sampling"`
	Proved       *event.Number `json:"proved_epsilon"` // replace-one; null where epsilon is proved itself, and where nothing is
	Cluster      *int          `json:"cluster"`        // null: there are none
	Loss         *event.Number `json:"loss"`           // on its own held-out examples; null: it has none
	Error        *event.Number `json:"error"`          // share of wrong answers; null for values
	// Figures are those of its own held-out examples, with intervals over them; null: it
	// has none, or others judge.
	Figures *metrics.Figures `json:"figures"`
	// Untrained is Summary's of its own people; null: it holds none, or all.
	Untrained *Untrained `json:"untrained"`
	// ProtectsPerson is the (epsilon, delta) of a person with several records.
	ProtectsPerson *Target `json:"protects_person"`
	// Comparable is false for a participant with less than one batch, where the papers'
	// data had more.
	Comparable bool `json:"comparable"`
}

// Target is a participant's wish.
type Target struct {
	Epsilon          event.Number `json:"epsilon"`
	Delta            event.Number `json:"delta"`
	RecordsPerPerson int          `json:"records_per_person"`
}

// The reasons why a run ends.
const (
	StoppedRounds   = "rounds"   // all rounds were made
	StoppedPatience = "patience" // the judge saw no improvement
	StoppedBudget   = "budget"   // every client has reached its ceiling
)

// Result is a finished run with all that a report shows: result.json.
type Result struct {
	Summary
	Command string  `json:"command"` // reproduces the run
	Config  string  `json:"config"`  // the resolved run file
	History History `json:"history"`
	// Population is what the people look like that were trained on, counted from private
	// records; null: there are none.
	Population *contacts.Figures `json:"population"`
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
	// Start and Returned are the hypotheses before the first round and as returned; of
	// models with more than 100,000 parameters the first two values of each.
	Start    [][]float64 `json:"start"`
	Returned [][]float64 `json:"returned"`
	// Truth is every group's true parameters, if the data are generated.
	Truth [][]float64 `json:"truth"`
	// Curves of the judged examples, all together; null unless they have 2 classes.
	Curves *metrics.Curves `json:"curves"`
	// Budgets is every client's total epsilon, in client order; null: Spends counts them.
	Budgets []event.Number `json:"budgets"`
	// Spends counts clients by their total epsilon instead, in ascending order, where there
	// are more than 10,000 of them; of more than 1,000 different totals each is rounded up.
	Spends []Budget `json:"spends,omitempty"`
	// Declined are the clients that declined at least once; of more than 10,000 clients they
	// are only counted, in the statement.
	Declined []int           `json:"declined"`
	Clusters []ClusterBudget `json:"clusters"`
}

// RoundRecord is one round.
type RoundRecord struct {
	Round int           `json:"round"` // from 1
	Loss  event.Number  `json:"loss"`  // by the judge, as of its last judgement
	Error *event.Number `json:"error"` // share of wrong answers; null for values
	// MaxLeakage is the largest total epsilon among the clients that ever had a
	// release in the cluster; null where epsilon is not added up round by round.
	MaxLeakage []event.Number `json:"max_leakage"`
	Sizes      []int          `json:"sizes"` // releases in every cluster
	Median     *event.Number  `json:"median_epsilon"`
	Max        *event.Number  `json:"max_epsilon"`
	// Epsilon is what the participant that is most exposed at the end had spent after the
	// round, in the terms of the result's privacy; null in rounds between those that are
	// told, and where the others are not null.
	Epsilon   *event.Number `json:"epsilon"`
	Declined  int           `json:"declined"`
	Relocated int           `json:"relocated"`
	Lambda    *event.Number `json:"lambda"`
	Shared    *event.Number `json:"shared"`
	// Hypotheses after the round: the first two coordinates of each.
	Hypotheses [][2]float64 `json:"hypotheses"`
	// Steps are what private steps met and did, in central training and where the clip
	// moves; null elsewhere.
	Steps *StepsRecord `json:"steps"`
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
