package sim

import (
	"context"
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// FamilySilos marks results of silo runs.
const FamilySilos = "silos"

// SiloSummary is what one run on silos prints with --output json. Its keys are
// stable: docs/json.md.
type SiloSummary struct {
	RunID      string         `json:"run_id"`
	Family     string         `json:"family"`
	Name       string         `json:"name"`
	Algorithm  string         `json:"algorithm"`
	Mode       string         `json:"mode"`
	Seed       uint64         `json:"seed"`
	Rounds     int            `json:"rounds"`
	Clients    int            `json:"clients"`
	Clusters   int            `json:"clusters"`
	Parameters int            `json:"parameters"`
	Metrics    SiloMetrics    `json:"metrics"`
	Privacy    fl.SiloPrivacy `json:"privacy"`
	Silos      []SiloLine     `json:"silos"`
	// Data is what was read, and what was left out and why.
	Data         *data.LoadReport `json:"data"`
	ModelSHA256  string           `json:"model_sha256"`
	ConfigSHA256 string           `json:"config_sha256"`
	Kernel       string           `json:"kernel"`
	Version      string           `json:"version"`
	WallSeconds  float64          `json:"wall_seconds"`
	Directory    string           `json:"directory"`
	Report       string           `json:"report"`
}

// SiloMetrics are of every silo's model on its own held-out examples, weighted by
// their number. They are known in simulation only.
type SiloMetrics struct {
	TestMSE   *event.Number `json:"test_mse"`   // of values; null for classes
	TestError *event.Number `json:"test_error"` // share of wrong answers; null for values
	TestLoss  event.Number  `json:"test_loss"`
	TrainLoss event.Number  `json:"train_loss"`
	// Lambda is the median, over silos and coordinates, of what the server set last,
	// and Shared the share of coordinates that it set to infinity; null unless auto.
	Lambda *event.Number `json:"lambda"`
	Shared *event.Number `json:"shared"`
}

// SiloLine is one silo: what it asked for, what it did, and what came out.
type SiloLine struct {
	Name         string        `json:"name"`
	Examples     int           `json:"examples"`
	TestExamples int           `json:"test_examples"`
	Target       SiloTarget    `json:"target"`
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
	TestMSE      *event.Number `json:"test_mse"`
	TestError    *event.Number `json:"test_error"`
	// ProtectsPerson is the (epsilon, delta) of a person with several records.
	ProtectsPerson *SiloTarget `json:"protects_person"`
	// Comparable is false for a silo with less than one batch, where the papers' data
	// had more.
	Comparable bool `json:"comparable"`
}

// SiloTarget is a silo's wish.
type SiloTarget struct {
	Epsilon          event.Number `json:"epsilon"`
	Delta            event.Number `json:"delta"`
	RecordsPerPerson int          `json:"records_per_person"`
}

// SiloResult is a finished run on silos with all that a report shows.
type SiloResult struct {
	SiloSummary
	Command string      `json:"command"`
	Config  string      `json:"config"`
	History SiloHistory `json:"history"`
}

// SiloHistory is how a run went: known in simulation only.
type SiloHistory struct {
	Rounds []SiloRound `json:"rounds"`
}

// SiloRound is one judged round.
type SiloRound struct {
	Round  int           `json:"round"`
	Loss   event.Number  `json:"test_loss"`
	Error  *event.Number `json:"test_error"`
	Lambda *event.Number `json:"lambda"`
	Shared *event.Number `json:"shared"`
	Sizes  []int         `json:"sizes"` // silos in every cluster; null without clusters
}

// Execute makes or continues the run in a directory, leaves the models there and
// returns the result, as Simulation's does.
func (s *Silos) Execute(ctx context.Context, d *Directory, tick func(round int, figure float64)) (SiloResult, error) {
	made, err := perform(ctx, s, d, tick)
	if err != nil {
		return SiloResult{}, err
	}
	res, err := s.Result()
	if err != nil {
		return SiloResult{}, err
	}
	res.ModelSHA256, res.ConfigSHA256, res.Config, res.WallSeconds = made.modelSHA256, made.configSHA256, made.config, made.seconds
	return res, nil
}

// Result is the finished run; the caller adds names and places.
func (s *Silos) Result() (SiloResult, error) {
	if !s.ended() {
		return SiloResult{}, fmt.Errorf("%w: round %d", errNotEnded, s.state.Round)
	}
	if err := s.judge(); err != nil { // a resumed run has not judged its last round
		return SiloResult{}, err
	}
	a := s.run.Algorithm
	res := SiloResult{SiloSummary: SiloSummary{
		Family: FamilySilos, Name: s.run.Name, Algorithm: a.Kind, Mode: a.Mode, Seed: s.run.Seed,
		Rounds: s.state.Round, Clients: len(s.participants), Clusters: len(s.state.Hypotheses) / len(s.models[0]),
		Parameters: len(s.models[0]), Data: s.federation.Report, Kernel: model.Kernel(),
	}}
	loss, wrong := s.testFigures()
	train, err := s.trainLoss()
	if err != nil {
		return SiloResult{}, err
	}
	res.Metrics = SiloMetrics{TestLoss: event.Number(loss), TrainLoss: event.Number(train)}
	res.Metrics.TestMSE, res.Metrics.TestError = s.figures(loss, wrong)
	if l, part, ok := s.lambda(); ok {
		lambda, shared := event.Number(l), event.Number(part)
		res.Metrics.Lambda, res.Metrics.Shared = &lambda, &shared
	}
	if err := s.account(&res); err != nil {
		return SiloResult{}, err
	}
	res.History = s.history()
	return res, nil
}

// figures are the one that goes with the data, and null.
func (s *Silos) figures(loss, wrong float64) (mse, rate *event.Number) {
	if s.federation.Classes > 0 {
		n := event.Number(wrong)
		return nil, &n
	}
	n := event.Number(loss)
	return &n, nil
}

// trainLoss is the mean over all training examples.
func (s *Silos) trainLoss() (float64, error) {
	losses := make([]float64, len(s.all))
	s.pool.Each(len(s.all), func(worker, i int) {
		theta := s.models[worker]
		s.algorithm.Adopt(theta, s.sent, &s.participants[i])
		p := &s.participants[i]
		losses[i], _, s.errs[i] = s.judges[worker].Judge(theta, s.algorithm.Standardised(p, &s.federation.Train[i]))
	})
	sum, total := 0.0, 0.0
	for i, l := range losses {
		n := float64(s.federation.Train[i].Len())
		sum += n * l
		total += n
	}
	return sum / total, s.firstError()
}

// account writes every silo's line and the federation's.
func (s *Silos) account(res *SiloResult) error {
	k := len(s.participants)
	spends, proved, errs := make([]account.Guarantee, k), make([]*account.Guarantee, k), make([]error, k)
	s.pool.Each(k, func(_, i int) {
		p := &s.participants[i]
		spends[i], proved[i], errs[i] = p.Plan.Spend(p.Paid)
	})
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("silo %s: %w", s.participants[i].Name, err)
		}
		res.Silos = append(res.Silos, s.line(i, spends[i], proved[i]))
	}
	var err error
	res.Privacy, err = fl.StateSilos(s.run, spends, proved, s.federation.NotCovered)
	return err
}

func (s *Silos) line(i int, spend account.Guarantee, proved *account.Guarantee) SiloLine {
	p := &s.participants[i]
	plan := &p.Plan
	line := SiloLine{
		Name: p.Name, Examples: plan.Examples, TestExamples: s.federation.Test[i].Len(),
		Target: SiloTarget{event.Number(plan.Target.Epsilon), event.Number(plan.Target.Delta), plan.Target.Records},
		Noise:  event.Number(plan.Noise), Batch: plan.Batch, Steps: plan.Steps,
		Epsilon: event.Number(spend.Epsilon), Delta: event.Number(spend.Delta),
		Claim: spend.Claim, Unit: spend.Unit, Relation: string(spend.Relation), Trust: spend.Trust, Sampling: spend.Sampling,
		Comparable: s.run.Data.Kind == "school" || plan.Examples >= s.run.Algorithm.Local.Batch,
	}
	if plan.Moments > 0 {
		n := event.Number(plan.Moments)
		line.Moments = &n
	}
	if proved != nil {
		n := event.Number(proved.Epsilon)
		line.Proved = &n
	}
	if res := len(s.state.Hypotheses) / len(s.models[0]); res > 1 {
		cluster := int(p.Personal[len(s.models[0])])
		line.Cluster = &cluster
	}
	if line.TestExamples > 0 {
		line.TestMSE, line.TestError = s.figures(s.losses[i], float64(s.wrong[i])/float64(line.TestExamples))
	}
	if m := plan.Target.Records; m > 1 {
		epsilon, delta := plan.Target.Person(spend.Epsilon, spend.Delta)
		line.ProtectsPerson = &SiloTarget{event.Number(epsilon), event.Number(delta), m}
	}
	return line
}

func (s *Silos) history() SiloHistory {
	r := &s.record
	h := SiloHistory{}
	for i, round := range r.Rounds {
		one := SiloRound{Round: round, Loss: event.Number(r.Loss[i])}
		if s.federation.Classes > 0 {
			n := event.Number(r.Error[i])
			one.Error = &n
		}
		if i < len(r.Lambda) {
			lambda, shared := event.Number(r.Lambda[i]), event.Number(r.Shared[i])
			one.Lambda, one.Shared = &lambda, &shared
		}
		if i < len(r.Sizes) {
			one.Sizes = r.Sizes[i]
		}
		h.Rounds = append(h.Rounds, one)
	}
	return h
}
