package contacts

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestRefusedRules: a rule that cannot be is refused, with all that is wrong.
func TestRefusedRules(t *testing.T) {
	g := village(50, 4, 1)
	for _, c := range []struct {
		rule Rule
		want []string
	}{
		{Rule{Relation: OwnRecord}, []string{"the most examples that a person is in cannot be 0, 1 is the least", "cannot take 0 of the offers"}},
		{Rule{Relation: HomeRemoval, Most: -1}, []string{"cannot be -1"}},
		{Rule{Relation: ThinnedRemoval}, []string{"a share of 0 of the contacts", "it is 0, 1 is the least"}},
		{Rule{Relation: ThinnedRemoval, Keep: 1.5, Degree: 9}, []string{"a share of 1.5 of"}},
		{Rule{Relation: ThinnedRemoval, Keep: math.NaN(), Degree: 9}, []string{"a share of NaN of"}},
		{Rule{Relation: "node", Most: 2}, []string{`the relation "node"; there are own-record, home-removal, thinned-removal, pruned and authors`}},
	} {
		k, err := c.rule.Of(g)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) || k.Offsets != nil {
				t.Errorf("%v: error %v, want %q", c.rule, err, want)
			}
		}
	}
}

// TestRefusedTables: what a theorem takes for granted is looked up.
func TestRefusedTables(t *testing.T) {
	thin := Rule{Relation: ThinnedRemoval, Keep: 0.1, Degree: 100, Secret: [16]byte{1}}
	home := Rule{Relation: HomeRemoval, Most: 8}
	own := Rule{Relation: OwnRecord, Most: 3, Take: 3}
	for name, c := range map[string]struct {
		rule  Rule
		spoil func(g *Graph)
		want  string
	}{
		"a hub":                  {thin, func(*Graph) {}, "nobody has more than 100 contacts, but persons who have number 1, and person 3503 has the most, 8"},
		"a household too small":  {home, func(g *Graph) { g.Household[1], g.Household[2], g.Size[2] = 0, 0, 2 }, "people live in the household of person 17, which is declared to have 2"},
		"two of the same number": {own, func(g *Graph) { g.ID[7] = g.ID[6] }, "number 45 comes after 45"},
		"out of order":           {own, func(g *Graph) { g.ID[7] = 1 }, "number 1 comes after 45"},
	} {
		g := village(1000, 6, 1)
		c.spoil(g)
		if _, err := c.rule.Of(g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	g := village(1000, 6, 1)
	thin.Degree = hubContacts + 30
	if _, err := thin.Of(g); err != nil {
		t.Errorf("a promise that holds is refused: %v", err)
	}
	thin.Secret = [16]byte{}
	if _, err := thin.Of(g); !errors.Is(err, errNoSecret) {
		t.Errorf("contacts are thinned by what everybody knows: %v", err)
	}
	if k, err := own.Of(&Graph{Offsets: []int64{0}}); err != nil || len(k.Offsets) != 1 {
		t.Errorf("nobody: %v, %v", k, err)
	}
	if _, err := home.Of(&Graph{Offsets: []int64{0}}); err != nil {
		t.Errorf("nobody at home: %v", err)
	}
}

// TestCoresDoNotShow: whoever does the work, the examples are the same.
func TestCoresDoNotShow(t *testing.T) {
	g := village(2000, 20, 5)
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for name, r := range rules() {
		runtime.GOMAXPROCS(1)
		one := built(t, r, g)
		for _, cores := range []int{2, 5} {
			runtime.GOMAXPROCS(cores)
			if !reflect.DeepEqual(one, built(t, r, g)) {
				t.Errorf("%s: %d cores build other examples than one", name, cores)
			}
		}
	}
}

// TestLargeHouseholdsContributeNothing: not even as many as would be let in.
func TestLargeHouseholdsContributeNothing(t *testing.T) {
	g := village(300, 4, 6)
	k := built(t, Rule{Relation: HomeRemoval, Most: 3}, g)
	for i, size := range g.Size {
		want := int(size) - 1
		if size > 3 {
			want = 0
		}
		others, _ := k.Contacts(i)
		if kept := len(slices.Compact(slices.Clone(others))); kept != want {
			t.Errorf("%d people are in the example of person %d, of a household of %d", kept, i, size)
		}
	}
}

// TestDeclaredSizeIsNotRecounted: somebody who goes from a household above the bound does
// not bring it below.
func TestDeclaredSizeIsNotRecounted(t *testing.T) {
	g, r := village(300, 4, 6), Rule{Relation: HomeRemoval, Most: 3}
	was := built(t, r, g)
	for j, size := range g.Size {
		if size == 4 {
			if all := rebuilt(g, &was, func(g *Graph) Kept { return built(t, r, g) }, j, ofPerson); len(all) != 1 {
				t.Fatalf("without person %d of a household of 4 the examples %v change", j, all)
			}
		}
	}
}

// z is the two-sided 1e-6 quantile of the normal law: each comparison below fails once in
// a million keys, and the keys are fixed.
const z = 4.8916

// near says whether a count is what so many independent draws of a chance give.
func near(count, draws int, chance float64) bool {
	n := float64(draws)
	return math.Abs(float64(count)-n*chance) <= z*math.Sqrt(n*chance*(1-chance))+1
}

// TestThinningIsIndependent: of ordered pairs a share tau is kept, of those kept by one key
// a share tau by another, and of those kept one way a share tau the other way: one draw for
// both ways, or one that does not know the key, would fail.
func TestThinningIsIndependent(t *testing.T) {
	g := village(4000, 20, 7)
	const tau = 0.2
	keep := func(secret byte) map[[2]uint32]bool {
		kept := map[[2]uint32]bool{}
		k := built(t, Rule{Relation: ThinnedRemoval, Keep: tau, Degree: 1000, Secret: [16]byte{secret}}, g)
		for i := range g.Persons() {
			others, _ := k.Contacts(i)
			for _, j := range others {
				kept[[2]uint32{uint32(i), j}] = true
			}
		}
		return kept
	}
	pairs := map[[2]uint32]bool{}
	for i, row := range g.rows() {
		for _, c := range row {
			pairs[[2]uint32{uint32(i), c.other}] = true
		}
	}
	one, other := keep(1), keep(2)
	if !near(len(one), len(pairs), tau) {
		t.Errorf("%d of %d pairs are kept", len(one), len(pairs))
	}
	again, back := 0, 0
	for p := range one {
		if other[p] {
			again++
		}
		if p[0] < p[1] && one[[2]uint32{p[1], p[0]}] {
			back++
		}
	}
	if !near(again, len(one), tau) {
		t.Errorf("of %d pairs that one key keeps another keeps %d", len(one), again)
	}
	if !near(back, len(pairs)/2, tau*tau) {
		t.Errorf("of %d pairs %d are kept both ways", len(pairs)/2, back)
	}
	if near(back, len(pairs)/2, tau) { // what one draw for both ways would give
		t.Error("the test could not tell one draw from two")
	}
}

// TestAppearances: the chances are the binomial's, rounded up and not by much.
func TestAppearances(t *testing.T) {
	upTo := func(got, want float64) bool { return got >= want && got <= want*(1+1e-8) }
	r := Rule{Relation: ThinnedRemoval, Keep: 0.25, Degree: 3}
	for k, want := range []float64{27. / 64, 27. / 64, 9. / 64, 1. / 64} {
		if got := r.Appearances()[k]; !upTo(got, want) {
			t.Errorf("%d others hold a person with chance %v, want %v", k, got, want)
		}
	}
	r.Keep = 1
	if all := r.Appearances(); !reflect.DeepEqual(all, []float64{0, 0, 0, 1}) {
		t.Errorf("without thinning %v", all)
	}
	large := Rule{Relation: ThinnedRemoval, Keep: 0.05, Degree: 100_000}
	sum, mean := 0.0, 0.0
	for k, p := range large.Appearances() {
		sum += p
		mean += float64(k) * p
	}
	if !upTo(sum, 1) || !upTo(mean, 5000) {
		t.Errorf("chances add up to %v, their mean is %v", sum, mean)
	}
	if most, proved := large.Examples(); most != 100_001 || !proved {
		t.Errorf("the worst is %d", most)
	}
	for _, other := range []Rule{{Relation: ThinnedRemoval, Keep: 0.1, Degree: -5}, {Relation: OwnRecord, Most: 6, Take: 3, Keep: 0.1, Degree: 5}} {
		if got := other.Appearances(); got != nil {
			t.Errorf("%v has chances %v", other, got)
		}
	}
}

// TestThinningByAppearances: over keys, a person with d contacts is in Binomial(d, tau)
// others' examples: its chance of at most k is within 1e-6 limits for every k.
func TestThinningByAppearances(t *testing.T) {
	g := village(60, 10, 8)
	j := 30 // the hub meets everybody, some twice
	distinct := map[uint32]bool{}
	others, _ := g.Contacts(j)
	for _, i := range others {
		distinct[i] = true
	}
	r := Rule{Relation: ThinnedRemoval, Keep: 0.1, Degree: 100}
	const keys = 600
	counts := make([]int, g.Persons())
	for key := range uint64(keys) {
		binary.LittleEndian.PutUint64(r.Secret[:], key+1)
		k := built(t, r, g)
		counts[len(k.holders()[j])]++
	}
	r.Degree = len(distinct)
	exact := r.Appearances()
	atMost, chance := 0, 0.0
	for k := range exact {
		atMost += counts[k]
		chance = min(1, chance+exact[k])
		if !near(atMost, keys, chance) {
			t.Errorf("in %d of %d draws of the key at most %d examples hold the person; the chance is %.4f", atMost, keys, k, chance)
		}
	}
}

func BenchmarkRules(b *testing.B) {
	g := village(100_000, 50, 9)
	for name, r := range rules() {
		r.Degree = 2000
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Of(g); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.Other)), "ns/contact")
		})
	}
}
