package groupprivacy

import (
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/repro/lab"
)

func TestOneNoiseOfTheHandwritingStudy(t *testing.T) {
	var paper handwritingFigures
	if err := lab.Expected("handwriting.json", &paper); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scale string
		set   []string
		want  []float64
		all   int
		left  int
	}{
		{lab.Full, nil, []float64{0, 0.001, 0.01, 0.1, 1, 3, 5, 10, 15}, 9, 0},
		{lab.Quick, nil, []float64{0, 10}, 9, 0},
		{lab.Quick, []string{"seed=3", "privacy.noise_multiplier=3"}, []float64{0, 3}, 2, 1},
		{lab.Quick, []string{"privacy.noise_multiplier=0"}, []float64{0}, 1, 0},
	} {
		l := &lab.Lab{Options: lab.Options{Scale: c.scale, Set: c.set}}
		got, all, err := handwritingNoise(l, paper)
		if err != nil || !slices.Equal(got, c.want) || len(all) != c.all || len(l.Set) != c.left {
			t.Errorf("%+v: %v, %v left, %v", c, got, l.Set, err)
		}
	}
	l := &lab.Lab{Options: lab.Options{Scale: lab.Quick, Set: []string{"privacy.noise_multiplier=much"}}}
	if _, _, err := handwritingNoise(l, paper); err == nil {
		t.Error("a noise that is no number was accepted")
	}
}
