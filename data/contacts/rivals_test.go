package contacts

import (
	"math"
	"slices"
	"testing"
)

// TestRivals: each score is what its name says, and who cannot fall ill scores last.
func TestRivals(t *testing.T) {
	g := village(2000, 10, 14)
	all := g.Rivals(g.Days)
	if prevalence := all[0]; prevalence.Name != Prevalence || slices.ContainsFunc(prevalence.Scores, func(v float32) bool { return v != 0 }) {
		t.Errorf("%s tells people apart", prevalence.Name)
	}
	all = all[1:]
	for i := range g.Persons() {
		if well, _ := g.Label(i, g.Days); !well {
			for _, r := range all {
				if r.Scores[i] != -1 {
					t.Fatalf("%s of person %d, who is ill, is %v", r.Name, i, r.Scores[i])
				}
			}
			continue
		}
		want := 0.0
		others, hows := g.Contacts(i)
		for at, j := range others {
			for lag := range Window {
				if on(g.Infected[j], g.Days-1-lag) {
					want += float64(hows[at].Seconds()) / 86400 * math.Exp(-float64(lag)/3)
				}
			}
		}
		if got := float64(all[2].Scores[i]); math.Abs(got-want) > 1e-5 {
			t.Fatalf("%s of person %d is %v, want %v", all[2].Name, i, got, want)
		}
		if all[1].Scores[i] != float32(len(others)) {
			t.Fatalf("person %d has %v contacts, not %d", i, all[1].Scores[i], len(others))
		}
	}
}

// TestSIR: a region in which every infected day makes a new case of many foretells as
// much, one without cases nothing, and the model does not see the target.
func TestSIR(t *testing.T) {
	g := &Graph{Days: 57}
	add := func(region uint8, infected, recovered uint64) {
		g.ID, g.Region = append(g.ID, int64(len(g.ID))), append(g.Region, region)
		g.Infected, g.Recovered = append(g.Infected, infected), append(g.Recovered, recovered)
	}
	for i := range 1000 {
		add(1, 0, 0)
		switch { // in region 0 ten are ill for good, and each of the last 14 days infects two
		case i < 10:
			add(0, 1<<57-1<<40, 0)
		case i < 38:
			from := 43 + (i-10)/2
			add(0, 1<<(from+1)-1<<from, 1<<57-1<<(from+1))
		default:
			add(0, 0, 0)
		}
		add(2, 0, 1<<57-1) // everybody has had it
	}
	chances := g.sirByRegion(57)
	// Twelve are infected and 14 fall ill in the last week, one of 6 recovers a day: two a
	// day go on, of 962.
	if got := float64(chances[0]); math.Abs(got-14./962) > 0.002 {
		t.Errorf("the chance of a region with two new cases a day of 962 is %v for a week, want near %v", got, 14./962)
	}
	if chances[1] != 0 || chances[2] != 0 {
		t.Errorf("regions without cases have chances %v", chances[1:3])
	}
}

// TestNothingForetoldIsRead: whoever falls ill in the week that is foretold, features and
// rivals are the same: only labels may tell.
func TestNothingForetoldIsRead(t *testing.T) {
	g := village(500, 10, 14)
	read := func() (all []float32, labels int) {
		people := g.Foretold()
		row := make([]float32, people.Inputs())
		for i := range people.Persons() {
			if label := people.Input(row, i, 0); label > 0 {
				labels++
			}
			all = append(all, row...)
		}
		for _, r := range g.Rivals(g.Days) {
			all = append(all, r.Scores...)
		}
		trained := g.Trainees()
		for i := range trained.Persons() {
			for w := range trained.Windows() {
				all = append(all, float32(trained.Input(row, i, w)))
				all = append(all, row...)
			}
		}
		return all, labels
	}
	before, ill := read()
	for i := range g.Target {
		g.Target[i] = ^g.Target[i]
	}
	after, others := read()
	if ill == others || !slices.Equal(before, after) {
		t.Errorf("%d and %d fall ill; what is read is the same: %v", ill, others, slices.Equal(before, after))
	}
}
