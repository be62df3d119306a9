package sim

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

const (
	maxRecords     = 4096 // rounds kept; beyond, every second one is dropped
	windowRounds   = 5    // rounds whose releases are kept, at the start and at the end
	windowReleases = 40   // releases kept of each of them
)

// recorder keeps a run's history in flat slices, so that a round costs no
// allocation. Its exported fields are what a checkpoint holds.
type recorder struct {
	K, N   int // hypotheses, and parameters of each
	Start  []float64
	Stride int

	Rounds                         []int
	Loss, Leakage, Hypotheses, Med []float64
	Max, Error, Lambda, Shared     []float64
	Sizes                          []int
	Declined, Relocated            []int
	Steps                          []*StepsRecord // none, unless steps are watched

	Early []Release
	Late  []Release // a ring: the slot of a round is round modulo windowRounds
	Top   []float64 // largest total so far, by cluster
	Count []int     // clients by number of releases made
	Each  []float64 // total epsilon by number of releases made
	size  []int

	median, most float64 // of the round that was tallied, if it is due
}

func newRecorder(k, n, clients int, start []float64) recorder {
	start, _ = shown(start, n)
	return recorder{
		K: k, N: n, Start: slices.Clone(start), Stride: 1,
		Top: make([]float64, k), Count: []int{clients}, Each: []float64{0}, size: make([]int, k),
	}
}

// tally counts a round's releases, client by client, and keeps some of them. It needs
// nothing of the validation, so it runs beside it.
func (r *recorder) tally(s *Simulation, releases fl.Releases, outcome fl.Outcome) {
	clear(r.size)
	for i, j := range outcome.Assigned {
		if j < 0 {
			continue
		}
		r.size[j]++
		if s.spent != nil {
			spent := s.spentBy(releases.Clients[i])
			r.Top[j] = max(r.Top[j], spent.epsilon)
			r.count(spent.releases, spent.epsilon)
		}
	}
	round := s.rounds.State.Round                  // already the next one: counted from 1
	if s.rounds.Algorithm.Outline().Moments == 0 { // sums are no models that could be shown beside others
		r.keepReleases(round, releases, outcome)
	}
	if r.due(round) {
		r.median, r.most = r.medianAndMax(s.rounds.Count())
	}
}

// resume goes on with a record from a checkpoint; sizes are those of the round that was
// tallied, if one was.
func (r *recorder) resume(from recorder, sizes []int, clients int) {
	size := r.size
	*r = from
	r.size = size
	if copy(r.size, sizes) > 0 {
		r.median, r.most = r.medianAndMax(clients)
	}
}

func (r *recorder) due(round int) bool { return (round-1)%r.Stride == 0 }

// add keeps the round that was tallied, if it is due or the last one.
func (r *recorder) add(s *Simulation, m made) {
	round := s.rounds.State.Round
	switch {
	case r.due(round):
	case s.progress.Stopped == "":
		return
	default:
		r.median, r.most = r.medianAndMax(s.rounds.Count())
	}
	r.Rounds = append(r.Rounds, round)
	r.Loss = append(r.Loss, s.progress.Loss)
	r.Leakage = append(r.Leakage, r.Top...)
	r.Sizes = append(r.Sizes, r.size...)
	r.Med, r.Max = append(r.Med, r.median), append(r.Max, r.most)
	r.Error, r.Lambda, r.Shared = append(r.Error, s.progress.Error), append(r.Lambda, s.progress.Lambda), append(r.Shared, s.progress.Shared)
	if s.recordSteps != nil {
		r.Steps = append(r.Steps, s.recordSteps())
	}
	r.Declined = append(r.Declined, m.Declined)
	r.Relocated = append(r.Relocated, m.Relocated)
	for j := range r.K {
		at := firstTwo(s.rounds.State.Hypotheses[j*r.N : (j+1)*r.N])
		r.Hypotheses = append(r.Hypotheses, at[:]...)
	}
	if len(r.Rounds) >= maxRecords {
		r.thin()
	}
}

// count moves one client from releases-1 to releases. Equal numbers of releases
// cost the same, so counting them is enough to know the median.
func (r *recorder) count(releases int, total float64) {
	if releases == len(r.Count) {
		r.Count = append(r.Count, 0)
		r.Each = append(r.Each, total)
	}
	r.Count[releases]++
	r.Count[releases-1]--
}

func (r *recorder) medianAndMax(clients int) (median, most float64) {
	seen, low, high := 0, -1, -1
	for c, n := range r.Count {
		seen += n
		if low < 0 && seen > (clients-1)/2 {
			low = c
		}
		if high < 0 && seen > clients/2 {
			high = c
		}
	}
	median = r.Each[low]
	if high != low {
		median = (r.Each[low] + r.Each[high]) / 2
	}
	return median, r.Each[len(r.Each)-1]
}

func (r *recorder) keepReleases(round int, releases fl.Releases, outcome fl.Outcome) {
	n := min(len(outcome.Assigned), windowReleases)
	if round%windowRounds == 1 && len(r.Late) >= windowRounds*windowReleases {
		r.Late = append(r.Late[:0], r.Late[len(r.Late)-(windowRounds-1)*windowReleases:]...)
	}
	for i := range n {
		one := Release{Round: round, Cluster: outcome.Assigned[i], At: releases.Head(i, r.N)}
		if round <= windowRounds {
			r.Early = append(r.Early, one)
		}
		r.Late = append(r.Late, one)
	}
}

func firstTwo(v []float64) [2]float64 {
	if len(v) == 1 {
		return [2]float64{v[0], 0}
	}
	return [2]float64{v[0], v[1]}
}

// thin drops every second record.
func (r *recorder) thin() {
	r.Stride *= 2
	r.Rounds, r.Loss = everySecond(r.Rounds, 1), everySecond(r.Loss, 1)
	r.Med, r.Max = everySecond(r.Med, 1), everySecond(r.Max, 1)
	r.Error, r.Lambda, r.Shared = everySecond(r.Error, 1), everySecond(r.Lambda, 1), everySecond(r.Shared, 1)
	r.Declined, r.Relocated = everySecond(r.Declined, 1), everySecond(r.Relocated, 1)
	r.Steps = everySecond(r.Steps, 1)
	r.Leakage, r.Sizes = everySecond(r.Leakage, r.K), everySecond(r.Sizes, r.K)
	r.Hypotheses = everySecond(r.Hypotheses, 2*r.K)
}

func everySecond[T any](v []T, width int) []T {
	out := v[:0]
	for i := 0; i < len(v); i += 2 * width {
		out = append(out, v[i:i+width]...)
	}
	return out
}

func (r *recorder) history(s *Simulation) History {
	h := History{Stride: r.Stride, Early: r.Early, Start: vectors(shown(r.Start, len(r.Start)/r.K))}
	for i := range r.Rounds {
		h.Rounds = append(h.Rounds, r.record(s, i))
	}
	if len(r.Late) > 0 {
		last := r.Late[len(r.Late)-1].Round
		for _, one := range r.Late {
			if one.Round > last-windowRounds {
				h.Late = append(h.Late, one)
			}
		}
	}
	return h
}

// record is the i-th that is kept.
func (r *recorder) record(s *Simulation, i int) RoundRecord {
	classes, lambda := s.classes() > 0 && s.run.Judge.By != "clients", s.lambdaSet()
	rec := RoundRecord{
		Round: r.Rounds[i], Loss: event.Number(r.Loss[i]),
		Sizes:    slices.Clone(r.Sizes[i*r.K : (i+1)*r.K]),
		Declined: r.Declined[i], Relocated: r.Relocated[i],
		Error: numberIf(classes && !math.IsNaN(r.Error[i]), r.Error[i]), Lambda: numberIf(lambda, r.Lambda[i]), Shared: numberIf(lambda, r.Shared[i]),
		Median: numberIf(s.spent != nil, r.Med[i]), Max: numberIf(s.spent != nil, r.Max[i]),
	}
	if i < len(r.Steps) {
		rec.Steps = r.Steps[i]
	}
	for j := i * r.K; j < (i+1)*r.K; j++ {
		if s.spent != nil {
			rec.MaxLeakage = append(rec.MaxLeakage, event.Number(r.Leakage[j]))
		}
		rec.Hypotheses = append(rec.Hypotheses, [2]float64{r.Hypotheses[2*j], r.Hypotheses[2*j+1]})
	}
	return rec
}

// numberIf is a figure that only some runs have.
func numberIf(has bool, v float64) *event.Number {
	if !has {
		return nil
	}
	n := event.Number(v)
	return &n
}
