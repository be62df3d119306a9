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
