package contacts

import (
	"cmp"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/internal/pool"
)

// circle is one activity of a day: groups of people, each in a ring in which neighbours meet.
type circle struct {
	kind   Kind
	half   int      // how many neighbours on either side one may meet
	spend  stream   // which share of the time that two are both there they spend together
	groups []uint32 // a group's first visitor, and the end
	member []uint32 // by visitor, in the order of the ring
	start  []int32  // by visitor, in seconds of the day
	length []int32
	place  []uint32 // by group; groups in which nobody is have no meaning here
	// again says that the visitors are those of another circle at the same place: one visit
	// of theirs, in which they also meet these neighbours.
	again bool
}

// place is where people go; homes are none.
type place struct {
	kind  Kind
	tract uint32
}

// outing is the generator's state while it sends people out.
type outing struct {
	*persons
	seed    uint64
	pool    *pool.Pool
	places  []place
	circles []circle
}

func (o *outing) stream(number int) stream { return streamOf(o.seed, number) }

// nowhere is the group of those who stay away.
const nowhere = -1

// groupAll asks for the group of everybody.
func (o *outing) groupAll(groupOf func(i int) int) []int32 {
	groups := make([]int32, o.count())
	const chunk = 1 << 12
	o.pool.Each((len(groups)+chunk-1)/chunk, func(_, c int) {
		for i := c * chunk; i < min(len(groups), (c+1)*chunk); i++ {
			groups[i] = int32(groupOf(i))
		}
	})
	return groups
}

// lineUp puts the members of every group next to each other, in the order of their hashes.
func (o *outing) lineUp(groupOf []int32, groups int, order stream) (offsets, member []uint32) {
	offsets = make([]uint32, groups+1)
	for _, g := range groupOf {
		if g != nowhere {
			offsets[g+1]++
		}
	}
	for g := range groups {
		offsets[g+1] += offsets[g]
	}
	member = make([]uint32, offsets[groups])
	next := slices.Clone(offsets)
	for i, g := range groupOf {
		if g != nowhere {
			member[next[g]] = uint32(i)
			next[g]++
		}
	}
	type place struct {
		hash   uint64
		member uint32
	}
	rooms := make([][]place, o.pool.Workers())
	o.pool.Each(groups, func(worker, g int) {
		all := member[offsets[g]:offsets[g+1]]
		if len(all) < 2 {
			return
		}
		room := rooms[worker][:0]
		for _, i := range all {
			room = append(room, place{order.hash(uint64(i)), i})
		}
		slices.SortFunc(room, func(a, b place) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.member, b.member)) })
		for k, r := range room {
			all[k] = r.member
		}
		rooms[worker] = room
	})
	return offsets, member
}

// hours is when people come and how long they stay.
type hours struct {
	number    int // of the first of two streams
	low, high float64
	from, to  float64
}

// send adds a circle. placeOf names a group's place by a number of its own, from 0 to
// places, and that place's tract; groups may share one.
func (o *outing) send(kind Kind, half, number int, groupOf []int32, groups int, h hours, placeOf func(group int, first uint32) (name int, tract uint32), places int) *circle {
	offsets, member := o.lineUp(groupOf, groups, o.stream(number))
	c := circle{kind: kind, half: half, spend: o.stream(number + 1), groups: offsets, member: member,
		start: make([]int32, len(member)), length: make([]int32, len(member)), place: make([]uint32, groups)}
	come, stay := o.stream(h.number), o.stream(h.number+1)
	o.pool.Each(groups, func(_, g int) {
		for v := offsets[g]; v < offsets[g+1]; v++ {
			c.start[v] = come.seconds(h.low, h.high, uint64(member[v]))
			c.length[v] = stay.seconds(h.from, h.to, uint64(member[v]))
		}
	})
	known := make([]uint32, places) // by name; 0: not yet, otherwise one more than the place
	for g := range groups {
		if offsets[g] == offsets[g+1] {
			continue
		}
		name, tract := placeOf(g, member[offsets[g]])
		if known[name] == 0 {
			o.places = append(o.places, place{kind, tract})
			known[name] = uint32(len(o.places))
		}
		c.place[g] = known[name] - 1
	}
	o.circles = append(o.circles, c)
	return &o.circles[len(o.circles)-1]
}

const (
	classSize     = 25
	collegeServes = 20_000 // persons
	workBlock     = 60     // workers of a tract whose workplaces have one mean size
)

// toSchool sends children to classes by tract and age, and the whole school together for an
// hour.
func (o *outing) toSchool() {
	goes := o.stream(2)
	const ages = 18
	year := o.groupAll(func(i int) int {
		u := goes.share(uint64(i))
		if a := o.age[i]; a >= ages || a >= 5 && u >= .95 || a < 5 && u >= .5 {
			return nowhere
		}
		return int(o.tract[i])*ages + int(o.age[i])
	})
	offsets, member := o.lineUp(year, o.tracts()*ages, o.stream(32))
	class := slices.Repeat([]int32{nowhere}, o.count())
	classes := 0
	for g := range len(offsets) - 1 {
		all := member[offsets[g]:offsets[g+1]]
		if len(all) == 0 {
			continue
		}
		n := max(1, int(math.RoundToEven(float64(len(all))/classSize)))
		for k, i := range all {
			class[i] = int32(classes + k*n/len(all))
		}
		classes += n
	}
	h := hours{30, 7.8, 8.2, 6, 7}
	o.send(School, 12, 34, class, classes, h, func(_ int, first uint32) (int, uint32) {
		return int(o.tract[first]), o.tract[first]
	}, o.tracts())
	// The place is known from the classes: a school is where its classes are.
	school := make([]uint32, o.tracts())
	classCircle := &o.circles[len(o.circles)-1]
	for g, at := range classCircle.place {
		if classCircle.groups[g] < classCircle.groups[g+1] {
			school[o.places[at].tract] = at
		}
	}
	for i, g := range class {
		if g != nowhere {
			class[i] = int32(o.tract[i])
		}
	}
	before := len(o.places)
	together := o.send(School, 14, 36, class, o.tracts(), h, func(g int, _ uint32) (int, uint32) { return g, uint32(g) }, o.tracts())
	o.places = o.places[:before]
	for g := range together.place {
		together.place[g] = school[g]
	}
	together.again = true
	for v := range together.start {
		together.start[v] += 3 * 3600
		together.length[v] = 3600
	}
}

// toWork sends young people to a college and others to work, where a tract's workers are
// cut into workplaces.
func (o *outing) toWork() {
	studies, which := o.stream(3), o.stream(42)
	student := func(i int) bool { return o.age[i] >= 18 && o.age[i] <= 22 && studies.share(uint64(i)) < .35 }
	const most = 1000 // colleges of a region
	college := o.groupAll(func(i int) int {
		if !student(i) {
			return nowhere
		}
		r := o.region[i]
		number := int(which.share(uint64(i)) * max(1, float64(o.countOf[r])/collegeServes))
		return int(r)*most + min(most-1, number)
	})
	o.send(College, 15, 44, college, regions*most, hours{40, 8, 12, 3, 6}, func(g int, first uint32) (int, uint32) { return g, o.tract[first] }, regions*most)

	works, where, near, far := o.stream(4), o.stream(5), o.stream(6), o.stream(7)
	to := o.groupAll(func(i int) int {
		id, share := uint64(i), .72
		if o.age[i] >= 65 {
			share = .15
		}
		if o.age[i] < 18 || student(i) || works.share(id) >= share {
			return nowhere
		}
		switch u := where.share(id); {
		case u < .45:
			return int(o.tract[i])
		case u < .45+.45:
			return o.tractOf(int(o.region[i]), near, id)
		}
		return far.below(o.tracts(), id)
	})
	offsets, member := o.lineUp(to, o.tracts(), o.stream(8))
	size, begins := o.stream(9), o.stream(10)
	workplaces := 0
	var tracts []uint32 // by workplace
	for t := range len(offsets) - 1 {
		mean, here := size.of(uint64(t)), begins.of(uint64(t))
		for k, i := range member[offsets[t]:offsets[t+1]] {
			if k == 0 || here.share(uint64(k)) < 1/math.Exp(2+float64(2.4*mean.share(uint64(k/workBlock)))) {
				tracts = append(tracts, uint32(t))
				workplaces++
			}
			to[i] = int32(workplaces - 1)
		}
	}
	o.send(Work, 18, 52, to, workplaces, hours{50, 7, 11, 6, 9}, func(g int, _ uint32) (int, uint32) { return g, tracts[g] }, workplaces)
}

// tractOf is one of a region's tracts.
func (o *outing) tractOf(region int, s stream, id uint64) int {
	first := o.tractsOf[region]
	return first + s.below(o.tractsOf[region+1]-first, id)
}

// toPlaces sends people to one of a tract's few places of a kind, mostly of their own; who
// comes to a shop in one hour does not meet who comes in another.
func (o *outing) toPlaces(kind Kind, half, number int, share float64, youngest uint8, perTract int, h hours) {
	goes, away, tract, which := o.stream(number), o.stream(number+3), o.stream(number+4), o.stream(number+5)
	come := o.stream(h.number)
	const slots = 32 // at least the hours of a day
	byHour := kind != Religion
	groups, width := o.tracts()*perTract, 1
	if byHour {
		groups, width = groups*slots, slots
	}
	groupOf := o.groupAll(func(i int) int {
		id := uint64(i)
		if o.age[i] < youngest || goes.share(id) >= share {
			return nowhere
		}
		t := int(o.tract[i])
		if away.share(id) < .3 {
			t = o.tractOf(int(o.region[i]), tract, id)
		}
		at := t*perTract + which.below(perTract, id)
		if byHour {
			at = at*slots + int(come.seconds(h.low, h.high, id)/3600)
		}
		return at
	})
	o.send(kind, half, number+6, groupOf, groups, h, func(g int, _ uint32) (int, uint32) {
		return g / width, uint32(g / width / perTract)
	}, o.tracts()*perTract)
}

// goOut sends everybody out for the day.
func (o *outing) goOut() {
	o.toSchool()
	o.toWork()
	o.toPlaces(Shopping, 22, 60, .5, 12, 2, hours{61, 9, 20, .4, 1.2})
	o.toPlaces(Other, 14, 70, .55, 5, 3, hours{71, 9, 21, .5, 2})
	o.toPlaces(Religion, 18, 80, .12, 0, 1, hours{81, 9, 10, 1, 1.5})
}
