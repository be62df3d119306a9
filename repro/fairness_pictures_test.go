package repro

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

func TestOneNoiseOfTheHandwritingStudy(t *testing.T) {
	var paper handwritingFigures
	if err := expected("handwriting.json", &paper); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scale string
		set   []string
		want  []float64
		all   int
		left  int
	}{
		{Full, nil, []float64{0, 0.001, 0.01, 0.1, 1, 3, 5, 10, 15}, 9, 0},
		{Quick, nil, []float64{0, 10}, 9, 0},
		{Quick, []string{"seed=3", "privacy.noise_multiplier=3"}, []float64{0, 3}, 2, 1},
		{Quick, []string{"privacy.noise_multiplier=0"}, []float64{0}, 1, 0},
	} {
		l := &lab{options: Options{Scale: c.scale, Set: c.set}}
		got, all, err := l.handwritingNoise(paper)
		if err != nil || !slices.Equal(got, c.want) || len(all) != c.all || len(l.options.Set) != c.left {
			t.Errorf("%+v: %v, %v left, %v", c, got, l.options.Set, err)
		}
	}
	l := &lab{options: Options{Scale: Quick, Set: []string{"privacy.noise_multiplier=much"}}}
	if _, _, err := l.handwritingNoise(paper); err == nil {
		t.Error("a noise that is no number was accepted")
	}
}
