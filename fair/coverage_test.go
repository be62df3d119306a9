package fair

import (
	"flag"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/internal/rng"
)

var soak = flag.Bool("soak", false, "measure the coverage of intervals at length")

// The simulated population: two groups of clusters. A cluster's true and false
// positive rates are those of its group, both moved up or both moved down.
const (
	moved            = 0.2
	tprA, fprA       = 0.6, 0.3
	tprB, fprB       = 0.4, 0.2
	parityTruth      = (tprA+fprA)/2 - (tprB+fprB)/2
	opportunityTruth = tprA - tprB
	oddsTruth        = tprA - tprB // more than fprA - fprB
)

func simulatedRows(family rng.Family, population, clusters, size int) (r Rows) {
	src := family.Stream(population, 0)
	for cluster := range 2 * clusters {
		group, tpr, fpr := "a", tprA, fprA
		if cluster >= clusters {
			group, tpr, fpr = "b", tprB, fprB
		}
		shift := moved * float64(2*src.Below(2)-1)
		for range size {
			truth, rate := src.Below(2), fpr+shift
			if truth == 1 {
				rate = tpr + shift
			}
			predicted := 0
			if src.Float64() < rate {
				predicted = 1
			}
			r.Truth = append(r.Truth, truth)
			r.Predicted = append(r.Predicted, predicted)
			r.Group = append(r.Group, group)
			r.Cluster = append(r.Cluster, cluster)
		}
	}
	return r
}

// covered counts the populations whose interval holds the truth, by figure.
func covered(t *testing.T, populations, clusters, size, resamples int, change func(*Rows)) map[string]int {
	t.Helper()
	family := rng.NewFamily(11, "test coverage")
	hits := map[string]int{}
	for p := range populations {
		r := simulatedRows(family, p, clusters, size)
		change(&r)
		report, err := Assess(r, Bootstrap{Seed: uint64(p), Resamples: resamples})
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			e     Estimate
			truth float64
		}{
			"parity difference":      {report.Metrics.DemographicParityDifference, parityTruth},
			"opportunity difference": {report.Metrics.EqualOpportunityDifference, opportunityTruth},
			"odds difference":        {report.Metrics.EqualizedOddsDifference, oddsTruth},
			"parity gap":             {report.Groups[1].VersusRest.SelectionRate, -parityTruth},
			"selection rate":         {report.Groups[0].SelectionRate, (tprA + fprA) / 2},
		} {
			if c.e.Low != nil && *c.e.Low <= c.truth && c.truth <= *c.e.High {
				hits[name]++
			}
		}
	}
	return hits
}

// plausible is whether so many hits can come from a coverage between 0.92 and
// 0.97: percentile intervals at 95 % are allowed that much error. A coverage
// inside those limits raises an alarm at a rate of at most 1e-6.
func plausible(hits, populations int) bool {
	n := float64(populations)
	tooFew := distuv.Binomial{N: n, P: 0.92}.CDF(float64(hits)) < falseAlarm/2
	tooMany := 1-distuv.Binomial{N: n, P: 0.97}.CDF(float64(hits)-1) < falseAlarm/2
	return !tooFew && !tooMany
}

func TestCoverage(t *testing.T) {
	const populations = 400
	for name, hits := range covered(t, populations, 60, 20, 199, func(*Rows) {}) {
		if !plausible(hits, populations) {
			t.Errorf("%s: %d of %d intervals at 95 %% hold the truth", name, hits, populations)
		}
	}
}

// TestPlantedCoverageIsCaught: rows taken for independent make intervals half as
// wide as they should be.
func TestPlantedCoverageIsCaught(t *testing.T) {
	const populations = 200
	hits := covered(t, populations, 60, 20, 199, func(r *Rows) { r.Cluster = nil })
	for _, name := range []string{"parity difference", "parity gap", "selection rate"} {
		if plausible(hits[name], populations) {
			t.Errorf("not caught: %s, %d of %d", name, hits[name], populations)
		}
	}
}

// TestDifferencesNearZero holds what the documentation warns of: where groups are
// equal, a difference's interval misses 0, and a gap's interval does not.
func TestDifferencesNearZero(t *testing.T) {
	const populations = 200
	family := rng.NewFamily(12, "test null")
	above, gap := 0, 0
	for p := range populations {
		r := simulatedRows(family, p, 60, 20)
		for i := range r.Group { // groups that mean nothing
			r.Group[i] = string(rune('a' + r.Cluster[i]%2))
		}
		report, err := Assess(r, Bootstrap{Seed: uint64(p), Resamples: 199})
		if err != nil {
			t.Fatal(err)
		}
		if *report.Metrics.DemographicParityDifference.Low > 0 {
			above++
		}
		if e := report.Groups[0].VersusRest.SelectionRate; *e.Low <= 0 && 0 <= *e.High {
			gap++
		}
	}
	if above < populations/2 {
		t.Errorf("only %d of %d differences lie above 0: the documentation is wrong", above, populations)
	}
	if !plausible(gap, populations) {
		t.Errorf("%d of %d gaps hold 0", gap, populations)
	}
	t.Logf("equal groups: %d of %d difference intervals above 0, %d gap intervals hold 0", above, populations, gap)
}

// TestCoverageSoak prints the table of docs/fairness.md.
func TestCoverageSoak(t *testing.T) {
	if !*soak {
		t.Skip("-soak measures the coverage by number of units")
	}
	const populations = 4000
	for _, clusters := range []int{5, 10, 20, 50, 200} {
		t.Logf("%d clusters a group: %v of %d", clusters, covered(t, populations, clusters, 20, 999, func(*Rows) {}), populations)
	}
}
