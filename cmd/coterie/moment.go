package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/report/progress"
	"github.com/coterie-fl/coterie/sim"
)

// unlessStopped is work that keeps nothing where it could be gone on with: when ctx ends it
// is not waited for.
func unlessStopped[T any](ctx context.Context, work func() (T, error)) (T, error) {
	v, err := pool.Await(ctx, work, func(T) {})
	if ctx.Err() != nil {
		err = sim.ErrInterrupted
	}
	return v, err
}

// show has a bar say how far a run is; others are the methods that it is compared with.
func show(bar *progress.Bar, m sim.Moment, others []string) {
	if m.Doing == sim.Stopping {
		bar.Say("stopping: writing a checkpoint")
		return
	}
	bar.Show(inWords(m, others))
}

// inWords is how far a run is, as its bar shows it: which share of it is done, and the
// round, the client (of one client the step) and the judge's last figure. Others are the methods that it is
// compared with, which come after it.
func inWords(m sim.Moment, others []string) (share float64, words string) {
	within := 0.0 // of the round under way
	stepping := m.Doing == sim.Training && m.Step > 0 && m.Step <= m.Steps
	switch {
	case stepping:
		within = float64(m.Step-1) / float64(m.Steps)
	case m.Doing == sim.Training && m.Of > 1:
		within = float64(m.Clients) / float64(m.Of)
	}
	at := 1 + slices.Index(others, m.Method)
	share = (float64(at) + (float64(m.Round)+within)/float64(max(1, m.Rounds))) / float64(1+len(others))
	round := min(m.Round+1, m.Rounds)
	switch {
	case m.Doing == sim.Finishing:
		words = fmt.Sprintf("%d rounds made, the last figures", m.Round)
		if m.Of > 0 {
			words += fmt.Sprintf(", %d of %d", m.Clients, m.Of)
		}
	case stepping:
		words = fmt.Sprintf("round %d/%d, step %d of %d", round, m.Rounds, m.Step, m.Steps)
	case m.Doing == sim.Judging && m.Of == 1:
		words = fmt.Sprintf("round %d/%d, being judged", round, m.Rounds)
	case m.Doing == sim.Judging && m.Of > 0:
		words = fmt.Sprintf("round %d/%d, judged by %d of %d", round, m.Rounds, m.Clients, m.Of)
	case m.Of > 0:
		words = fmt.Sprintf("round %d/%d, client %d of %d", round, m.Rounds, m.Clients, m.Of)
	default: // rounds that are over before one could read them
		words = fmt.Sprintf("round %d/%d", m.Round, m.Rounds)
	}
	if len(others) > 0 {
		words += fmt.Sprintf(", %s (method %d of %d)", m.Method, at+1, 1+len(others))
	}
	switch {
	case !m.Judged:
		words += ", not judged yet"
	case math.IsNaN(m.Figure) || math.IsInf(m.Figure, 0):
		words += ", the judge's figure is not finite"
	default:
		words += fmt.Sprintf(", the judge's figure %.4g", m.Figure)
	}
	return share, words
}
