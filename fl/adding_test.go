package fl

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

// newTestSum is a sum of models of two parameters.
func newTestSum(declares bool) *Sum {
	s := &Sum{Values: make([]float64, 2), n: 2, declares: declares}
	if declares {
		s.Values = make([]float64, 2+DeclarationLength)
	}
	return s
}

// uneven are releases whose sum is another one in any other order.
var uneven = [][]float64{{0.1, 1e16}, {1e16, 0.3}, {0.2, 7}, {-1e16, -1e16}, {3, 0.7}, {0.7, 1e-3}}

// decliner is the client that declines in these tests.
const decliner = 2

func inClientOrder(clients []int) *Sum {
	s := newTestSum(false)
	for i, c := range clients {
		if i != decliner {
			s.Add(c, uneven[i])
		}
	}
	return s
}

func sameSum(a, b *Sum) bool {
	return slices.Equal(a.Clients, b.Clients) && slices.Equal(a.Assigned, b.Assigned) && slices.Equal(a.Heads, b.Heads) &&
		a.Weight == b.Weight && slices.Equal(a.Values, b.Values)
}

func answerSummed(t *testing.T, r *Round, i int, slot []float64) {
	t.Helper()
	copy(slot, uneven[i])
	settle := r.Released
	if i == decliner {
		settle = r.Declined
	}
	if err := settle(i); err != nil {
		t.Error(err)
	}
}

// TestSummedRoundsAddInClientOrder: whoever answers first, and wherever the round is gone
// on with elsewhere, with fewer places even.
func TestSummedRoundsAddInClientOrder(t *testing.T) {
	clients := []int{2, 5, 9, 11, 12, 20}
	want := inClientOrder(clients)
	if backwards := newTestSum(false); true {
		for i := len(uneven) - 1; i >= 0; i-- {
			backwards.Add(i, uneven[i])
		}
		if slices.Equal(backwards.Values, want.Values) {
			t.Fatal("the order of these releases does not matter: they show nothing")
		}
	}
	family := rng.NewFamily(7, "orders")
	for try := range 300 {
		s := family.Stream(0, try)
		order := []int{0, 1, 2, 3, 4, 5}
		s.Shuffle(order)
		after := s.Below(len(order) + 1)
		var first, second Round
		if err := first.OpenSum(4, clients, newTestSum(false), len(clients)); err != nil {
			t.Fatal(err)
		}
		slots := make([][]float64, len(clients))
		for i := range slots {
			got, slot, turn := first.Next()
			if turn != TurnReady || got != i {
				t.Fatalf("it is the turn of %d (%v), want %d", got, turn, i)
			}
			slots[i] = slot
		}
		if _, _, turn := first.Next(); turn != TurnNone {
			t.Fatal("somebody has two turns")
		}
		for k, i := range order {
			if k < after {
				answerSummed(t, &first, i, slots[i])
			} else {
				first.Halt(i)
			}
		}
		if err := second.ReopenSum(first.Answers(), newTestSum(false), 1); err != nil {
			t.Fatal(err)
		}
		for {
			i, slot, turn := second.Next()
			if turn != TurnReady {
				break
			}
			answerSummed(t, &second, i, slot)
		}
		got, err := second.Close()
		if err != nil || !sameSum(got.Sum, want) || !slices.Equal(got.Clients, want.Clients) || got.Declined != 1 || !slices.Equal(second.Decliners(), []int{9}) {
			t.Fatalf("answers in the order %v, gone on with after %d: %+v, %v, want %+v", order, after, got, err, want)
		}
		if got.Head(2, 2) != [2]float64{-1e16, -1e16} {
			t.Fatalf("the third release begins with %v", got.Head(2, 2))
		}
	}
}

// TestFewPlacesAreEnough: as many at work as there are places, one to three; all come to their turn, and the
// next round begins with nothing.
func TestFewPlacesAreEnough(t *testing.T) {
	clients := []int{2, 5, 9, 11, 12, 20}
	want, sum := inClientOrder(clients), newTestSum(false)
	var r Round
	for round := range 200 {
		if err := r.OpenSum(round, clients, sum, 1+round%3); err != nil {
			t.Fatal(err)
		}
		slots := map[int][]float64{} // of those who have begun
		for {
			i, slot, turn := r.Next()
			if turn == TurnReady {
				slots[i] = slot
				continue
			}
			if turn == TurnNone && len(slots) == 0 {
				break
			}
			for i, slot := range slots { // in any order
				answerSummed(t, &r, i, slot)
				delete(slots, i)
				break
			}
		}
		got, err := r.Close()
		if err != nil || !sameSum(got.Sum, want) {
			t.Fatalf("round %d: %+v, %v, want %+v", round, got.Sum, err, want)
		}
	}
}

// TestWhoGivesNoAnswerHaltsTheRound: whoever waits for a place is sent away, for there may
// never be one; afterwards it goes on from there.
func TestWhoGivesNoAnswerHaltsTheRound(t *testing.T) {
	clients := []int{2, 5, 9, 11, 12, 20}
	var r Round
	if err := r.OpenSum(1, clients, newTestSum(false), 2); err != nil {
		t.Fatal(err)
	}
	r.Next()
	second, slot, _ := r.Next()
	answerSummed(t, &r, second, slot) // and its place is held until the first has answered
	if _, _, turn := r.Next(); turn != TurnLater {
		t.Errorf("without a place the turn is %v", turn)
	}
	r.Halt(0)
	if _, _, turn := r.Next(); turn != TurnNone {
		t.Errorf("in a round that was halted the turn is %v", turn)
	}
	r.Continue()
	for {
		i, slot, turn := r.Next()
		if turn != TurnReady {
			break
		}
		answerSummed(t, &r, i, slot)
	}
	if got, err := r.Close(); err != nil || !sameSum(got.Sum, inClientOrder(clients)) {
		t.Errorf("gone on with: %+v, %v", got.Sum, err)
	}
}

// TestSumsWeighAndLeaveOut: by what releases declare.
func TestSumsWeighAndLeaveOut(t *testing.T) {
	s, release := newTestSum(true), make([]float64, 2+DeclarationLength)
	add := func(client int, value, weight float64) {
		release[0], release[1] = value, -value
		Declaration{Weight: weight, Steps: 1}.write(release[2:])
		s.Add(client, release)
	}
	add(3, 2, 3)
	add(4, 1e9, math.NaN())
	add(5, 4, 1)
	if !slices.Equal(s.Assigned, []int{0, -1, 0}) || !slices.Equal(s.Clients, []int{3, 4, 5}) {
		t.Errorf("clients %v are assigned %v", s.Clients, s.Assigned)
	}
	one := s.asOne(2)
	if d, ok := Declared(one.Vectors[2:], 1, true); !ok || d.Weight != 1 || one.Vectors[0] != 2.5 || one.Vectors[1] != -2.5 || one.Declined != 2 || len(one.Clients) != 1 {
		t.Errorf("one release for all: %+v", one)
	}
	s.Reset()
	if !sameSum(s, newTestSum(true)) {
		t.Errorf("after a reset: %+v", s)
	}
	if none := s.asOne(1); !reflect.DeepEqual(none, Releases{Declined: 1}) {
		t.Errorf("nobody's mean: %+v", none)
	}
}

func TestSumsAreNotReopenedWithWhatDoesNotFit(t *testing.T) {
	good := func() Answers {
		s := newTestSum(false)
		s.Add(1, []float64{1, 2})
		return Answers{
			Number: 1, Clients: []int{1, 2, 3, 4}, Released: []bool{true, false, false, true}, Declined: []bool{false, true, false, false},
			Vectors: [][]float64{{3, 4}}, Added: 2, Sum: s,
		}
	}
	var r Round
	if err := r.ReopenSum(good(), newTestSum(false), 1); err != nil {
		t.Fatal(err)
	}
	if err := new(Round).Reopen(good(), 2); err == nil {
		t.Error("releases that were summed up are taken for kept ones")
	}
	for name, spoil := range map[string]func(*Answers){
		"no sum":                   func(a *Answers) { a.Sum = nil },
		"a sum of nobody":          func(a *Answers) { a.Added = 0 },
		"more than there are":      func(a *Answers) { a.Added = 5 },
		"fewer than none":          func(a *Answers) { a.Added = -1 },
		"one without an answer":    func(a *Answers) { a.Added = 3 },
		"somebody else's":          func(a *Answers) { a.Sum.Clients[0] = 2 },
		"assigned missing":         func(a *Answers) { a.Sum.Assigned = nil },
		"heads missing":            func(a *Answers) { a.Sum.Heads = nil },
		"short values":             func(a *Answers) { a.Sum.Values = a.Sum.Values[:1] },
		"a release is in both":     func(a *Answers) { a.Vectors = append(a.Vectors, []float64{1, 2}) },
		"a release is in none":     func(a *Answers) { a.Vectors = nil },
		"answers missing":          func(a *Answers) { a.Released = a.Released[:1] },
		"clients in another order": func(a *Answers) { a.Clients = []int{2, 1, 3, 4} },
	} {
		a := good()
		spoil(&a)
		if err := r.ReopenSum(a, newTestSum(false), 1); err == nil || r.IsOpen() {
			t.Errorf("%s: %v, open %v", name, err, r.IsOpen())
		}
	}
}
