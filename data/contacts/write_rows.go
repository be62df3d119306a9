package contacts

import "strconv"

// How much of a file is one job of a worker.
const (
	rowsAtOnce     = 1 << 14
	visitorsAtOnce = 1 << 11
)

// inChunks makes jobs of 0..n-1.
func inChunks(n, size int, rows func(text []byte, from, to int) []byte) []rowsJob {
	var jobs []rowsJob
	for from := 0; from < n; from += size {
		to := min(n, from+size)
		jobs = append(jobs, func(text []byte) []byte { return rows(text, from, to) })
	}
	return jobs
}

// row adds whole numbers as a line.
func row(text []byte, cells ...int64) []byte {
	for i, v := range cells {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, v, 10)
	}
	return append(text, '\n')
}

// hidOf and rlidOf are a household's numbers in the files; alidOf is a place's. Residences
// and other places share one row of numbers.
func hidOf(household int) int64             { return int64(household) + 1 }
func rlidOf(household int) int64            { return int64(household) + 1 }
func (p *Population) alidOf(k uint32) int64 { return int64(p.Households()) + int64(k) + 1 }

func (p *Population) personRows() []rowsJob {
	return inChunks(p.count(), rowsAtOnce, func(text []byte, from, to int) []byte {
		for i := from; i < to; i++ {
			h := p.household[i]
			text = row(text, hidOf(int(h)), pidOf(i), int64(i)-int64(p.first[h])+1, int64(p.age[i]), int64(p.sex[i]))
		}
		return text
	})
}

func (p *Population) householdRows() []rowsJob {
	return inChunks(p.Households(), rowsAtOnce, func(text []byte, from, to int) []byte {
		for h := from; h < to; h++ {
			text = row(text, hidOf(h), rlidOf(h), int64(p.first[h+1]-p.first[h]))
		}
		return text
	})
}

// point adds a position after a number.
func point(text []byte, id int64, longitude, latitude float64) []byte {
	text = append(strconv.AppendInt(text, id, 10), ',')
	text = append(strconv.AppendFloat(text, longitude, 'f', 5, 64), ',')
	return strconv.AppendFloat(text, latitude, 'f', 5, 64)
}

// residence is where a household lives.
func (p *Population) residence(h int) (longitude, latitude float64) {
	i := p.first[h]
	return p.tractBox(int(p.region[i]), int(p.tract[i])).at(streamOf(p.Seed, 90), uint64(h))
}

// location is where a place lies.
func (p *Population) location(k int) (longitude, latitude float64) {
	tract := int(p.places[k].tract)
	return p.tractBox(p.regionOf(tract), tract).at(streamOf(p.Seed, 91), uint64(k))
}

func (p *Population) residenceRows() []rowsJob {
	return inChunks(p.Households(), rowsAtOnce, func(text []byte, from, to int) []byte {
		for h := from; h < to; h++ {
			longitude, latitude := p.residence(h)
			text = append(point(text, rlidOf(h), longitude, latitude), '\n')
		}
		return text
	})
}

func (p *Population) locationRows() []rowsJob {
	return inChunks(len(p.places), rowsAtOnce, func(text []byte, from, to int) []byte {
		for k := from; k < to; k++ {
			at := p.places[k]
			longitude, latitude := p.location(k)
			text = point(text, p.alidOf(uint32(k)), longitude, latitude)
			for _, kind := range []Kind{Work, Shopping, School, Other, College, Religion} { // the file's order
				if kind == at.kind {
					text = append(text, ",1"...)
				} else {
					text = append(text, ",0"...)
				}
			}
			text = append(text, '\n')
		}
		return text
	})
}

// assignmentRows are everybody's time at home, then all visits.
func (p *Population) assignmentRows() []rowsJob {
	jobs := inChunks(p.count(), rowsAtOnce, func(text []byte, from, to int) []byte {
		for i := from; i < to; i++ {
			text = row(text, pidOf(i), rlidOf(int(p.household[i])), int64(Home), 0, daySeconds-int64(p.graph.Out[i])*Tick)
		}
		return text
	})
	for k := range p.circles {
		c := &p.circles[k]
		if c.again {
			continue
		}
		jobs = append(jobs, c.inChunks(func(text []byte, g int) []byte {
			for v := c.groups[g]; v < c.groups[g+1]; v++ {
				text = row(text, pidOf(int(c.member[v])), p.alidOf(c.place[g]), int64(c.kind), int64(c.start[v]), int64(c.length[v]))
			}
			return text
		})...)
	}
	return jobs
}

// inChunks makes jobs of a circle's groups.
func (c *circle) inChunks(rows func(text []byte, group int) []byte) []rowsJob {
	var jobs []rowsJob
	groups := len(c.groups) - 1
	for from := 0; from < groups; {
		to := from + 1
		for to < groups && c.groups[to+1]-c.groups[from] <= visitorsAtOnce {
			to++
		}
		first := from
		jobs = append(jobs, func(text []byte) []byte {
			for g := first; g < to; g++ {
				text = rows(text, g)
			}
			return text
		})
		from = to
	}
	return jobs
}

func (p *Population) networkRows() []rowsJob {
	jobs := inChunks(p.Households(), rowsAtOnce, func(text []byte, from, to int) []byte {
		for h := from; h < to; h++ {
			p.meetAtHome(h, func(a, b uint32, start, seconds int32) {
				text = row(text, pidOf(int(a)), pidOf(int(b)), rlidOf(h), int64(start), int64(seconds), int64(Home), int64(Home))
			})
		}
		return text
	})
	for k := range p.circles {
		c := &p.circles[k]
		jobs = append(jobs, c.inChunks(func(text []byte, g int) []byte {
			c.meet(g, func(a, b uint32, start, seconds int32) {
				text = row(text, pidOf(int(a)), pidOf(int(b)), p.alidOf(c.place[g]), int64(start), int64(seconds), int64(c.kind), int64(c.kind))
			})
			return text
		})...)
	}
	return jobs
}

func (p *Population) trainingRows() []rowsJob {
	var jobs []rowsJob
	for day := range p.graph.Days {
		jobs = append(jobs, inChunks(p.count(), rowsAtOnce, func(text []byte, from, to int) []byte {
			for i := from; i < to; i++ {
				state := byte('S')
				switch {
				case p.graph.Infected[i]>>day&1 == 1:
					state = 'I'
				case p.graph.Recovered[i]>>day&1 == 1:
					state = 'R'
				}
				text = row(text, int64(day), pidOf(i))
				text[len(text)-1] = ','
				text = append(text, state, '\n')
			}
			return text
		})...)
	}
	return jobs
}

func (p *Population) targetRows() []rowsJob {
	return inChunks(p.count(), rowsAtOnce, func(text []byte, from, to int) []byte {
		for i := from; i < to; i++ {
			infected := int64(0)
			if p.graph.Positive(i) {
				infected = 1
			}
			text = row(text, pidOf(i), infected)
		}
		return text
	})
}
