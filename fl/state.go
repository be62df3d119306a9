package fl

import "slices"

// State is what the server keeps between rounds.
type State struct {
	Round      int
	Hypotheses []float64 // one after another
	Idle       []int     // rounds since each hypothesis last had an update
	Memory     []float64 // what else the method keeps, or a protection under methods that keep nothing
}

// Clone is a state that shares nothing with this one.
func (s *State) Clone() *State {
	out := *s
	out.Hypotheses, out.Memory, out.Idle = slices.Clone(s.Hypotheses), slices.Clone(s.Memory), slices.Clone(s.Idle)
	return &out
}

// Broadcast is public: every participant of the round sees it.
type Broadcast struct {
	Round      int
	Hypotheses []float64
	Radius     float64   // public radius of the round; 0 if there is none
	Spread     float64   // largest distance between two hypotheses; 0 if no price needs it
	Memory     []float64 // what else the method sends, in a layout of its own
}

// Outcome is what the server learned from a round's releases.
type Outcome struct {
	Assigned  []int // cluster of every release, -1 if it was left out; valid until the next round
	Relocated int   // hypotheses that were moved for want of updates
	// Err is why the round's releases could not be used; the models are as before.
	Err error
}
