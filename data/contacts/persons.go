package contacts

import "math"

// regions is how many the generator makes and RegionAt knows.
const regions = 10

// tractPersons is about how many live in a tract, which has a school, two shops, three other
// places and a place of worship.
const tractPersons = 2500

var regionShares = [regions]float64{.34, .19, .13, .09, .07, .06, .045, .035, .025, .015}

// persons are who lives where.
type persons struct {
	age, sex  []uint8
	region    []uint8          // by person
	tract     []uint32         // by person
	household []uint32         // by person
	first     []uint32         // by household: its first person, and the end
	tractsOf  [regions + 1]int // first tract of a region, and the end
	countOf   [regions]int     // persons of a region
}

func (p *persons) count() int  { return len(p.age) }
func (p *persons) tracts() int { return p.tractsOf[regions] }

// drawPersons draws households with replacement until there are enough persons; the last
// household is whole.
func drawPersons(n int, seed uint64, from *Households) *persons {
	p := &persons{
		age: make([]uint8, 0, n+maxHousehold), sex: make([]uint8, 0, n+maxHousehold),
		household: make([]uint32, 0, n+maxHousehold), first: make([]uint32, 0, n/2),
	}
	pick := streamOf(seed, 1)
	for p.count() < n {
		h := len(p.first)
		k := pick.below(len(from.Offsets)-1, uint64(h))
		p.first = append(p.first, uint32(p.count()))
		begin, end := from.Offsets[k], from.Offsets[k+1]
		p.age, p.sex = append(p.age, from.Age[begin:end]...), append(p.sex, from.Sex[begin:end]...)
		for range end - begin {
			p.household = append(p.household, uint32(h))
		}
	}
	p.first = append(p.first, uint32(p.count()))
	p.settle()
	return p
}

// settle gives every household a region, in order, and every region's household a tract.
func (p *persons) settle() {
	households := len(p.first) - 1
	p.region, p.tract = make([]uint8, p.count()), make([]uint32, p.count())
	total := 0.0
	for _, s := range regionShares {
		total += s
	}
	from, sum := 0, 0.0
	for r, share := range regionShares {
		sum += share
		to := from
		for to < households && (float64(to)+.5)/float64(households) <= sum/total {
			to++
		}
		if r == regions-1 {
			to = households
		}
		p.countOf[r] = int(p.first[to]) - int(p.first[from])
		tracts := max(1, int(math.RoundToEven(float64(p.countOf[r])/tractPersons)))
		for h := from; h < to; h++ {
			tract := uint32(p.tractsOf[r] + (h-from)*tracts/(to-from))
			for i := p.first[h]; i < p.first[h+1]; i++ {
				p.region[i], p.tract[i] = uint8(r), tract
			}
		}
		p.tractsOf[r+1] = p.tractsOf[r] + tracts
		from = to
	}
}
