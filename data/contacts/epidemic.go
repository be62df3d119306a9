package contacts

import "math"

// The epidemic's law, calibrated in the study of the pandemic.
const (
	infectiousness = .0033 // an hour's hazard of meeting somebody infectious, at work
	asymptomatic   = .4    // of all cases: shown as susceptible for ever
	milder         = .6    // infectivity of those
	latentDays     = 3.0
	sickDays       = 3.0 // beyond the least
	leastSick      = 2
	seeds          = .008 // exposed on the six days up to day 0
	imports        = 2e-5 // exposed from elsewhere, a day
	never          = math.MaxInt16
)

var (
	settingHazard = [...]float64{Home: .7, Work: 1, Shopping: .6, Other: 1, School: 1.3, College: 1.3, Religion: 1.5}
	regionHazard  = [regions]float64{1, 1.08, .9, 1.12, .86, 1.16, .8, 1.1, .95, 1.2}
	regionSeeds   = [regions]float64{1, .6, 1.5, .5, 1.8, .4, 2, .7, 1.2, .4}
)

// susceptibility is by age.
func susceptibility(age uint8) float64 {
	switch {
	case age < 18:
		return .5
	case age < 65:
		return 1
	}
	return 1.4
}

// course is how an infection goes, or would go, in every person.
type course struct {
	exposed     []int16 // day; never: not at all
	latent      []uint8 // days until infectious
	sick        []uint8 // days infectious
	symptomless []bool
}

// begins and ends are the first day of being infectious and the first after it.
func (c *course) begins(i int) int { return int(c.exposed[i]) + int(c.latent[i]) }
func (c *course) ends(i int) int   { return c.begins(i) + int(c.sick[i]) }

const personsAtOnce = 1 << 12

// everyone does a job for chunks of all persons.
func (p *Population) everyone(job func(worker, from, to int)) {
	n := p.count()
	p.pool.Each((n+personsAtOnce-1)/personsAtOnce, func(worker, c int) {
		job(worker, c*personsAtOnce, min(n, (c+1)*personsAtOnce))
	})
}

// spread runs the epidemic over the graph's contacts, day by day.
func (p *Population) spread(seed uint64) {
	n := p.count()
	c := &course{make([]int16, n), make([]uint8, n), make([]uint8, n), make([]bool, n)}
	quiet, latent, sick := streamOf(seed, 101), streamOf(seed, 103), streamOf(seed, 104)
	seeded, since := streamOf(seed, 105), streamOf(seed, 106)
	p.everyone(func(_, from, to int) {
		for i := from; i < to; i++ {
			id := uint64(i)
			c.symptomless[i] = quiet.share(id) < asymptomatic
			c.latent[i] = uint8(min(math.MaxUint8, latent.days(latentDays, id)))
			c.sick[i] = uint8(min(math.MaxUint8, leastSick+sick.days(sickDays, id)))
			c.exposed[i] = never
			if seeded.share(id) < seeds*regionSeeds[p.region[i]] {
				c.exposed[i] = -int16(since.below(6, id))
			}
		}
	})
	fresh := make([][]uint32, p.pool.Workers()) // exposed today, by worker
	for day := range knownDays + targetDays {
		meets, comes := streamOf(seed, 200+day), streamOf(seed, 400+day)
		p.everyone(func(worker, from, to int) {
			for i := from; i < to; i++ {
				switch {
				case c.exposed[i] == never:
					if comes.share(uint64(i)) < imports {
						fresh[worker] = append(fresh[worker], uint32(i))
					}
				case c.begins(i) <= day && day < c.ends(i):
					fresh[worker] = p.infect(c, i, p.infectivity(c, seed, i), meets, fresh[worker])
				}
			}
		})
		for worker, all := range fresh {
			for _, i := range all {
				c.exposed[i] = int16(day + 1)
			}
			fresh[worker] = all[:0]
		}
	}
	p.show(c)
}

// infectivity is exponential: a few infect many.
func (p *Population) infectivity(c *course, seed uint64, i int) float64 {
	v := -math.Log(streamOf(seed, 102).share(uint64(i)))
	if c.symptomless[i] {
		v *= milder
	}
	return v
}

// infect adds whom person i infects today.
func (p *Population) infect(c *course, i int, infectivity float64, meets stream, fresh []uint32) []uint32 {
	others, hows := p.graph.Contacts(i)
	meets = meets.of(uint64(i))
	for k, j := range others {
		if c.exposed[j] != never {
			continue
		}
		how := hows[k]
		hours := float64(how.Seconds()) / 3600 * settingHazard[how.Kind()]
		hazard := infectiousness * regionHazard[p.region[j]] * hours * susceptibility(p.age[j]) * infectivity
		u := meets.of(uint64(j)).share(uint64(how))
		if u < hazard && u < -math.Expm1(-hazard) { // the first is cheap and seldom true
			fresh = append(fresh, j)
		}
	}
	return fresh
}

// show writes down what is seen of the epidemic: known days, and who is to be foretold.
func (p *Population) show(c *course) {
	g, n := p.graph, p.count()
	g.Days = knownDays
	g.Infected, g.Recovered, g.Target = make([]uint64, n), make([]uint64, n), make([]uint64, (n+63)/64)
	p.everyone(func(_, from, to int) { // a chunk is of whole words of Target
		for i := from; i < to; i++ {
			if c.exposed[i] == never || c.symptomless[i] {
				continue
			}
			begins, ends := c.begins(i), c.ends(i)
			g.Infected[i] = daysBetween(begins, ends)
			g.Recovered[i] = daysBetween(ends, knownDays)
			if begins >= knownDays && begins < knownDays+targetDays {
				g.Target[i/64] |= 1 << (i % 64)
			}
		}
	})
}

// daysBetween are the known days from the first to before the last, as bits.
func daysBetween(first, last int) uint64 {
	first, last = max(0, first), min(knownDays, last)
	if first >= last {
		return 0
	}
	return (1<<(last-first) - 1) << first
}
