package boundeddp

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// hands are writers of pictures of ten classes, in no order.
func hands(writers, each int) []data.Client {
	im := &data.Images{Height: 1, Width: 1, Pixels: make([]byte, writers*each), Labels: make([]int, writers*each)}
	out := make([]data.Client, writers)
	for i := range im.Labels {
		im.Labels[i] = i * 7 % 10
		w := i % writers
		out[w].Images, out[w].Index = im, append(out[w].Index, i)
	}
	return out
}

// TestPartitions: equally many pictures each, none twice, and few hands or few classes
// where that is asked.
func TestPartitions(t *testing.T) {
	const writers, each, clients = 30, 40, 20
	of := hands(writers, each)
	kinds := func(c data.Client, kind func(i int) int) int {
		seen := map[int]bool{}
		for _, i := range c.Index {
			seen[kind(i)] = true
		}
		return len(seen)
	}
	hand, class := func(i int) int { return i % writers }, func(i int) int { return of[0].Images.Labels[i] }
	for how, most := range map[partition][2]int{byChance: {writers, 10}, byWriter: {3, 10}, byLabel: {writers, 4}} {
		dealt, err := deal(of, how, clients, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		var all []int
		for _, c := range dealt {
			if c.Len() != writers*each/clients {
				t.Errorf("%s: a client has %d pictures", how, c.Len())
			}
			if got := [2]int{kinds(c, hand), kinds(c, class)}; got[0] > most[0] || got[1] > most[1] {
				t.Errorf("%s: a client has %d hands and %d classes; at most %v", how, got[0], got[1], most)
			}
			all = append(all, c.Index...)
		}
		slices.Sort(all)
		if len(slices.Compact(all)) != writers*each {
			t.Errorf("%s: pictures are lost or there twice", how)
		}
		again, _ := deal(of, how, clients, 0, 2)
		if slices.Equal(again[0].Index, dealt[0].Index) {
			t.Errorf("%s: another seed deals the same", how)
		}
	}
	if _, err := deal(of, byChance, 20, 61, 1); err == nil || !strings.Contains(err.Error(), "enough for 60 each") {
		t.Errorf("more pictures than there are: %v", err)
	}
}

// TestFigureOfALargeNetwork: rounds of large updates add them up as they come unless somebody
// wants to look at each, as figure 5.4 does.
func TestFigureOfALargeNetwork(t *testing.T) {
	run, err := base(large)
	if err != nil {
		t.Fatal(err)
	}
	lab.Unprotected(&run)
	run.Algorithm.Rounds, run.Algorithm.Local.Steps = 2, 1
	im := &data.Images{Height: 28, Width: 28, Pixels: make([]byte, 8*784), Labels: []int{0, 1, 2, 3, 4, 5, 6, 7}}
	for i := range im.Pixels {
		im.Pixels[i] = byte(i * i)
	}
	var pool data.Client
	pool.Images, pool.Index = im, []int{0, 1, 2, 3, 4, 5, 6, 7}
	clients := []data.Client{pool, pool}
	clients[0].Index, clients[1].Index = pool.Index[:4], pool.Index[4:]
	got, err := figure54(&lab.Lab{Context: t.Context()}, run, pictures{pool: pool, test: pool}, clients)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Updates) != 2 || len(got.Angle) != 2 || len(got.Before) != 1 || got.Angle[0] <= 0 {
		t.Errorf("%+v", got)
	}
}

// TestCosines holds the sums over all pairs against the pairs.
func TestCosines(t *testing.T) {
	const n, k = 7, 6
	family := rng.NewFamily(3, "vectors")
	s := family.Stream(0, 0)
	vectors := make([]float64, n*k)
	for i := range vectors {
		vectors[i] = s.Normal() + 0.5
	}
	cosine := func(a, b []float64) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
		}
		return ab / math.Sqrt(aa*bb)
	}
	var sum, pairs float64
	for i := range k {
		for j := range i {
			sum += cosine(vectors[i*n:(i+1)*n], vectors[j*n:(j+1)*n])
			pairs++
		}
	}
	direction := vectors[:n]
	for i, got := range cosinesTo(vectors, direction) {
		if want := cosine(vectors[i*n:(i+1)*n], direction); math.Abs(got-want) > 1e-12 {
			t.Errorf("cosine %d is %v, not %v", i, got, want)
		}
	}
	if got, want := meanCosine(slices.Clone(vectors), n), sum/pairs; math.Abs(got-want) > 1e-12 {
		t.Errorf("the mean of all pairs is %v, not %v", got, want)
	}
}

// TestClaimsCanFail: verdicts follow the figures, and add-remove stands in a table of its
// own.
func TestClaimsCanFail(t *testing.T) {
	c := contest{how: byChance, epsilon: 8, clips: []float64{1, 3}, cells: map[string][][]reached{}}
	for _, a := range arms {
		c.cells[a.name] = [][]reached{{{Accuracy: 0.6, Epsilon: 8}, {Accuracy: 0.61, Epsilon: 8}}, {{Accuracy: 0.8, Epsilon: 8}, {Accuracy: 0.81, Epsilon: 8}}}
	}
	verdict := func() study.Verdict {
		for _, r := range c.rows() {
			if strings.HasPrefix(r.Label, "sector") && strings.HasSuffix(r.Label, " minus "+ball) {
				return r.Verdict
			}
		}
		return ""
	}
	if got := verdict(); got != study.Differs {
		t.Errorf("arms of one accuracy: %q", got)
	}
	better := c.cells[sectors[2].name][0]
	better[0].Accuracy, better[1].Accuracy = 0.81, 0.83
	if got := verdict(); got != study.Differs {
		t.Errorf("a sector that is better by 1.5 points, give or take 6: %q", got)
	}
	better[1].Accuracy = 0.82
	if got := verdict(); got != study.Agrees {
		t.Errorf("a sector that is better by a point: %q", got)
	}
	for _, r := range c.rows() {
		if inOwn := strings.HasSuffix(r.Section, "add-remove"); inOwn != (r.Label == addRemove) {
			t.Errorf("%s is in %s", r.Label, r.Section)
		}
		if clip := r.Settings["clip"]; r.Label == ball && clip != 3.0 {
			t.Errorf("the ball's best clip is said to be %v", clip)
		}
	}
	flat := aligned{Updates: slices.Repeat([]float64{0.05}, 10), Examples: slices.Repeat([]float64{0.02}, 10), Angle: slices.Repeat([]float64{80}, 10)}
	steep := flat
	steep.Updates, steep.Angle = slices.Clone(flat.Updates), slices.Clone(flat.Angle)
	for i := range 5 {
		steep.Updates[i] = 0.6
	}
	steep.Angle[0] = 29
	for want, cell := range map[study.Verdict]aligned{study.Differs: flat, study.Agrees: steep} {
		f := figure{of: small, steps: 10, cells: map[partition][]aligned{byChance: {cell, cell}}}
		claims := f.claims("", byChance)
		for _, r := range claims {
			if r.Verdict != want {
				t.Errorf("%s: %s, want %s", r.Label, r.Verdict, want)
			}
		}
		if len(claims) != 3 {
			t.Errorf("%d claims", len(claims))
		}
	}
}

// TestRunFilesHold: every arm's run file is one, at every scale.
func TestRunFilesHold(t *testing.T) {
	for _, of := range []network{small, large} {
		run, err := base(of)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range arms {
			one := run
			a.set(&one)
			for _, check := range sim.Checks() {
				if faults := check(one); faults != nil {
					t.Errorf("%s: %v", a.name, faults)
				}
			}
		}
	}
}

// TestChartsHaveAColourAnArm: with the four of figure 5.4 the arms that are drawn have a colour
// each, whichever arms were trained.
func TestChartsHaveAColourAnArm(t *testing.T) {
	c := contest{how: partitions[0], epsilon: 3, clips: []float64{1}, cells: map[string][][]reached{}}
	for _, a := range arms {
		c.cells[a.name] = [][]reached{{{Accuracy: 0.5}}}
	}
	if chart := c.chart(); len(chart.Series) != 4 || chart.Series[0].Name != ball {
		t.Errorf("%d series are drawn of %d arms", len(chart.Series), len(arms))
	}
}

// TestOtherRelation: a sector that beats the ball of add-remove agrees with the abstract, and
// one that is level with it does not.
func TestOtherRelation(t *testing.T) {
	for gain, want := range map[float64]study.Verdict{0: study.Differs, 0.02: study.Agrees} {
		c := contest{how: byChance, epsilon: 3, clips: []float64{1}, cells: map[string][][]reached{}}
		for _, a := range arms {
			c.cells[a.name] = [][]reached{{{Accuracy: 0.8}, {Accuracy: 0.81}, {Accuracy: 0.82}}}
		}
		c.cells[sectors[0].name] = [][]reached{{{Accuracy: 0.8 + gain}, {Accuracy: 0.81 + gain}, {Accuracy: 0.82 + gain}}}
		got := study.Verdict("")
		for _, r := range c.rows() {
			if strings.HasSuffix(r.Label, " minus "+addRemove) {
				got = r.Verdict
			}
		}
		if got != want {
			t.Errorf("%v more: %q, want %s", gain, got, want)
		}
	}
}

// TestRelations: the deviation is twice as large under replace-one, and the text's variance is
// not; half of epsilon is kept.
func TestRelations(t *testing.T) {
	rows, err := relationRows()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if v := float64(*rows[0].Measured); math.Abs(v-4) > 1e-3 || rows[0].Verdict != study.Differs {
		t.Errorf("the variance is %v times as large: %s", v, rows[0].Verdict)
	}
	if v := float64(*rows[1].Measured); v > closedEpsilon/2 || v < closedEpsilon/4 || rows[1].Verdict != study.Agrees {
		t.Errorf("under add-remove epsilon is %v: %s", v, rows[1].Verdict)
	}
	if v := float64(*rows[2].Measured); v < 2 || v > 2.5 || rows[2].Verdict != study.Agrees {
		t.Errorf("epsilons are %v apart: %s", v, rows[2].Verdict)
	}
}
