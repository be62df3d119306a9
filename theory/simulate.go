package theory

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/rng"
)

// Simulation draws whole federations and estimates every silo's centre: it holds
// the closed forms against what really comes out.
type Simulation struct {
	Federation  Different
	Centre      float64 // theta
	Clip        float64 // examples are clipped to [-Clip, Clip]; 0: not at all, as the formulas assume
	Lambdas     []float64
	Repetitions int
	Seed        uint64
}

// Point is what came out at one lambda.
type Point struct {
	Lambda        float64
	Error         float64 // squared, mean over silos and repetitions
	StandardError float64 // of Error, over repetitions
	// Silos is every silo's mean squared error, and SiloStandardErrors of it.
	Silos, SiloStandardErrors []float64
}

// Run is one point for every lambda, all on the same draws.
func (s Simulation) Run() ([]Point, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("simulation of mean estimation: %w", err)
	}
	k := len(s.Federation.Silos)
	all, each := make([]moments, len(s.Lambdas)), make([]moments, len(s.Lambdas)*k)
	centres, own := make([]float64, k), make([]float64, k)
	draws := rng.NewFamily(s.Seed, "mean estimation")
	for r := range s.Repetitions {
		s.draw(draws.Stream(r, 0), centres, own)
		average := 0.0
		for _, w := range own {
			average += w / float64(k)
		}
		for l, lambda := range s.Lambdas {
			part, total := 1/(1+lambda), 0.0
			for i := range own {
				// The regularised objective's minimum, as it stands before lemma 1.6.1
				// takes the silo's own share out of the average.
				wrong := part*own[i] + (1-part)*average - centres[i]
				each[l*k+i].add(wrong * wrong)
				total += wrong * wrong
			}
			all[l].add(total / float64(k))
		}
	}
	points := make([]Point, len(s.Lambdas))
	for l := range points {
		points[l] = summary(s.Lambdas[l], all[l], each[l*k:(l+1)*k])
	}
	return points, nil
}

func (s Simulation) validate() error {
	faults := []error{s.Federation.Validate(), atLeast("repetitions", s.Repetitions, 2), notNegative("clip", s.Clip), notNegative("|theta|", math.Abs(s.Centre))}
	for _, lambda := range s.Lambdas {
		if !(lambda >= 0) {
			faults = append(faults, fmt.Errorf("%w: lambda = %v, want a number >= 0", ErrRange, lambda))
		}
	}
	return errors.Join(faults...)
}

// draw sets every silo's centre and its private estimate of it.
func (s Simulation) draw(src *rng.Stream, centres, own []float64) {
	for i, silo := range s.Federation.Silos {
		centres[i] = s.Centre + s.Federation.Spread*src.Normal()
		sum := silo.Noise * src.Normal()
		for range silo.Examples {
			x := centres[i] + silo.Deviation*src.Normal()
			if s.Clip > 0 {
				x = math.Max(-s.Clip, math.Min(s.Clip, x))
			}
			sum += x
		}
		own[i] = sum / float64(silo.Examples)
	}
}

// moments are a running mean and spread (Welford 1962).
type moments struct{ count, mean, squares float64 }

func (m *moments) add(x float64) {
	m.count++
	d := x - m.mean
	m.mean += d / m.count
	m.squares += d * (x - m.mean)
}

func (m moments) standardError() float64 { return math.Sqrt(m.squares / (m.count - 1) / m.count) }

func summary(lambda float64, all moments, each []moments) Point {
	p := Point{Lambda: lambda, Error: all.mean, StandardError: all.standardError()}
	for _, m := range each {
		p.Silos = append(p.Silos, m.mean)
		p.SiloStandardErrors = append(p.SiloStandardErrors, m.standardError())
	}
	return p
}

// Range is 0, so many lambdas from low to high at equal ratios, and infinity: from
// training alone to the plain average.
func Range(low, high float64, count int) []float64 {
	out := []float64{0}
	for i := range count {
		out = append(out, low*math.Pow(high/low, float64(i)/math.Max(1, float64(count-1))))
	}
	return append(out, math.Inf(1))
}
