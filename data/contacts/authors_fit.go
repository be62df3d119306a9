package contacts

import (
	"math"
	"runtime"

	"github.com/coterie-fl/coterie/internal/pool"
)

// nodeValues is how many values the authors have of a person: age, sex, household, four
// things done, time out, degree, rank.
const nodeValues = 10

// fitted is what the authors' inputs take from the population as a whole. Every value of it
// moves with everybody: whoever goes changes all examples.
type fitted struct {
	nodes               []float32 // nodeValues by person
	longitude, latitude scaling
}

// scaling is a mean and a standard deviation.
type scaling struct{ mean, deviation float64 }

func (s scaling) of(v float64) float32 { return float32((v - s.mean) / s.deviation) }

// scalingOf is of n values; where they are all the same, they stay apart by 1.
func scalingOf(n int, value func(i int) float64) scaling {
	s := scaling{deviation: 1}
	if n == 0 {
		return s
	}
	for i := range n {
		s.mean += value(i) / float64(n)
	}
	squares := 0.0
	for i := range n {
		d := value(i) - s.mean
		squares += d * d / float64(n)
	}
	if squares > 0 {
		s.deviation = math.Sqrt(squares)
	}
	return s
}

// fit takes what the authors take from a graph: age standardised, the household's size by
// Box and Cox, degree and PageRank from 0 to 1, positions standardised.
func (g *Graph) fit() *fitted {
	n := g.Persons()
	f := &fitted{
		nodes:     make([]float32, n*nodeValues),
		longitude: scalingOf(len(g.Places), func(i int) float64 { return float64(g.Places[i].Longitude) }),
		latitude:  scalingOf(len(g.Places), func(i int) float64 { return float64(g.Places[i].Latitude) }),
	}
	age := scalingOf(n, func(i int) float64 { return float64(g.Age[i]) })
	sizes := g.boxCox()
	degree := fromTo(n, func(i int) float64 { return float64(g.Offsets[i+1] - g.Offsets[i]) })
	ranks := g.pageRank()
	rank := fromTo(n, func(i int) float64 { return ranks[i] })
	for i := range n {
		of, did := f.nodes[i*nodeValues:(i+1)*nodeValues], g.Did[i]
		of[0] = age.of(float64(g.Age[i]))
		of[1] = indicator(g.Sex[i] == 2) - 0.5
		of[2] = sizes[g.Size[i]]
		of[3] = indicator(did&DidWork != 0) - 0.5
		of[4] = indicator(did&(DidSchool|DidCollege) != 0) - 0.5
		of[5] = indicator(did&DidShop != 0) - 0.5
		of[6] = indicator(did == 0) - 0.5
		of[7] = float32(g.Out[i]) * Tick / daySeconds
		of[8] = degree.of(float64(g.Offsets[i+1] - g.Offsets[i]))
		of[9] = rank.of(ranks[i])
	}
	return f
}

// fromTo scales the least of n values to 0 and the largest to 1.
func fromTo(n int, value func(i int) float64) scaling {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range n {
		low, high = math.Min(low, value(i)), math.Max(high, value(i))
	}
	if !(high > low) {
		return scaling{low, 1}
	}
	return scaling{low, high - low}
}

// boxCox is (x^l-1)/l of every size of a household, with the l between -2 and 2 under which
// the persons' are likeliest to be normal (Box and Cox 1964).
func (g *Graph) boxCox() (of [256]float32) {
	var count [256]float64
	logs := 0.0
	for _, size := range g.Size {
		count[size]++
		logs += math.Log(float64(max(1, size)))
	}
	n := float64(len(g.Size))
	likelihood := func(l float64) float64 {
		mean, squares := 0.0, 0.0
		for size, c := range count {
			mean += c / n * powered(float64(size), l)
		}
		for size, c := range count {
			d := powered(float64(size), l) - mean
			squares += c / n * d * d
		}
		return (l-1)*logs - n/2*math.Log(squares)
	}
	low, high := -2.0, 2.0
	golden := (math.Sqrt(5) - 1) / 2
	for high-low > 1e-6 {
		a, b := high-golden*(high-low), low+golden*(high-low)
		if likelihood(a) > likelihood(b) {
			high = b
		} else {
			low = a // also if all sizes are the same, and nothing is likely
		}
	}
	for size := range of {
		of[size] = float32(powered(float64(size), (low+high)/2))
	}
	return of
}

// powered is (x^l-1)/l; sizes below 1 count as 1.
func powered(x, l float64) float64 {
	log := math.Log(max(1, x))
	if math.Abs(l) < 1e-9 {
		return log
	}
	return math.Expm1(l*log) / l
}

const (
	rankDamping = 0.85
	rankSweeps  = 100
	rankClose   = 1e-6 // change of all ranks together that is none
)

// pageRank is that of the contacts, which go both ways; two who meet twice count twice.
func (g *Graph) pageRank() []float64 {
	n := g.Persons()
	rank, next, flow := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range rank {
		rank[i] = 1 / float64(n)
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	defer workers.Close()
	const chunk = 1 << 12
	for range rankSweeps {
		lonely := 0.0
		for i := range n {
			if degree := g.Offsets[i+1] - g.Offsets[i]; degree > 0 {
				flow[i] = rank[i] / float64(degree)
			} else {
				lonely += rank[i]
			}
		}
		everybody := (1-rankDamping)/float64(n) + rankDamping*lonely/float64(n)
		workers.Each((n+chunk-1)/chunk, func(_, c int) {
			for i := c * chunk; i < min(n, (c+1)*chunk); i++ {
				sum := 0.0
				for _, j := range g.Other[g.Offsets[i]:g.Offsets[i+1]] {
					sum += flow[j]
				}
				next[i] = everybody + rankDamping*sum
			}
		})
		moved := 0.0
		for i := range n {
			moved += math.Abs(next[i] - rank[i])
		}
		if rank, next = next, rank; moved < rankClose {
			break
		}
	}
	return rank
}
