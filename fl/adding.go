package fl

import (
	"fmt"
	"slices"
)

// adding is how a round adds releases up: the release of the first client that is not in
// the sum yet is added as soon as it is there, and those that came before it after it.
// There is a place for a few releases only. One goroutine at a time may ask for a turn or
// answer; releases can be written at the same time.
type adding struct {
	sum    *Sum
	place  []int // by client: which place holds its release; -1: none
	free   []int // places
	next   int   // the first client whose answer is not in the sum
	begun  int   // the first client that has not begun
	halted bool
}

// OpenSum is Open for a round whose releases are added to sum, which it empties, in
// client order as they come. It has a place for so many of them at a time.
func (r *Round) OpenSum(number int, clients []int, sum *Sum, places int) error {
	if err := r.begin(number, clients, len(sum.Values)); err != nil {
		return err
	}
	if r.adding == nil {
		r.adding = new(adding)
	}
	sum.Reset()
	r.adding.open(sum, len(clients))
	r.furnish(min(places, len(clients)))
	return nil
}

func (a *adding) open(sum *Sum, clients int) {
	a.sum, a.next, a.begun, a.halted = sum, 0, 0, false
	a.place = slices.Grow(a.place[:0], clients)[:clients]
	for i := range a.place {
		a.place[i] = -1
	}
}

// furnish makes room for so many releases at a time, all of it free.
func (r *Round) furnish(places int) {
	places = max(1, places)
	if cap(r.vectors) < places*r.length { // the old ones must not be held beside the new
		r.vectors = make([]float64, places*r.length)
	}
	r.vectors = r.vectors[:places*r.length]
	r.adding.free = r.adding.free[:0]
	for i := range places {
		r.adding.free = append(r.adding.free, i)
	}
}

// ReopenSum is Reopen for a round whose releases are added to sum.
func (r *Round) ReopenSum(a Answers, sum *Sum, places int) error {
	length := len(sum.Values)
	err := r.OpenSum(a.Number, a.Clients, sum, places)
	r.open = false
	if err != nil {
		return err
	}
	if err := a.checkSum(sum); err != nil {
		return err
	}
	// Whoever wrote the answers may have had more places.
	r.furnish(max(min(places, len(a.Clients)), len(a.Vectors)+1))
	err = r.answer(a, length, func(i int, release []float64) { copy(r.adding.take(r, i), release) })
	if err != nil {
		return err
	}
	if a.Added > 0 {
		sum.Clients, sum.Assigned = append(sum.Clients, a.Sum.Clients...), append(sum.Assigned, a.Sum.Assigned...)
		sum.Heads, sum.Weight = append(sum.Heads, a.Sum.Heads...), a.Sum.Weight
		copy(sum.Values, a.Sum.Values)
		r.adding.next = a.Added
	}
	r.adding.advance(r)
	r.open = true
	return nil
}

// checkSum refuses a sum that is not of the first clients' releases.
func (a *Answers) checkSum(sum *Sum) error {
	if a.Added == 0 && a.Sum == nil {
		return nil
	}
	if a.Sum == nil || a.Added < 1 || a.Added > len(a.Clients) || len(a.Released) != len(a.Clients) || len(a.Declined) != len(a.Clients) {
		return fmt.Errorf("round %d: a sum of %d of %d clients", a.Number, a.Added, len(a.Clients))
	}
	var of []int
	for i, c := range a.Clients[:a.Added] {
		if a.Released[i] {
			of = append(of, c)
		} else if !a.Declined[i] {
			return fmt.Errorf("round %d: client %d is in the sum, but has not answered", a.Number, c)
		}
	}
	if !slices.Equal(of, a.Sum.Clients) || len(a.Sum.Assigned) != len(of) || len(a.Sum.Heads) != len(of) || len(a.Sum.Values) != len(sum.Values) {
		return fmt.Errorf("round %d: its sum is not of the %d clients that released", a.Number, len(of))
	}
	return nil
}

// Turn is what Next found.
type Turn int

// A client has its turn; there is no place for its release before somebody has answered;
// everybody has begun, or the round was halted.
const (
	TurnReady Turn = iota
	TurnLater
	TurnNone
)

// Next is the first client of a summed round that has neither answered nor begun, and
// where its release is to be written. Turns are in client order, for a release that is
// added late holds its place until then.
func (r *Round) Next() (i int, slot []float64, turn Turn) {
	a := r.adding
	for a.begun < len(r.answers) && r.answers[a.begun] != waiting {
		a.begun++
	}
	switch {
	case a.halted || a.begun == len(r.answers):
		return 0, nil, TurnNone
	case len(a.free) == 0:
		return 0, nil, TurnLater
	}
	i = a.begun
	a.begun++
	return i, a.take(r, i), TurnReady
}

func (a *adding) take(r *Round, i int) []float64 {
	last := len(a.free) - 1
	a.place[i], a.free = a.free[last], a.free[:last]
	return r.Slot(a.place[i])
}

// settled adds what can be added once the i-th client has answered.
func (a *adding) settled(r *Round, i int) {
	if r.answers[i] == declined {
		a.leave(i)
	}
	a.advance(r)
}

func (a *adding) advance(r *Round) {
	for ; a.next < len(r.answers) && r.answers[a.next] != waiting; a.next++ {
		if r.answers[a.next] == released {
			a.sum.Add(r.clients[a.next], r.Slot(a.place[a.next]))
			a.leave(a.next)
		}
	}
}

// leave frees the i-th client's place.
func (a *adding) leave(i int) {
	if a.place[i] >= 0 {
		a.free, a.place[i] = append(a.free, a.place[i]), -1
	}
}

// Halt says that the i-th client, whose turn it was, gives no answer for now: nobody begins
// any more, for there might never be a place. Go on with Continue.
func (r *Round) Halt(i int) {
	if a := r.adding; a != nil {
		a.leave(i)
		a.halted = true
	}
}

// Continue has clients begin again after Halt, from the first without an answer. None may
// be at work.
func (r *Round) Continue() {
	if r.adding != nil {
		r.adding.halted, r.adding.begun = false, 0
	}
}
