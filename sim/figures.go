package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// Result is the finished run; the caller adds names and places.
func (s *Simulation) Result() (Result, error) {
	res, err := s.result()
	if stopped := s.rounds.interrupted(); stopped != nil { // of somebody there may be half an answer
		return Result{}, stopped
	}
	return res, err
}

func (s *Simulation) result() (Result, error) {
	if s.progress.Stopped == "" {
		return Result{}, fmt.Errorf("the run has not ended: round %d", s.rounds.State.Round)
	}
	if s.unjudged { // what the models cost is said beside them
		var res Result
		return res, s.account(&res)
	}
	metrics, err := s.metrics()
	if err != nil {
		return Result{}, err
	}
	a := s.run.Algorithm
	res := Result{
		Summary: Summary{
			Name: s.run.Name, Dataset: s.run.Data.Kind, Algorithm: a.Kind, Mode: a.Mode, Judge: s.run.Judge.By, Seed: s.run.Seed,
			Rounds: s.rounds.State.Round, BestRound: s.progress.BestRound, Returned: a.Stop.Return, Stopped: s.progress.Stopped,
			Clients: s.rounds.Count(), Hypotheses: s.rounds.Algorithm.Outline().Models, Parameters: s.parameters,
			Metrics: metrics, Data: s.federation.Report, Kernel: s.kernel(), Device: s.placed.Used,
		},
		History: s.record.history(s),
	}
	res.History.Curves, res.Untrained, res.Population = s.judgement.curves, s.judgement.untrained, s.population()
	if made := res.History.Rounds; len(made) > 0 {
		res.Steps = made[len(made)-1].Steps
	}
	if err := s.account(&res); err != nil {
		return Result{}, err
	}
	if res.Evaluation, err = s.evaluate(); err != nil {
		return Result{}, err
	}
	if res.Evaluation != nil {
		own := res.Evaluation.Privacy
		res.Privacy.Says = append(res.Privacy.Says, fmt.Sprintf("the evaluation round is one more release, epsilon %.4g at delta %.4g by itself, which is not in this number: a ledger adds the two up", float64(own.Epsilon), float64(own.Delta)))
	}
	if len(s.run.Judge.Compare) > 0 {
		res.Privacy.NotCovered = append(res.Privacy.NotCovered, UncoveredComparison)
	}
	res.History.Truth = s.truth()
	res.Crowd = s.crowdFigures()
	res.History.Returned = vectors(shown(s.Returned(), s.parameters))
	return res, nil
}

// metrics judges the returned models, asking everybody.
func (s *Simulation) metrics() (m Metrics, err error) {
	returned, last := s.Returned(), s.progress
	s.judge.all()
	jobs, err := s.judge.open(returned)
	if err != nil {
		return m, err
	}
	s.rounds.Each(jobs, s.judge.score)
	if err := s.judge.close(&last); err != nil {
		return m, err
	}
	m.Loss = event.Number(last.Loss)
	own := s.run.Judge.By == "own"
	if !own {
		m.HonestLoss, err = s.honestLoss(returned)
	}
	m.WorstDistance = s.worstDistance(returned)
	if s.lambdaSet() {
		m.Lambda, m.Shared = numberIf(true, last.Lambda), numberIf(true, last.Shared)
	}
	if err == nil {
		err = s.taskFigures(&m, jobs)
	}
	if err != nil {
		return m, err
	}
	train, err := s.judge.trained()
	m.TrainLoss = event.Number(train)
	return m, err
}

// account writes what participants spent, and every one's line where they have targets
// or figures of their own.
func (s *Simulation) account(res *Result) (err error) {
	if s.spent != nil {
		res.Privacy = s.stateUpdates()
		s.addBudgets(res)
		if s.run.Judge.By != "own" {
			return nil
		}
	}
	k := len(s.rounds.Participants)
	spends, proved := make([]account.Guarantee, k), make([]*account.Guarantee, k)
	s.rounds.pool.Each(k, func(_, i int) {
		spends[i], proved[i], s.rounds.errs[i] = s.rounds.Algorithm.Spend(&s.rounds.Participants[i])
	})
	if err := s.rounds.firstError(k); err != nil {
		return err
	}
	if s.spent == nil {
		if res.Privacy, err = fl.StateSpends(s.run, spends, proved, s.federation.NotCovered); err != nil {
			return err
		}
		if err := s.priceRounds(&res.History, spends); err != nil {
			return err
		}
		if res.Privacy.Batches, err = fl.BatchesOf(s.rounds.Participants, spends); err != nil {
			return err
		}
	}
	if s.unjudged {
		return nil
	}
	for _, i := range s.someClients() {
		res.Participants = append(res.Participants, s.line(i, spends[i], proved[i]))
	}
	return nil
}

// line is one participant's.
func (s *Simulation) line(i int, spend account.Guarantee, proved *account.Guarantee) Line {
	p := &s.rounds.Participants[i]
	plan := &p.Plan
	line := Line{
		Name: p.Name, Examples: plan.Examples,
		Target: Target{event.Number(plan.Target.Epsilon), event.Number(plan.Target.Delta), plan.Target.Records},
		Noise:  event.Number(plan.Noise), Batch: plan.Batch, Steps: plan.Steps,
		Epsilon: event.Number(spend.Epsilon), Delta: event.Number(spend.Delta),
		Claim: spend.Claim, Unit: spend.Unit, Relation: string(spend.Relation), Trust: spend.Trust, Sampling: spend.Sampling,
		Comparable: s.run.Data.Kind == "school" || plan.Examples >= s.run.Algorithm.Local.Batch,
		Moments:    numberIf(plan.Moments > 0, plan.Moments),
	}
	if proved != nil {
		line.Proved = numberIf(true, proved.Epsilon)
	}
	if s.rounds.Algorithm.Outline().Models > 1 {
		cluster := p.Cluster
		line.Cluster = &cluster
	}
	if j, ok := s.judge.(*ownJudge); ok {
		if line.TestExamples = j.held[i].Len(); line.TestExamples > 0 {
			line.Loss = numberIf(true, j.losses[i])
			line.Error = numberIf(s.classes() > 0, float64(j.wrong[i])/float64(line.TestExamples))
		}
	}
	line.Figures, line.Untrained = s.judgement.figures[i], s.judgement.untrainedOwn[i]
	if m := plan.Target.Records; m > 1 {
		epsilon, delta := plan.Target.Person(spend.Epsilon, spend.Delta)
		line.ProtectsPerson = &Target{event.Number(epsilon), event.Number(delta), m}
	}
	return line
}

// honestLoss is the mean over the validation clients that have other rows to
// choose by.
func (s *Simulation) honestLoss(hypotheses []float64) (*event.Number, error) {
	var sum float64
	clients := 0
	for i := range s.federation.Validation {
		loss, ok, err := model.HonestRMSE(s.learners[0], s.parameters, hypotheses, &s.federation.Validation[i])
		if err != nil {
			return nil, err
		}
		if ok {
			sum += loss
			clients++
		}
	}
	return numberIf(clients > 0, sum/float64(clients)), nil
}

// truth is every group's parameters, where the model has the same ones.
func (s *Simulation) truth() [][]float64 {
	if s.run.Model.Kind != "linear" || len(s.federation.Truth) == 0 {
		return nil
	}
	return s.federation.Truth
}

// worstDistance compares only the coordinates that the truth has: an intercept
// is left out.
func (s *Simulation) worstDistance(hypotheses []float64) *event.Number {
	if s.truth() == nil {
		return nil
	}
	worst := 0.0
	for _, truth := range s.truth() {
		least := math.Inf(1)
		for _, h := range vectors(hypotheses, s.parameters) {
			var sum float64
			for i, x := range truth {
				sum += (h[i] - x) * (h[i] - x)
			}
			least = min(least, math.Sqrt(sum))
		}
		worst = max(worst, least)
	}
	d := event.Number(worst)
	return &d
}

func vectors(flat []float64, n int) [][]float64 {
	var out [][]float64
	for i := 0; i < len(flat); i += n {
		out = append(out, slices.Clone(flat[i:i+n]))
	}
	return out
}

// shownValues is up to how many parameters a history has models as a whole. Of larger
// ones it has the first two values, which are what is drawn: as text, a million would
// take more memory than training, and the models are beside it in a file of their own.
const shownValues = 100_000

// shown is what a history has of models of n parameters, and how many values each has there.
func shown(flat []float64, n int) ([]float64, int) {
	if n <= shownValues {
		return flat, n
	}
	var out []float64
	for i := 0; i < len(flat); i += n {
		out = append(out, flat[i:i+2]...)
	}
	return out, 2
}
