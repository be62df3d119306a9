package fl

import (
	"slices"
	"testing"
)

func TestRoundDoesNotDependOnArrival(t *testing.T) {
	clients := []int{2, 5, 9, 11}
	var want Releases
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		var r Round
		if err := r.Open(4, clients, 2); err != nil {
			t.Fatal(err)
		}
		for _, i := range order {
			copy(r.Slot(i), []float64{float64(clients[i]), 1})
			settle := r.Released
			if i == 1 {
				settle = r.Declined
			}
			if err := settle(i); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if want.Clients == nil {
			want = got
		}
		if !slices.Equal(got.Clients, []int{2, 9, 11}) || !slices.Equal(got.Vectors, []float64{2, 1, 9, 1, 11, 1}) || got.Declined != 1 {
			t.Errorf("arrival %v gives %+v", order, got)
		}
	}
}

func TestRoundRefusesWhatIsOutOfOrder(t *testing.T) {
	var r Round
	if err := r.Open(1, []int{3, 3}, 1); err == nil {
		t.Error("the same client twice was accepted")
	}
	if err := r.Open(1, []int{1, 2}, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Close(); err == nil {
		t.Error("a round closed without its answers")
	}
	if err := r.Open(2, []int{1}, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Released(0); err != nil {
		t.Fatal(err)
	}
	if err := r.Released(0); err == nil {
		t.Error("a second answer was accepted")
	}
	if _, err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Declined(0); err == nil {
		t.Error("an answer after the end was accepted")
	}
	if _, err := r.Close(); err == nil {
		t.Error("a round closed twice")
	}
}

// TestReopenedRoundsEndTheSame: a round that is gone on with elsewhere, after any number
// of answers, gives what it would have given.
func TestReopenedRoundsEndTheSame(t *testing.T) {
	clients := []int{2, 5, 9, 11}
	answer := func(r *Round, i int) {
		t.Helper()
		copy(r.Slot(i), []float64{float64(clients[i]), 1})
		settle := r.Released
		if i == 1 {
			settle = r.Declined
		}
		if err := settle(i); err != nil {
			t.Fatal(err)
		}
	}
	order := []int{3, 1, 0, 2}
	for after := range len(order) + 1 {
		var first, second Round
		if err := first.Open(4, clients, 2); err != nil {
			t.Fatal(err)
		}
		for _, i := range order[:after] {
			answer(&first, i)
		}
		if err := second.Reopen(first.Answers(), 2); err != nil || !second.IsOpen() || second.Number != 4 {
			t.Fatal(second.Number, second.IsOpen(), err)
		}
		for _, i := range order[after:] {
			if second.Answered(i) {
				t.Errorf("after %d answers: client %d has not answered", after, i)
			}
			answer(&second, i)
		}
		got, err := second.Close()
		if err != nil || second.IsOpen() {
			t.Fatal(err)
		}
		if !slices.Equal(got.Clients, []int{2, 9, 11}) || !slices.Equal(got.Vectors, []float64{2, 1, 9, 1, 11, 1}) || !slices.Equal(second.Decliners(), []int{5}) {
			t.Errorf("after %d answers: %+v, declined by %v", after, got, second.Decliners())
		}
	}
}

func TestRoundsAreNotReopenedWithWhatDoesNotFit(t *testing.T) {
	good := func() Answers {
		return Answers{Number: 1, Clients: []int{1, 2}, Released: []bool{true, false}, Declined: []bool{false, true}, Vectors: [][]float64{{1, 2}}}
	}
	var r Round
	if err := r.Reopen(good(), 2); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Answers){
		"order":            func(a *Answers) { a.Clients = []int{2, 1} },
		"too few releases": func(a *Answers) { a.Vectors = nil },
		"a release more":   func(a *Answers) { a.Vectors = append(a.Vectors, []float64{1, 2}) },
		"a short release":  func(a *Answers) { a.Vectors[0] = a.Vectors[0][:1] },
		"a long release":   func(a *Answers) { a.Vectors[0] = []float64{1, 2, 3} },
		"both":             func(a *Answers) { a.Declined[0] = true },
		"answers missing":  func(a *Answers) { a.Released = a.Released[:1] },
		"declines missing": func(a *Answers) { a.Declined = nil },
	} {
		a := good()
		spoil(&a)
		if err := r.Reopen(a, 2); err == nil || r.IsOpen() {
			t.Errorf("%s: %v, open %v", name, err, r.IsOpen())
		}
	}
}
