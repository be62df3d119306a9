package contacts

import (
	"math"
	"slices"
	"testing"
)

// on says whether a history has a day.
func on(history uint64, day int) bool { return day >= 0 && history>>day&1 == 1 }

// slowly are the features as the study words them, day by day.
func slowly(g *Graph, others []uint32, hows []How, i, end int) []float64 {
	yes := map[bool]float64{true: 1}
	f := []float64{
		(float64(g.Age[i]) - 40) / 40, yes[g.Age[i] < 18], yes[g.Age[i] >= 65], yes[g.Sex[i] == 2], math.Log(float64(g.Size[i])),
		yes[g.Did[i]&DidWork != 0], yes[g.Did[i]&(DidSchool|DidCollege) != 0], yes[g.Did[i]&DidShop != 0], yes[g.Did[i] == 0],
		float64(g.Out[i]) * Tick / 86400,
	}
	var counts []float64
	for _, lags := range [][2]int{{0, 2}, {3, 7}, {8, 20}} {
		time, count := 0.0, 0.0
		for at, j := range others {
			share := 0.0
			for lag := lags[0]; lag <= lags[1]; lag++ {
				if on(g.Infected[j], end-1-lag) {
					share += 1 / float64(lags[1]-lags[0]+1)
				}
			}
			time += float64(hows[at].Seconds()) / 86400 * share
			count += share
		}
		f, counts = append(f, math.Log(1+20*time)), append(counts, math.Log(1+count))
	}
	recovered := 0.0
	for at, j := range others {
		if on(g.Recovered[j], end-1) {
			recovered += float64(hows[at].Seconds()) / 86400
		}
	}
	return append(append(f, counts...), math.Log(1+20*recovered), 1)
}

// TestFeatures: of everybody, in every window, over kept contacts and over all.
func TestFeatures(t *testing.T) {
	g := village(400, 10, 10)
	for i := 0; i < g.Persons(); i += 5 {
		g.Recovered[i] &= 1<<30 - 1 // files may say that somebody can fall ill again: it is today that counts
	}
	k := built(t, rules()["own record, longest first"], g)
	got, seen := make([]float32, Pooled), make([]bool, Pooled)
	for i := range g.Persons() {
		for _, end := range append(g.TrainingEnds(), 20, 1, 0, g.Days) {
			for _, kept := range []*Kept{&k, nil} {
				others, hows := g.Contacts(i)
				if kept != nil {
					others, hows = kept.Contacts(i)
				}
				got[3] = 77 // what was there before does not show
				g.Fill(got, kept, i, end)
				for at, want := range slowly(g, others, hows, i, end) {
					if math.Abs(float64(got[at])-want) > 1e-5 {
						t.Fatalf("feature %d of person %d before day %d is %v, want %v", at, i, end, got[at], want)
					}
					seen[at] = seen[at] || want != 0
				}
			}
		}
	}
	if slices.Contains(seen, false) {
		t.Errorf("a feature is always 0: %v", seen)
	}
}

// TestOrderOfContactsDoesNotShow, to the last bit.
func TestOrderOfContactsDoesNotShow(t *testing.T) {
	g := village(1000, 10, 11)
	hub := 500
	others, hows := g.Contacts(hub)
	turned := Kept{Offsets: make([]int64, g.Persons()+1), Other: slices.Clone(others), How: slices.Clone(hows)}
	slices.Reverse(turned.Other)
	slices.Reverse(turned.How)
	for i := hub + 1; i < len(turned.Offsets); i++ {
		turned.Offsets[i] = int64(len(others))
	}
	var a, b [Pooled]float32
	for _, end := range g.TrainingEnds() {
		g.Fill(a[:], nil, hub, end)
		g.Fill(b[:], &turned, hub, end)
		if a != b {
			t.Errorf("before day %d: %v and %v", end, a, b)
		}
	}
}

// TestLabels: who is well for 21 days and ill within the next 7, by the states or by the
// target.
func TestLabels(t *testing.T) {
	days := func(from, to int) uint64 { return 1<<to - 1<<from }
	for name, c := range map[string]struct {
		infected, recovered uint64
		target              bool
		end                 int
		well, ill           bool
	}{
		"never ill":              {0, 0, false, 21, true, false},
		"ill on the next day":    {days(21, 25), days(25, 57), false, 21, true, true},
		"ill on the seventh day": {days(27, 30), days(30, 57), false, 21, true, true},
		"ill on the eighth":      {days(28, 30), days(30, 57), false, 21, true, false},
		"ill on the last day":    {days(20, 25), days(25, 57), false, 21, false, false},
		"ill on the first day":   {days(7, 8), 0, false, 28, false, false},
		"ill the day before":     {days(6, 7), 0, false, 28, true, false},
		"recovered, never shown": {0, days(24, 57), false, 21, true, true},
		"recovered before":       {0, days(3, 57), false, 49, false, false},
		"by target":              {0, 0, true, 57, true, true},
		"target, but ill now":    {days(56, 57), 0, true, 57, false, false},
		"target, earlier window": {0, 0, true, 49, true, false},
	} {
		g := &Graph{ID: []int64{1}, Infected: []uint64{c.infected}, Recovered: []uint64{c.recovered}, Days: 57, Target: []uint64{0}}
		if c.target {
			g.Target[0] = 1
		}
		if well, ill := g.Label(0, c.end); well != c.well || ill != c.ill {
			t.Errorf("%s: susceptible %v, infected %v", name, well, ill)
		}
	}
	if ends := (&Graph{Days: 57}).TrainingEnds(); !slices.Equal(ends, []int{21, 28, 35, 42, 49}) {
		t.Errorf("windows of training end before days %v", ends)
	}
	if ends := (&Graph{Days: 36}).TrainingEnds(); !slices.Equal(ends, []int{21, 28}) {
		t.Errorf("of 36 days windows of training end before days %v", ends)
	}
}

// TestFillAllocatesNothing, as it runs for millions.
func TestFillAllocatesNothing(t *testing.T) {
	g := village(400, 10, 12)
	k := built(t, rules()["home"], g)
	dst := make([]float32, Pooled)
	if n := testing.AllocsPerRun(100, func() { g.Fill(dst, &k, 200, 49) }); n > 0 {
		t.Errorf("Fill allocates %v times", n)
	}
}

func BenchmarkFill(b *testing.B) {
	g := village(200_000, 50, 13)
	k, err := Rule{Relation: OwnRecord, Most: 6, Take: 20, Longest: true}.Of(g)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, Pooled)
	for name, kept := range map[string]*Kept{"S-6": &k, "all": nil} {
		b.Run(name, func(b *testing.B) {
			ends, i := g.TrainingEnds(), 0
			for b.Loop() {
				g.Fill(dst, kept, i/5%g.Persons(), ends[i%5]) // five windows of a person, as in training
				i++
			}
		})
	}
}
