package contacts

import "math"

// shortest is the shortest contact that counts, in seconds.
const shortest = 120

// meet is every contact of a group, in an order that never changes.
func (c *circle) meet(group int, each func(a, b uint32, start, seconds int32)) {
	from, to := int(c.groups[group]), int(c.groups[group+1])
	n := to - from
	member, start, length := c.member[from:to], c.start[from:to], c.length[from:to]
	for i, a := range member {
		neighbours := min(c.half, (n-1)/2)
		if n%2 == 0 && n/2 <= c.half && i < n/2 { // whoever sits opposite is met once
			neighbours = n / 2
		}
		spend := c.spend.of(uint64(a))
		for k := i + 1; k <= i+neighbours; k++ {
			j := k
			if j >= n {
				j -= n
			}
			begin, end := max(start[i], start[j]), min(start[i]+length[i], start[j]+length[j])
			if end-begin < shortest {
				continue
			}
			u := spend.share(uint64(member[j]))
			if seconds := int32(float64(end-begin) * (u * math.Sqrt(u))); seconds >= shortest {
				each(a, member[j], begin, seconds)
			}
		}
	}
}

// meetAtHome is every contact of a household: all pairs.
func (p *Population) meetAtHome(household int, each func(a, b uint32, start, seconds int32)) {
	from, to := p.first[household], p.first[household+1]
	for a := from; a < to; a++ {
		spend := p.atHome.of(uint64(a))
		for b := a + 1; b < to; b++ {
			each(a, b, 0, spend.seconds(8, 14, uint64(b)))
		}
	}
}

// homesAtOnce is how many households are one job of a worker.
const homesAtOnce = 1 << 10

// meetAll is every contact of the day, on all workers at once.
func (p *Population) meetAll(each func(a, b uint32, how How, at scene)) {
	homes := p.Households()
	p.pool.Each((homes+homesAtOnce-1)/homesAtOnce, func(_, chunk int) {
		for h := chunk * homesAtOnce; h < min(homes, (chunk+1)*homesAtOnce); h++ {
			p.meetAtHome(h, func(a, b uint32, start, seconds int32) {
				each(a, b, howOf(Home, int(seconds)), sceneOf(int(start), uint32(h)))
			})
		}
	})
	for i := range p.circles {
		c := &p.circles[i]
		p.pool.Each(len(c.groups)-1, func(_, g int) {
			at := uint32(homes) + c.place[g]
			c.meet(g, func(a, b uint32, start, seconds int32) {
				each(a, b, howOf(c.kind, int(seconds)), sceneOf(int(start), at))
			})
		})
	}
}
