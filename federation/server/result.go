package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// Family marks results of federations.
const Family = "federation"

// Result is what one run of a server ends with. Its keys are stable.
type Result struct {
	Family       string              `json:"family"`
	Federation   string              `json:"federation"`
	RunID        string              `json:"run_id"`
	Name         string              `json:"name"`
	Algorithm    string              `json:"algorithm"`
	Mode         string              `json:"mode"`
	Seed         uint64              `json:"seed"`
	Finished                         // rounds, abandoned, stopped, model_sha256
	Hypotheses   int                 `json:"hypotheses"`
	Parameters   int                 `json:"parameters"`
	Participants []ParticipantRecord `json:"participants"`
	History      []RoundRecord       `json:"history"`
	Evaluation   *evaluate.Figures   `json:"evaluation,omitempty"` // absent: the plan has none
	Quorum       int                 `json:"quorum"`
	Minimum      int                 `json:"minimum"`
	Config       string              `json:"config"`
	ConfigSHA256 string              `json:"config_sha256"`
	PlanSHA256   string              `json:"plan_sha256"`
	Kernel       string              `json:"kernel"`
	Directory    string              `json:"directory"`
}

// ParticipantRecord is what the server knows of one participant.
type ParticipantRecord struct {
	Name          string           `json:"name"`
	Released      int              `json:"released"`
	Declined      int              `json:"declined"`
	Missed        int              `json:"missed"` // asked, without an answer
	Equivocations int              `json:"equivocations"`
	Receipts      int              `json:"receipts"` // that the server has signed
	Spent         *event.Statement `json:"spent"`    // as it says itself, in its last receipt
	// Enforcement is whether the program itself kept to the limits, or a trainer says so.
	Enforcement ledger.Enforcement `json:"enforcement"`
}

// RoundRecord is one round, as the server saw it.
type RoundRecord struct {
	Round    int       `json:"round"`  // from 1
	Status   string    `json:"status"` // closed, abandoned
	Asked    int       `json:"asked"`
	Released int       `json:"released"`
	Declined int       `json:"declined"`
	Missed   int       `json:"missed"`
	Opened   time.Time `json:"opened"`
	Ended    time.Time `json:"ended"`
	Reason   string    `json:"reason"` // of abandoning it
	// Evaluation: it is the round of evaluation after the last one.
	Evaluation bool `json:"evaluation,omitempty"`
}

// leave writes models and result to a folder.
func (c *Coordinator) leave(ctx context.Context, out string, end Finished) (Result, error) {
	hash, err := c.run.Hash()
	if err != nil {
		return Result{}, err
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return Result{}, fmt.Errorf("find the folder for the models: %w", err)
	}
	res := Result{
		Family: Family, Federation: c.plan.Federation, Quorum: c.plan.Quorum, Minimum: c.plan.Minimum, Config: c.plan.RunFile,
		RunID: c.plan.Run, Name: c.run.Name, Algorithm: c.run.Algorithm.Kind, Mode: c.run.Algorithm.Mode, Seed: c.run.Seed,
		Finished: end, Hypotheses: c.run.Algorithm.Hypotheses, Parameters: c.model.Parameters(),
		ConfigSHA256: hash, PlanSHA256: fmt.Sprintf("%x", c.sum), Kernel: model.Kernel(), Directory: dir,
	}
	if res.Participants, res.History, err = c.account(ctx); err != nil {
		return res, err
	}
	if res.Evaluation, err = c.figures(ctx); err != nil {
		return res, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return res, fmt.Errorf("make the folder for the models: %w", err)
	}
	if err := c.leaveModels(out, end.Models(), res.Participants); err != nil {
		return res, err
	}
	text, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return res, fmt.Errorf("write the result: %w", err)
	}
	return res, durable.WriteFile(filepath.Join(out, "result.json"), append(text, '\n'), 0o644)
}

// account sums up what every participant did, and what every round brought.
func (c *Coordinator) account(ctx context.Context) ([]ParticipantRecord, []RoundRecord, error) {
	out := make([]ParticipantRecord, len(c.names))
	for i, name := range c.names {
		out[i].Name = name
	}
	rounds, err := c.store.Rounds(ctx, c.plan.Run)
	if err != nil {
		return nil, nil, err
	}
	history := make([]RoundRecord, len(rounds))
	for i, r := range rounds {
		answers, err := c.store.Answers(ctx, c.plan.Run, r.Number)
		if err != nil {
			return nil, nil, err
		}
		history[i] = RoundRecord{
			Round: r.Number + 1, Status: string(r.Status), Asked: len(answers), Opened: r.Opened.UTC(), Ended: r.Ended.UTC(), Reason: r.Reason,
			Evaluation: c.isEvaluation(r.Number),
		}
		for _, a := range answers {
			switch p := &out[a.Participant]; a.Kind {
			case store.Released:
				p.Released++
				history[i].Released++
			case store.Declined:
				p.Declined++
				history[i].Declined++
			default:
				p.Missed++
				history[i].Missed++
			}
		}
	}
	doubles, err := c.store.Equivocations(ctx, c.plan.Run)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range doubles {
		out[e.Participant].Equivocations += 1 + e.Further
	}
	receipts, err := c.store.Receipts(ctx, c.plan.Run)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range receipts { // by round: the last one stands
		signed, err := ledger.ParseSignedReceipt(r.Signed)
		if err != nil {
			return nil, nil, fmt.Errorf("a receipt in the store: %w", err)
		}
		p := &out[c.index[r.Participant]]
		p.Receipts++
		if spent := &signed.Receipt.Spent; p.Spent == nil || !c.isEvaluation(r.Round) || sameTerms(*p.Spent, *spent) {
			p.Spent, p.Enforcement = spent, signed.Receipt.Enforcement
		}
	}
	return out, history, nil
}

// sameTerms says whether two statements are of one ceiling: then the later one includes
// the other. What an evaluation costs on other terms than training is told beside it.
func sameTerms(a, b event.Statement) bool {
	return a.Unit == b.Unit && a.Relation == b.Relation && a.Claim == b.Claim && a.Trust == b.Trust
}
