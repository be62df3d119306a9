package fairness

import (
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/data"
)

// TestHalvesDoNotMeet: no picture that a writer chooses by is one it is judged on.
func TestHalvesDoNotMeet(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 19, 20, 119, 120, 121, 240, 241, 4885} {
		c := &data.Client{}
		c.Images = &data.Images{}
		for i := range n {
			c.Index = append(c.Index, 10*i)
		}
		choose, judge := halves(c)
		if len(choose.Index) != len(judge.Index) || len(judge.Index) > mostJudged || n > 1 && len(judge.Index) == 0 {
			t.Errorf("%d pictures: %d to choose by, %d to judge on", n, len(choose.Index), len(judge.Index))
		}
		all := slices.Concat(choose.Index, judge.Index)
		slices.Sort(all)
		if len(slices.Compact(all)) != 2*len(judge.Index) {
			t.Errorf("%d pictures: some are used twice", n)
		}
		if n > 4*mostJudged && judge.Index[len(judge.Index)-1] < 10*n/2 {
			t.Errorf("%d pictures: only the first are judged on, up to %d", n, judge.Index[len(judge.Index)-1])
		}
	}
}

func TestParityLabel(t *testing.T) {
	for class, want := range []int{1, 0, 1, 0} {
		if upright, rotated := parityLabel(0, class), parityLabel(1, class); upright != want || rotated != 1-want {
			t.Errorf("class %d: %d upright and %d rotated, want %d and %d", class, upright, rotated, want, 1-want)
		}
	}
}
