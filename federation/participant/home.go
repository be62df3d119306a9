package participant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/model"
)

// takeHome fetches the models of a finished run.
func (p *Participant) takeHome(ctx context.Context, s *session, f *wire.Finished) error {
	if err := p.settleEarlier(ctx, s, s.allRounds()); err != nil {
		return err
	}
	if f.GetModels() == nil {
		return fmt.Errorf("%w: the server says that no round had enough releases (the run ended for lack of %q), so there is no model; what was released stays spent", transfer.ErrNothing, f.GetStopped())
	}
	var err error
	if p.report.Personal, err = p.personal(ctx, s, f); err != nil {
		return err
	}
	// The models last: then the server knows that this participant needs it no more.
	most := 8*int64(len(s.began.Hypotheses)) + transfer.Overhead + 256*int64(s.run.Algorithm.Hypotheses)
	models, err := fetch(ctx, p.o.Client, p.o.Log, s.plan.Run, f.GetModels(), most)
	if err != nil {
		return err
	}
	p.report.Models = models
	p.report.Rounds, p.report.Stopped = int(f.GetRounds()), f.GetStopped()
	p.report.trained = trained{s.run, s.plan.Shape, s.parameters}
	if p.report.ModelSHA256, err = model.TensorsSHA256(models); err != nil {
		return err
	}
	p.report.Local = p.judge(s)
	p.o.Ledger.Forget(s.plan.Federation, s.plan.Run)
	return nil
}

// personal is the model that the method leaves this participant to use.
func (p *Participant) personal(ctx context.Context, s *session, f *wire.Finished) ([]float64, error) {
	raw, err := fetch(ctx, p.o.Client, p.o.Log, s.plan.Run, f.GetBroadcast(), s.mostBroadcast())
	if err != nil {
		return nil, err
	}
	b, err := transfer.DecodeBroadcast(raw)
	if err != nil {
		return nil, err
	}
	if len(b.Hypotheses) != len(s.began.Hypotheses) {
		return nil, fmt.Errorf("the run ends with %d values; the plan has %d", len(b.Hypotheses), len(s.began.Hypotheses))
	}
	me, err := s.recall(math.MaxInt)
	if err != nil {
		return nil, err
	}
	if me.Evaluated != nil && !bytes.Equal(me.Evaluated, f.GetBroadcast().GetSha256()) {
		return nil, fmt.Errorf("%w: the server had other models evaluated than it gives out; what was released stays spent, and its figures are not of these models", fl.ErrRefused)
	}
	own := make([]float64, s.parameters)
	s.half.Algorithm.Adopt(own, b, me, s.half.Learner)
	p.report.Centre, p.report.Scale, _ = me.Moments()
	return own, nil
}

// writeFigures writes what is for the owner alone. An earlier run's figures do not stay.
func writeFigures(path string, local *evaluate.Local) error {
	if local == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take away the figures of an earlier run: %w", err)
		}
		return nil
	}
	figures, err := json.MarshalIndent(local, "", " ")
	if err != nil {
		return fmt.Errorf("write the local figures: %w", err)
	}
	return durable.WriteFile(path, append(figures, '\n'), 0o600)
}
