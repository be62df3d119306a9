package contacts

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

var soak = flag.Bool("soak", false, "run the long tests")

// households are the challenge's, or the test is left out.
func households(t testing.TB) *Households {
	t.Helper()
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set: no real households")
	}
	h, err := ReadHouseholds(filepath.Join(folder, HouseholdsFile))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func generate(t testing.TB, s Settings) *Population {
	t.Helper()
	p, err := Generate(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPrototypesFigures: the study's array prototype at 20,000 persons, run under NumPy with
// prototypes/population/gen.py: population(20000, seed, households), contacts(…, seed), then
// epidemic(…, seed+1, .0033, reg_mult=REG_MULT, reg_seed=REG_SEED). Its epidemic draws by a
// contact's place in its list, which we do not have: there the draw was changed to
// u01(seed, 200+t, from, to, kind*8192+ticks) and durations to ticks of 12 s, and nothing
// else. Every count is then the same.
func TestPrototypesFigures(t *testing.T) {
	for seed, want := range map[uint64]string{
		1: "20003 persons, 7924 households, regions [6739 3797 2624 1783 1409 1210 918 707 520 296], 472041 contacts, kinds [22121 121499 109812 106088 69333 4380 38808], degrees [2 28 47 65 94 112 149], squares 59159060, 19462 across, ever 454, next 41, now 36 and 418",
		2: "20001 persons, 8015 households, regions [6842 3729 2552 1766 1438 1223 963 696 482 310], 470677 contacts, kinds [21828 119006 111371 105812 71321 4586 36753], degrees [2 28 46 65 95 113 148], squares 59124982, 18500 across, ever 679, next 32, now 30 and 649",
	} {
		g := generate(t, Settings{Persons: 20000, Seed: seed, Households: households(t)}).Graph()
		f := g.Figures()
		var regions, degrees []int
		var kinds []int64
		for _, r := range f.Regions {
			regions = append(regions, r.Persons)
		}
		for _, k := range f.Kinds {
			kinds = append(kinds, k.Contacts)
		}
		for _, q := range f.Degree.Quantiles {
			degrees = append(degrees, q.Contacts)
		}
		var squares int64
		for i := range g.Persons() {
			d := g.Offsets[i+1] - g.Offsets[i]
			squares += d * d
		}
		last := f.Curve[len(f.Curve)-1]
		got := fmt.Sprintf("%d persons, %d households, regions %v, %d contacts, kinds %v, degrees %v, squares %d, %d across, ever %d, next %d, now %d and %d",
			f.Persons, f.Households, regions, f.Contacts, kinds, degrees, squares, f.AcrossRegions, f.Ever, *f.Target, last.Infected, last.Recovered)
		if got != want {
			t.Errorf("seed %d:\n%s, want\n%s", seed, got, want)
		}
	}
}

// TestMustComeOut is the study's row at 200,000 persons. Contacts are sums over all persons
// and scatter little from seed to seed (1 to 12: mean degree 51.2-51.8, across regions
// 3.5-3.7 %). Epidemics scatter more than the study's three seeds told (2.9-3.1 % ever
// infected, .26-.27 % newly): over seeds 1 to 12 the mean and standard deviation are 2.93
// and .24, and .267 and .041. So one seed is held to 3 within .3 and .265 within .06, and,
// with -soak, the mean of twelve to 3 within .2 (about three standard errors) and .265 within .04.
// Seeds are fixed: no false alarm. A beta of .0040 instead of .0033 is found.
func TestMustComeOut(t *testing.T) {
	seeds, wide := []uint64{1}, []float64{.3, .06}
	if *soak {
		seeds, wide = []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, []float64{.2, .04}
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s %.4g, want %.4g within %.2g", what, got, want, tolerance)
		}
	}
	from := households(t)
	var ever, fresh float64
	for _, seed := range seeds {
		f := generate(t, Settings{Persons: 200_000, Seed: seed, Households: from}).Graph().Figures()
		near("mean degree", f.Degree.Mean, 51.5, .4)
		for i, want := range []float64{2, 31, 52, 71, 98, 118, 155} {
			tolerance := 1.0
			if i == 6 {
				tolerance = 8 // the largest of all
			}
			near(fmt.Sprintf("degree quantile %g", f.Degree.Quantiles[i].Share), float64(f.Degree.Quantiles[i].Contacts), want, tolerance)
		}
		near("contacts across regions, %", 100*float64(f.AcrossRegions)/float64(f.Contacts), 3.6, .15)
		ever += 100 * float64(f.Ever) / float64(f.Persons) / float64(len(seeds))
		fresh += 100 * float64(*f.Target) / float64(f.Persons) / float64(len(seeds))
	}
	near("ever infected, %", ever, 3, wide[0])
	near("newly infected, %", fresh, .265, wide[1])
}

// TestWorkersChangeNothing: neither how many there are nor who does what shows.
func TestWorkersChangeNothing(t *testing.T) {
	want := generate(t, Settings{Persons: 6000, Seed: 3, Workers: 1})
	for _, workers := range []int{2, 5} {
		got := generate(t, Settings{Persons: 6000, Seed: 3, Workers: workers})
		if !reflect.DeepEqual(got.Graph(), want.Graph()) {
			t.Errorf("%d workers make another graph than 1", workers)
		}
		if !reflect.DeepEqual(got.circles, want.circles) || !slices.Equal(got.places, want.places) {
			t.Errorf("%d workers make other visits than 1", workers)
		}
	}
	other := generate(t, Settings{Persons: 6000, Seed: 4})
	if reflect.DeepEqual(other.Graph().Other, want.Graph().Other) {
		t.Error("another seed makes the same contacts")
	}
}

// TestSmallPopulations: regions without a person, households of one, and no contacts at all.
func TestSmallPopulations(t *testing.T) {
	for _, persons := range []int{1, 2, 3, 17, 200} {
		g := generate(t, Settings{Persons: persons, Seed: 9}).Graph()
		if g.Persons() < persons || g.Persons() > persons+7 {
			t.Errorf("%d persons, asked for %d", g.Persons(), persons)
		}
		checkGraph(t, g)
	}
}

// checkGraph: what holds for every graph.
func checkGraph(t *testing.T, g *Graph) {
	t.Helper()
	ends := map[[3]int]int{} // lower, higher, how: counted up from one side, down from the other
	for i := range g.Persons() {
		others, hows := g.Contacts(i)
		for k, j := range others {
			if int(j) == i {
				t.Fatalf("person %d meets itself", i)
			}
			if k > 0 && uint64(others[k-1])<<16|uint64(hows[k-1]) > uint64(j)<<16|uint64(hows[k]) {
				t.Fatalf("row %d is not sorted", i)
			}
			if kind := hows[k].Kind(); kind < Home || kind > Religion || hows[k].Seconds() < shortest {
				t.Fatalf("person %d: %v for %d seconds", i, kind, hows[k].Seconds())
			}
			if hows[k].Kind() == Home && g.Household[i] != g.Household[j] {
				t.Fatalf("persons %d and %d meet at home and live apart", i, j)
			}
			key, side := [3]int{min(i, int(j)), max(i, int(j)), int(hows[k])}, 1
			if int(j) < i {
				side = -1
			}
			ends[key] += side
		}
		if known := uint64(1)<<g.Days - 1; (g.Infected[i]|g.Recovered[i])&^known != 0 {
			t.Fatalf("person %d has days that are not known", i)
		}
		if g.Positive(i) && g.Infected[i]|g.Recovered[i] != 0 {
			t.Fatalf("person %d is infected twice", i)
		}
		if g.Infected[i]&g.Recovered[i] != 0 {
			t.Fatalf("person %d is infected and recovered on one day", i)
		}
	}
	for key, left := range ends {
		if left != 0 {
			t.Fatalf("contact %v is on one side only", key)
		}
	}
}

func TestGeneratedGraphIsOne(t *testing.T) {
	g := generate(t, Settings{Persons: 4000, Seed: 1}).Graph()
	checkGraph(t, g)
	busy := 0
	for i, d := range g.Did {
		if (d == 0) != (g.Out[i] == 0) {
			t.Fatalf("person %d did %b and was out for %d ticks", i, d, g.Out[i])
		}
		if d&DidSchool != 0 && g.Age[i] > 17 || d&DidWork != 0 && g.Age[i] < 18 || d&DidShop != 0 && g.Age[i] < 12 {
			t.Fatalf("a person of %d did %b", g.Age[i], d)
		}
		if d&DidWork != 0 {
			busy++
		}
	}
	if share := float64(busy) / float64(g.Persons()); share < .3 || share > .6 {
		t.Errorf("%.2f of all work", share)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, s := range []Settings{{}, {Persons: -1}, {Persons: MostPersons + 1}, {Persons: 5, Workers: -1}} {
		if _, err := Generate(t.Context(), s); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, h := range []Households{{}, {Offsets: []int{0, 2}, Age: []uint8{1}, Sex: []uint8{1}}, {Offsets: []int{0, 0, 1}, Age: []uint8{1}, Sex: []uint8{1}}} {
		if _, err := Generate(t.Context(), Settings{Persons: 5, Households: &h}); !errors.Is(err, errHouseholds) {
			t.Errorf("%+v: %v", h, err)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Generate(stopped, Settings{Persons: 5000}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// TestStopsAtAnyTime: whenever the context ends, the error says so and nothing panics.
func TestStopsAtAnyTime(t *testing.T) {
	for _, at := range []string{"households", "visits", "contacts", "epidemic"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Generate(ctx, Settings{Persons: 3000, Progress: func(_ float64, what string) {
			if what == at {
				cancel()
			}
		}})
		if cancel(); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at %s: %v", at, err)
		}
	}
}

// TestInventedHouseholds: sizes by the challenge's shares, ages by the rule.
func TestInventedHouseholds(t *testing.T) {
	h := Invented()
	if err := h.check(); err != nil {
		t.Fatal(err)
	}
	ages, persons := 0.0, float64(len(h.Age))
	for _, a := range h.Age {
		ages += float64(a)
	}
	if mean := ages / persons; math.Abs(mean-42.8) > 2 {
		t.Errorf("mean age %.1f, the challenge's is 42.8", mean)
	}
	if mean := persons / float64(len(h.Offsets)-1); math.Abs(mean-2.5) > .05 {
		t.Errorf("%.2f persons a household, the challenge's have 2.50", mean)
	}
}

func TestHouseholdFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "no persons",
		"hid,pid\n":            "line 1: the columns are",
		head + "1,1,1,x,1\n":   `line 2: age "x"`,
		head + "1,1,1,121,1\n": "allowed: 0 to 120",
		head + "1,1,1,5,3\n":   `sex "3"`,
		head + "1,1,1,5\n":     "line 2: 4 cells instead of 5",
		head + "1,1,1,5,1\n2,2,1,5,1\n1,3,1,5,1\n": "line 4: household 1 stands in two places",
	} {
		path := filepath.Join(t.TempDir(), "person.csv")
		write(t, path, text)
		if _, err := ReadHouseholds(path); !says(err, want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadHouseholds("nowhere.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

const head = "hid,pid,person_number,age,sex\n"
