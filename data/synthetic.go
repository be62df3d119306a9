package data

import (
	"cmp"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
)

// paperParameters are theta_1 and theta_2 of papers 000 and 001.
var paperParameters = [][]float64{{5, 6}, {4, -4.5}}

// drawnSpread is the standard deviation of parameters that nobody gave: about
// the size of the papers' own.
const drawnSpread = 5

func init() {
	Register(Kind{
		DataKind: config.DataKind{Name: "synthetic", Defaults: func(d *config.Data) {
			d.Users, d.ValidationUsers = 100, 100
			d.X = config.Distribution{Kind: "uniform", Low: -1, High: 1, SD: 1}
			d.Noise = config.Distribution{Kind: "uniform", Low: 0, High: 1, SD: 1}
		}, Keys: []string{"users", "validation_users", "samples", "groups", "dimension", "parameters", "shares", "shift", "x", "noise"}},
		Check: checkSynthetic,
		Shape: func(d config.Data) (Shape, bool) {
			_, features := shape(d)
			return Shape{Features: features}, true
		},
		Clients: func(d config.Data) (train, validation int) { return d.Users, d.ValidationUsers },
		Load:    func(_ *Folder, d config.Data, seed uint64) (*Federation, error) { return Synthetic(d, seed), nil },
		Crowd:   func(_ *Folder, d config.Data, seed uint64) (*Federation, error) { return syntheticCrowd(d, seed), nil },
		Words:   func(config.Data) string { return "Generated data: y = x·θ + u, with a θ for every group of clients" },
	})
}

// checkSynthetic lists what is wrong with the block.
func checkSynthetic(c *config.Checker, d config.Data) {
	for i, row := range d.Parameters {
		c.Require(len(row) == len(d.Parameters[0]) && len(row) > 0, "data.parameters",
			"row %d has %d values, row 0 has %d: every group needs as many, at least 1", i, len(row), len(d.Parameters[0]))
	}
	if len(d.Parameters) > 0 {
		c.Require(d.Groups == 0 || d.Groups == len(d.Parameters), "data.groups",
			"is %d, but parameters has %d rows; allowed: 0 or %d", d.Groups, len(d.Parameters), len(d.Parameters))
		c.Require(d.Dimension == 0 || d.Dimension == len(d.Parameters[0]), "data.dimension",
			"is %d, but parameters has rows of %d; allowed: 0 or %d", d.Dimension, len(d.Parameters[0]), len(d.Parameters[0]))
	}
	groups, _ := shape(d)
	total := 0.0
	for i, s := range d.Shares {
		c.Require(s >= 0, "data.shares", "share %d is %v; allowed: 0 to 1", i, s)
		total += s
	}
	if len(d.Shares) > 0 {
		c.Require(len(d.Shares) == groups, "data.shares", "has %d values for %d groups", len(d.Shares), groups)
		c.Require(math.Abs(total-1) < 1e-9, "data.shares", "adds up to %v, must add up to 1", total)
	}
	c.Require(len(d.Shift) == 0 || len(d.Shift) == groups, "data.shift", "has %d values for %d groups", len(d.Shift), groups)
	checkDistribution(c, "data.x", d.X)
	checkDistribution(c, "data.noise", d.Noise)
}

func checkDistribution(c *config.Checker, path string, d config.Distribution) {
	c.Require(d.Kind != "uniform" || d.Low <= d.High, path+".high", "%v is below low %v", d.High, d.Low)
}

// shape is the number of groups and features that a data block means.
func shape(d config.Data) (groups, dimension int) {
	if len(d.Parameters) > 0 {
		return len(d.Parameters), len(d.Parameters[0])
	}
	return cmp.Or(d.Groups, len(paperParameters)), cmp.Or(d.Dimension, len(paperParameters[0]))
}

// Synthetic draws the linear federation of papers 000 and 001:
// y = x·theta_g + shift_g + u.
func Synthetic(d config.Data, seed uint64) *Federation {
	f := syntheticCrowd(d, seed)
	f.Crowd, f.Train = nil, newPopulation(d, f.Truth, d.Users, seed, trainingClients).all(d.Users)
	return f
}

// trainingClients is the purpose of a draw.
const trainingClients = "data: training clients"

// syntheticCrowd is Synthetic with clients that are drawn when they are asked for.
func syntheticCrowd(d config.Data, seed uint64) *Federation {
	groups, dimension := shape(d)
	truth := d.Parameters
	if len(truth) == 0 {
		truth = drawParameters(groups, dimension, seed)
	}
	return &Federation{
		Features: dimension, Truth: truth,
		Crowd:      &drawnCrowd{newPopulation(d, truth, d.Users, seed, trainingClients), d.Users},
		Validation: newPopulation(d, truth, d.ValidationUsers, seed, "data: validation clients").all(d.ValidationUsers),
	}
}

func drawParameters(groups, dimension int, seed uint64) [][]float64 {
	if groups == len(paperParameters) && dimension == len(paperParameters[0]) {
		return paperParameters
	}
	family := rng.NewFamily(seed, "data: true parameters")
	out := make([][]float64, groups)
	for g := range out {
		s := family.Stream(0, g)
		out[g] = make([]float64, dimension)
		for i := range out[g] {
			out[g][i] = drawnSpread * s.Normal()
		}
	}
	return out
}

// population is clients as they are drawn, each from the seed and its number alone.
type population struct {
	config.Data
	truth  [][]float64
	counts []int // clients, by group: the groups follow one another
	family rng.Family
}

func newPopulation(d config.Data, truth [][]float64, users int, seed uint64, purpose string) population {
	return population{d, truth, groupCounts(users, d.Shares, len(truth)), rng.NewFamily(seed, purpose)}
}

func (p *population) groupOf(client int) int {
	g := 0
	for ; client >= p.counts[g]; g++ {
		client -= p.counts[g]
	}
	return g
}

// all draws everybody.
func (p population) all(users int) []Client {
	dimension := len(p.truth[0])
	clients := make([]Client, users)
	// One block for all: neighbours in a round are then near in memory too.
	x := make([]float64, users*p.Samples*dimension)
	y := make([]float64, users*p.Samples)
	for c := range clients {
		rows := Rows{X: x[:p.Samples*dimension], Y: y[:p.Samples], Features: dimension}
		x, y = x[len(rows.X):], y[len(rows.Y):]
		clients[c] = Client{Rows: rows, Group: p.groupOf(c)}
		p.draw(rows, c, clients[c].Group)
	}
	return clients
}

// draw fills a client's rows.
func (p *population) draw(rows Rows, client, group int) {
	var s rng.Stream
	s.Key(&p.family, 0, client)
	for i := range rows.Y {
		var dot float64
		for j, theta := range p.truth[group] {
			v := draw(&s, p.X)
			rows.X[i*rows.Features+j] = v
			dot += theta * v
		}
		if len(p.Shift) > 0 {
			dot += p.Shift[group]
		}
		rows.Y[i] = dot + draw(&s, p.Noise)
	}
}

func draw(s *rng.Stream, d config.Distribution) float64 {
	if d.Kind == "normal" {
		return d.Mean + d.SD*s.Normal()
	}
	return d.Low + (d.High-d.Low)*s.Float64()
}

// groupCounts gives every group its share of the clients, to the nearest whole
// client (largest remainder, ties to the lowest group).
func groupCounts(users int, shares []float64, groups int) []int {
	counts := make([]int, groups)
	rest := make([]float64, groups)
	left := users
	for g := range counts {
		share := 1 / float64(groups)
		if len(shares) > 0 {
			share = shares[g]
		}
		exact := share * float64(users)
		counts[g] = int(exact + 1e-9)
		rest[g] = exact - float64(counts[g])
		left -= counts[g]
	}
	for ; left > 0; left-- {
		best := 0
		for g := range rest {
			if rest[g] > rest[best] {
				best = g
			}
		}
		counts[best]++
		rest[best]--
	}
	return counts
}
