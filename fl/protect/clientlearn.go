package protect

import (
	"cmp"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// serverMemory is what the server keeps of earlier releases under client-level privacy, in
// State.Memory. All of it was released, noise included: what follows from it is free.
type serverMemory struct {
	head     []float64 // keptCount, keptClip, keptStep
	centre   []float64 // last or running mean of updates; nil: nobody asks for it
	mean     []float64 // the last one; nil unless the rule is online
	second   []float64 // what the clip was learned from last; likewise
	velocity []float64 // of the common model; nil: it has no momentum
}

const (
	keptCount = iota // of releases
	keptClip
	keptStep // that the mean of updates is multiplied by
	keptHead
)

// memory is the state's, part by part; empty where the run asks for none of it.
func (m *client) memory(st *fl.State) serverMemory {
	kept := serverMemory{head: []float64{0, m.privacy.UpdateClip, 1}}
	rest := st.Memory
	if len(rest) == 0 {
		return kept
	}
	take := func(n int, wanted bool) (part []float64) {
		if wanted {
			part, rest = rest[:n:n], rest[n:]
		}
		return part
	}
	kept.head = take(keptHead, true)
	kept.centre = take(m.n, m.keepsCentre())
	kept.mean, kept.second = take(m.n, m.learnsDirections()), take(m.n, m.learnsDirections())
	kept.velocity = take(m.n, m.cfg.ServerMomentum > 0)
	return kept
}

func (m *client) learnsDirections() bool { return m.rule.Signal == mech.SignalDirections }

func (m *client) keepsCentre() bool { return m.privacy.Sector.Angle > 0 || m.privacy.Recentre != "" }

// Begin makes room for what the run asks for. Methods that keep something themselves need
// single releases, which this protection refuses.
func (m *client) Begin(st *fl.State) {
	n := 0
	if m.keepsCentre() {
		n += m.n
	}
	if m.learnsDirections() {
		n += 2 * m.n
	}
	if m.cfg.ServerMomentum > 0 {
		n += m.n
	}
	if n > 0 || m.rule.Signal != mech.SignalNone || m.rule.Decay != 0 {
		st.Memory = append([]float64{0, m.privacy.UpdateClip, 1}, make([]float64, n)...)
	}
}

func (k *serverMemory) clip() float64 { return k.head[keptClip] }

// axis is the sector's; nil: there is no sector, or nothing was released yet.
func (k *serverMemory) axis(s config.Sector) []float64 {
	if s.Angle == 0 || k.head[keptCount] == 0 {
		return nil
	}
	return k.centre
}

// around is the point that updates are clipped around; nil: 0.
func (k *serverMemory) around(recentre string) []float64 {
	if recentre == "" || k.head[keptCount] == 0 {
		return nil
	}
	return k.centre
}

// move is the step of the common model that a mean of updates leads to.
func (k *serverMemory) move(mean []float64, momentum float64) []float64 {
	out := make([]float64, len(mean))
	for i, v := range mean {
		if k.velocity != nil {
			k.velocity[i] = momentum*k.velocity[i] + v
			v = k.velocity[i]
		}
		out[i] = k.head[keptStep] * v
	}
	return out
}

// ServerClip is what releases have led to: public, like these.
func (m *client) ServerClip(st *fl.State) (made int, clip, step float64) {
	k := m.memory(st)
	return int(k.head[keptCount]), k.clip(), k.head[keptStep]
}

// learn notes a release, and moves clip and step by it.
func (m *client) learn(round int, k *serverMemory, mean, second []float64) {
	state := mech.ClipState{Steps: int64(k.head[keptCount]), Clip: k.clip(), Pace: k.head[keptStep]}
	count, clip, step := 0.0, 0.0, 0.0
	switch {
	case m.rule.Signal == mech.SignalCount:
		count = second[0]
	case m.learnsDirections() && state.Steps > 0: // before, there was nothing to compare with
		clip, step = m.signs(round, k, mean)
	}
	m.rule.Learn(&state, m.Participants, count, clip, step)
	k.head[keptCount], k.head[keptClip], k.head[keptStep] = float64(state.Steps), state.Clip, state.Pace
	copy(k.mean, mean)
	copy(k.second, second)
	if m.privacy.Recentre != "mean" && m.privacy.Sector.Axis != "mean" {
		copy(k.centre, mean)
		return
	}
	for i := range k.centre {
		k.centre[i] += (mean[i] - k.centre[i]) / k.head[keptCount]
	}
}

// signs are where algorithm 3 of paper 001 moves clip and step: up where this round's mean
// of updates agrees with what a larger one would have added in the last round. Coins take
// their place where the rule says so.
func (m *client) signs(round int, k *serverMemory, mean []float64) (clip, step float64) {
	if m.rule.Random {
		coins := m.coins.Stream(round, 0).Uint64()
		return 2*float64(coins&1) - 1, 2*float64(coins>>1&1) - 1
	}
	return float64(cmp.Compare(kernel.Dot(mean, k.second), 0)), float64(cmp.Compare(kernel.Dot(mean, k.mean), 0))
}
