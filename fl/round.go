package fl

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/internal/rng"
)

// Round is one round at the server: opened for some clients, answered by them in
// any order, closed once. What it gives to aggregation is in client order, so
// the result does not depend on who answered first. All releases are kept until it is
// closed, or, if it was opened for a sum, those that wait for an earlier client.
type Round struct {
	Number  int
	clients []int
	answers []answer
	vectors []float64
	length  int
	open    bool
	adding  *adding // nil: all releases are kept

	decliners []int
}

type answer uint8

const (
	waiting answer = iota
	released
	declined
)

// Open starts a round for clients, which must be in ascending order.
func (r *Round) Open(number int, clients []int, length int) error {
	if err := r.begin(number, clients, length); err != nil {
		return err
	}
	r.adding = nil
	r.vectors = slices.Grow(r.vectors[:0], len(clients)*length)[:len(clients)*length]
	return nil
}

func (r *Round) begin(number int, clients []int, length int) error {
	for i := 1; i < len(clients); i++ {
		if clients[i] <= clients[i-1] {
			return fmt.Errorf("round %d: clients %d and %d are not in ascending order", number, clients[i-1], clients[i])
		}
	}
	r.Number, r.length, r.open = number, length, true
	r.clients = append(r.clients[:0], clients...)
	r.answers = slices.Grow(r.answers[:0], len(clients))[:len(clients)]
	clear(r.answers)
	return nil
}

// Summed says that the round was opened for a sum.
func (r *Round) Summed() bool { return r.adding != nil }

// Clients are those that the round waits for.
func (r *Round) Clients() []int { return r.clients }

// Slot is where the i-th client's release is to be written. Different slots may
// be written at the same time. A round that was opened for a sum has no place for
// everybody: there Next says whose turn it is.
func (r *Round) Slot(i int) []float64 { return r.vectors[i*r.length : (i+1)*r.length : (i+1)*r.length] }

// Released says that slot i holds the client's release.
func (r *Round) Released(i int) error { return r.settle(i, released) }

// Declined says that client i keeps its data to itself this time.
func (r *Round) Declined(i int) error { return r.settle(i, declined) }

// Answered says whether client i has released or declined.
func (r *Round) Answered(i int) bool { return r.answers[i] != waiting }

// Count is how many clients have answered.
func (r *Round) Count() (answered int) {
	for _, a := range r.answers {
		if a != waiting {
			answered++
		}
	}
	return answered
}

// IsOpen says whether the round waits for answers.
func (r *Round) IsOpen() bool { return r.open }

// Answers are what an open round has so far, so that it can be gone on with elsewhere.
type Answers struct {
	Number   int
	Clients  []int       // all that the round waits for
	Released []bool      // by client
	Declined []bool      // by client
	Vectors  [][]float64 // the releases, in client order, but for those in Sum
	// Sum is of the first Added clients, if the round was opened for a sum and has any.
	Added int
	Sum   *Sum
}

// Answers are valid until the round's next answer.
func (r *Round) Answers() Answers {
	a := Answers{Number: r.Number, Clients: r.clients}
	if r.adding != nil && r.adding.next > 0 {
		a.Added, a.Sum = r.adding.next, r.adding.sum
	}
	for i, said := range r.answers {
		a.Released, a.Declined = append(a.Released, said == released), append(a.Declined, said == declined)
		switch {
		case said != released || i < a.Added:
		case r.adding != nil:
			a.Vectors = append(a.Vectors, r.Slot(r.adding.place[i]))
		default:
			a.Vectors = append(a.Vectors, r.Slot(i))
		}
	}
	return a
}

// Reopen goes on with a round that has some answers, and keeps all releases.
func (r *Round) Reopen(a Answers, length int) error {
	if a.Added != 0 {
		return fmt.Errorf("round %d: %d answers were summed up already", a.Number, a.Added)
	}
	err := r.Open(a.Number, a.Clients, length)
	r.open = false
	if err == nil {
		err = r.answer(a, length, func(i int, release []float64) { copy(r.Slot(i), release) })
	}
	r.open = err == nil
	return err
}

// answer takes over the answers of a's clients, and keeps the releases that are not in
// its sum.
func (r *Round) answer(a Answers, length int, keep func(i int, release []float64)) error {
	if len(a.Released) != len(a.Clients) || len(a.Declined) != len(a.Clients) {
		return fmt.Errorf("round %d: %d and %d answers of %d clients", a.Number, len(a.Released), len(a.Declined), len(a.Clients))
	}
	left := a.Vectors
	for i := range r.answers {
		switch {
		case a.Released[i] && a.Declined[i]:
			return fmt.Errorf("round %d: client %d has released and declined", a.Number, a.Clients[i])
		case a.Declined[i]:
			r.answers[i] = declined
		case a.Released[i] && i < a.Added:
			r.answers[i] = released
		case a.Released[i] && (len(left) == 0 || len(left[0]) != length):
			return fmt.Errorf("round %d: the release of client %d does not have %d values", a.Number, a.Clients[i], length)
		case a.Released[i]:
			r.answers[i] = released
			keep(i, left[0])
			left = left[1:]
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("round %d: %d releases are of nobody", a.Number, len(left))
	}
	return nil
}

func (r *Round) settle(i int, a answer) error {
	switch {
	case !r.open:
		return fmt.Errorf("round %d is closed: the answer of client %d comes too late", r.Number, r.clients[i])
	case r.answers[i] != waiting:
		return fmt.Errorf("round %d: client %d answered already", r.Number, r.clients[i])
	}
	r.answers[i] = a
	if r.adding != nil {
		r.adding.settled(r, i)
	}
	return nil
}

// Releases are what a closed round has for aggregation, in client order.
type Releases struct {
	Clients  []int
	Vectors  []float64 // one after another
	Declined int
	// Sum is of all releases, and stands in the place of Vectors; nil: they were kept.
	Sum *Sum
}

// Head is the first two values of the i-th release, 0 for one that it does not have; n are
// those of its model.
func (r Releases) Head(i, n int) (head [2]float64) {
	if r.Sum != nil {
		return r.Sum.Heads[i]
	}
	length := len(r.Vectors) / len(r.Clients)
	copy(head[:], r.Vectors[i*length:i*length+n])
	return head
}

// Decliners are the clients that declined in a closed round. It is valid until the next.
func (r *Round) Decliners() []int { return r.decliners }

// Close ends the round. Releases that were kept move together in place, over the slots
// of clients that declined.
func (r *Round) Close() (Releases, error) {
	if !r.open {
		return Releases{}, fmt.Errorf("round %d is closed already", r.Number)
	}
	r.open = false
	r.decliners = r.decliners[:0]
	kept := 0
	for i, a := range r.answers {
		switch a {
		case declined:
			r.decliners = append(r.decliners, r.clients[i])
		case waiting:
			return Releases{}, fmt.Errorf("round %d: client %d has not answered", r.Number, r.clients[i])
		case released:
			if kept != i {
				if r.adding == nil {
					copy(r.Slot(kept), r.Slot(i))
				}
				r.clients[kept] = r.clients[i]
			}
			kept++
		}
	}
	if r.adding != nil {
		return Releases{Clients: r.clients[:kept], Sum: r.adding.sum, Declined: len(r.answers) - kept}, nil
	}
	return Releases{
		Clients: r.clients[:kept], Vectors: r.vectors[:kept*r.length], Declined: len(r.answers) - kept,
	}, nil
}

// Sampler draws the clients of a round, in ascending order.
type Sampler struct {
	family   rng.Family
	clients  int
	take     int
	balanced bool
	stream   rng.Stream
	order    []int // all clients; nil: they are too many
	picked   []int
	swaps    []int
	marked   []bool
	moved    map[int]int // by place, in the order's stead
	permuted permutation // of the epoch, in the shuffle's stead
	epoch    int
	State    SamplerState
}

// SamplerState is what balanced sampling must remember between rounds.
type SamplerState struct {
	Epoch int   // shuffles made so far
	Left  []int // clients of the last shuffle that were not yet asked
	At    int   // of very many clients: the next place of the shuffle, behind those left
}

// NewSampler takes so many of the clients in every round. Samplers of different
// purposes are independent.
func NewSampler(seed uint64, purpose string, clients, take int, balanced bool) *Sampler {
	s := &Sampler{family: rng.NewFamily(seed, purpose), clients: clients, take: take, balanced: balanced, picked: make([]int, 0, take)}
	if clients > manyClients && take < clients {
		s.moved = make(map[int]int, take)
		return s
	}
	s.order, s.swaps, s.marked = make([]int, clients), make([]int, take), make([]bool, clients)
	for i := range s.order {
		s.order[i] = i
	}
	return s
}

// Sample draws the clients of a round. The result is valid until the next call.
func (s *Sampler) Sample(round int) []int {
	switch {
	case s.take == s.clients:
		return s.order // everybody, every time
	case s.balanced && s.order == nil:
		s.drawPermuted()
	case s.order == nil:
		s.drawSparse(round)
	case s.balanced:
		s.drawBalanced()
	default:
		s.drawUniform(round)
	}
	s.sort()
	return s.picked
}

// sort puts the picked clients in order: by marking them when they are many, for
// a round must not be slower than its training.
func (s *Sampler) sort() {
	if s.order == nil || len(s.picked)*16 < s.clients {
		slices.Sort(s.picked)
		return
	}
	for _, c := range s.picked {
		s.marked[c] = true
	}
	s.picked = s.picked[:0]
	for c, m := range s.marked {
		if m {
			s.picked = append(s.picked, c)
			s.marked[c] = false
		}
	}
}

// drawUniform is the front of a Fisher-Yates shuffle, undone afterwards so that
// a round's draw depends on the round alone.
func (s *Sampler) drawUniform(round int) {
	s.stream.Key(&s.family, round, 0)
	for i := range s.take {
		j := i + s.stream.Below(s.clients-i)
		s.order[i], s.order[j] = s.order[j], s.order[i]
		s.swaps[i] = j
	}
	s.picked = append(s.picked[:0], s.order[:s.take]...)
	for i := s.take - 1; i >= 0; i-- {
		j := s.swaps[i]
		s.order[i], s.order[j] = s.order[j], s.order[i]
	}
}

// drawBalanced takes the next clients of a shuffle of all; when it ends within a
// round, the next shuffle fills up with clients that are not yet in the round.
func (s *Sampler) drawBalanced() {
	take := min(s.take, len(s.State.Left))
	s.picked = append(s.picked[:0], s.State.Left[:take]...)
	s.State.Left = s.State.Left[take:]
	if len(s.picked) == s.take {
		return
	}
	s.stream.Key(&s.family, s.State.Epoch, 1)
	s.State.Epoch++
	fresh := slices.Clone(s.order)
	s.stream.Shuffle(fresh)
	early := s.picked[:take:take]
	s.State.Left = fresh[:0]
	for _, c := range fresh {
		if len(s.picked) < s.take && !slices.Contains(early, c) {
			s.picked = append(s.picked, c)
		} else {
			s.State.Left = append(s.State.Left, c)
		}
	}
}
