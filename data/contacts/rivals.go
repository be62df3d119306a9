package contacts

import (
	"math"
	"math/bits"
	"runtime"

	"github.com/coterie-fl/coterie/internal/pool"
)

// Rival is a score that nobody trained: whoever trains must beat it. Higher is likelier to
// fall ill; people who were not susceptible throughout the window cannot, and score -1, but
// not under the first, Prevalence, which tells nobody apart.
type Rival struct {
	Name   string
	Scores []float32 // by person
}

// Prevalence is the name of the score that is the same for everybody: its average precision
// is the share of people who fall ill.
const Prevalence = "prevalence"

// Rivals are the untrained scores for the week after day end, from what is known of the
// window before it. Like a prediction they read everybody's contacts, and no label.
func (g *Graph) Rivals(end int) []Rival {
	regions := g.sirByRegion(end)
	n := g.Persons()
	all := []Rival{
		{Prevalence, make([]float32, n)},
		{"SIR by region", make([]float32, n)},
		{"contacts", make([]float32, n)},
		{"time with the infected", make([]float32, n)},
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	defer workers.Close()
	workers.Each(n, func(_, i int) {
		if susceptible, _ := g.Label(i, end); !susceptible {
			for _, r := range all[1:] {
				r.Scores[i] = -1
			}
			return
		}
		all[1].Scores[i] = regions[g.Region[i]]
		all[2].Scores[i] = float32(g.Offsets[i+1] - g.Offsets[i])
		all[3].Scores[i] = g.exposure(i, end)
	})
	return all
}

// fading are the weights of an infection by its lag: a day counts 1/e of one three days
// later.
var fading = func() (of [Window]float64) {
	for lag := range of {
		of[lag] = math.Exp(-float64(lag) / 3)
	}
	return of
}()

// exposure is the time, in days, that person i spends with people who were infected, the
// sooner ago the more.
func (g *Graph) exposure(i, end int) float32 {
	sum := 0.0
	others, hows := g.Contacts(i)
	for at, j := range others {
		weight := 0.0
		for infected := windowOf(g.Infected[j], end); infected != 0; infected &= infected - 1 {
			weight += fading[Window-1-bits.TrailingZeros64(infected)]
		}
		sum += weight * float64(hows[at].Seconds())
	}
	return float32(sum / daySeconds)
}

// sirByRegion is, for every region, the chance that a susceptible person falls ill within a
// week: a discrete SIR model, whose two rates are those of the last week of the window.
func (g *Graph) sirByRegion(end int) []float32 {
	type counts struct{ begin, now, ill, left, fell float64 } // susceptible a week ago and now, days of illness, recoveries, infections
	var regions [256]counts
	var sick, people [256]float64
	const week = 1<<Ahead - 1
	for i, region := range g.Region {
		infected, recovered := windowOf(g.Infected[i], end), windowOf(g.Recovered[i], end)
		c := &regions[region]
		people[region]++
		c.ill += float64(bits.OnesCount64(infected >> (Window - 1 - Ahead) & week)) // a day before it shows
		before := (infected | recovered) & (today >> Ahead)
		after := (infected | recovered) & today
		switch {
		case after == 0:
			c.begin++
			c.now++
		case before == 0:
			c.begin++
			c.fell++
		}
		if infected&today != 0 {
			sick[region]++
		}
		if recovered&today != 0 && recovered&(today>>Ahead) == 0 {
			c.left++
		}
	}
	chances := make([]float32, len(regions))
	for region, c := range regions {
		if c.now == 0 || c.ill == 0 {
			continue
		}
		n := people[region]
		catch := c.fell / (c.ill * (c.begin + c.now) / 2 / n) // infections a day of illness, if all were susceptible
		heal := min(1, c.left/c.ill)
		s, i := c.now, sick[region]
		for range Ahead {
			falls := min(s, catch*s*i/n)
			s, i = s-falls, i+falls-heal*i
		}
		chances[region] = float32(1 - s/c.now)
	}
	return chances
}
