package contacts

import (
	"math/bits"
	"slices"
)

// Figures are what a population looks like in numbers. They tell of private records: they
// are for whoever holds them.
type Figures struct {
	Persons    int           `json:"persons"`
	Households int           `json:"households"`
	Contacts   int64         `json:"contacts"` // every one counted once
	Kinds      []KindCount   `json:"kinds"`
	Degree     DegreeFigures `json:"degree"`
	Regions    []RegionCount `json:"regions"`
	// Ever is how many are shown as infected or recovered on a known day.
	Ever int `json:"ever_infected"`
	// Target is how many are infected in the week to be foretold; nil: not known.
	Target *int `json:"infected_next_week"`
	// AcrossRegions is how many contacts are between persons of two regions.
	AcrossRegions int64 `json:"contacts_across_regions"`
	// Curve is, by known day, how many are infected and how many recovered.
	Curve []DayCount `json:"curve"`
}

// KindCount is how many contacts are of a kind, by what either did there.
type KindCount struct {
	Kind     string `json:"kind"`
	Contacts int64  `json:"contacts"`
}

// DegreeFigures are the mean and quantiles of how many contacts a person has.
type DegreeFigures struct {
	Mean      float64          `json:"mean"`
	Quantiles []DegreeQuantile `json:"quantiles"`
}

// DegreeQuantile is the least number of contacts that a share of persons has at most.
type DegreeQuantile struct {
	Share    float64 `json:"share"`
	Contacts int     `json:"contacts"`
}

// RegionCount is one region's.
type RegionCount struct {
	Region  int  `json:"region"`
	Persons int  `json:"persons"`
	Ever    int  `json:"ever_infected"`
	Now     int  `json:"infected_now"` // on the last known day
	Target  *int `json:"infected_next_week"`
}

// DayCount is one day's.
type DayCount struct {
	Day       int `json:"day"`
	Infected  int `json:"infected"`
	Recovered int `json:"recovered"`
	New       int `json:"new"` // infected, and not on the day before
}

// Figures counts.
func (g *Graph) Figures() Figures {
	f := Figures{Persons: g.Persons(), Contacts: int64(len(g.Other)) / 2, Curve: make([]DayCount, g.Days), Regions: make([]RegionCount, regions)}
	f.countPersons(g)
	f.countContacts(g)
	return f
}

func (f *Figures) countPersons(g *Graph) {
	if g.Target != nil {
		f.Target = new(int)
	}
	for r := range f.Regions {
		f.Regions[r].Region = r
		if g.Target != nil {
			f.Regions[r].Target = new(int)
		}
	}
	for d := range f.Curve {
		f.Curve[d].Day = d
	}
	for i, r := range g.Region {
		region := &f.Regions[r]
		region.Persons++
		f.Households = max(f.Households, int(g.Household[i])+1)
		if g.Positive(i) {
			*f.Target++
			*region.Target++
		}
		infected, recovered := g.Infected[i], g.Recovered[i]
		if infected|recovered == 0 {
			continue
		}
		f.Ever++
		region.Ever++
		region.Now += int(infected >> (g.Days - 1) & 1)
		for b := infected; b != 0; b &= b - 1 {
			f.Curve[bits.TrailingZeros64(b)].Infected++
		}
		for b := recovered; b != 0; b &= b - 1 {
			f.Curve[bits.TrailingZeros64(b)].Recovered++
		}
		for b := infected &^ (infected << 1); b != 0; b &= b - 1 {
			f.Curve[bits.TrailingZeros64(b)].New++
		}
	}
}

func (f *Figures) countContacts(g *Graph) {
	var ends [Religion + 1]int64
	degrees := make([]int32, g.Persons())
	for i := range degrees {
		others, hows := g.Contacts(i)
		degrees[i] = int32(len(others))
		for k, other := range others {
			ends[hows[k].Kind()]++
			if int(other) > i && g.Region[other] != g.Region[i] {
				f.AcrossRegions++
			}
		}
	}
	for k := Home; k <= Religion; k++ {
		f.Kinds = append(f.Kinds, KindCount{k.String(), (ends[k] + 1) / 2})
	}
	f.Degree.Mean = float64(len(g.Other)) / float64(max(1, g.Persons()))
	slices.Sort(degrees)
	for _, share := range []float64{.05, .25, .5, .75, .95, .99, 1} {
		at := int(share * float64(len(degrees)-1))
		f.Degree.Quantiles = append(f.Degree.Quantiles, DegreeQuantile{share, int(degrees[at])})
	}
}
