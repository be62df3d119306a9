package contacts

import (
	"bytes"
	"fmt"
	"math/bits"
	"sync/atomic"
)

// join gives persons their households, and households their residences.
func (r *reading) join() error {
	g, n := r.graph, len(r.person)
	t := r.tables[householdFile]
	households := inOrderOf(r.household, t, "hid", &r.faults)
	r.homes = make([]uint32, len(r.household))
	missing := 0
	for h, row := range r.household {
		r.homes[h] = unknown
		if !r.homesTold {
			continue
		}
		if r.homes[h] = r.residences.place(row.row.residence); r.homes[h] == unknown && missing < mostFaults {
			missing++
			r.faults.add(t.name, row.line, "residence %d of household %d is not in %s", row.row.residence, row.number, r.tables[residenceFile].name)
		}
	}
	g.ID, g.Household, g.Size = r.persons.sorted, make([]uint32, n), make([]uint8, n)
	g.Age, g.Sex = make([]uint8, n), make([]uint8, n)
	lost := 0
	for i, row := range r.person {
		h := households.place(row.row.household)
		if h == unknown {
			if lost++; lost <= mostFaults {
				r.faults.add(r.tables[personFile].name, row.line, "household %d of person %d is not in %s", row.row.household, row.number, t.name)
			}
			continue
		}
		g.Household[i], g.Size[i] = h, r.household[h].row.size
		g.Age[i], g.Sex[i] = row.row.age, row.row.sex
	}
	r.person = nil
	return nil
}

// mostStay bounds a visit: a week, in seconds.
const mostStay = 7 * daySeconds

// readAssignments adds up what persons did, and for how long they were away.
func (r *reading) readAssignments() error {
	t := r.tables[assignmentFile]
	g, n := r.graph, r.graph.Persons()
	did, out := make([]uint32, n), make([]uint64, n)
	err := t.read(r.workers, &r.faults, func(l *line) {
		pid, ok1 := l.integer(t, 0, 0, mostNumber)
		lid, ok2 := l.integer(t, 1, 0, mostNumber)
		kind, ok3 := l.integer(t, 2, int64(Home), int64(Religion))
		seconds, ok4 := l.integer(t, 3, 0, mostStay)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return
		}
		i, home := r.persons.place(pid), r.residences.place(lid)
		switch {
		case i == unknown:
			l.unknownPerson(r, pid)
			return
		case home == unknown && r.locations.place(lid) == unknown:
			l.fault("place %d is neither in %s nor in %s", lid, r.tables[residenceFile].name, r.tables[locationFile].name)
			return
		}
		if Kind(kind) != Home {
			atomic.OrUint32(&did[i], uint32(Kind(kind).did()))
			atomic.AddUint64(&out[i], uint64(seconds))
		} else if !r.homesTold && home != unknown {
			lower(&r.homes[g.Household[i]], home)
		}
	}, nil)
	if err != nil {
		return err
	}
	g.Did, g.Out = make([]Did, n), make([]uint16, n)
	for i := range n {
		g.Did[i], g.Out[i] = Did(did[i]), ticksOut(int(min(daySeconds, out[i])))
	}
	return nil
}

// lower sets a place to the lowest that anybody names, whoever comes first.
func lower(at *uint32, place uint32) {
	for {
		old := atomic.LoadUint32(at)
		if old <= place || atomic.CompareAndSwapUint32(at, old, place) {
			return
		}
	}
}

func (l *line) unknownPerson(r *reading, pid int64) {
	l.fault("person %d is not in %s", pid, r.tables[personFile].name)
}

// settle gives persons the regions of their residences.
func (r *reading) settle() error {
	g := r.graph
	g.Region, g.ByStays = make([]uint8, g.Persons()), !r.homesTold
	missing := 0
	for i, h := range g.Household {
		if r.homes[h] == unknown {
			if missing++; missing <= mostFaults {
				r.faults.add(r.tables[householdFile].name, r.household[h].line,
					"where household %d lives is not known: give the table a column rlid, or person %d a stay of activity_type 1 in %s", r.household[h].number, g.ID[i], r.tables[assignmentFile].name)
			}
			continue
		}
		g.Region[i] = r.regions[r.homes[h]]
	}
	r.household = nil
	return nil
}

// readNetwork fills in the contacts: it reads the file twice, so that nothing is stored
// twice. What is wrong is found the first time.
func (r *reading) readNetwork() error {
	t := r.tables[networkFile]
	passes := 0
	err := r.graph.fillRows(r.pool, r.scenes, func(add both) error {
		faults := &r.faults
		if passes++; passes > 1 {
			if len(r.faults.List) > 0 {
				return nil // there will be no graph
			}
			faults = &Faults{} // the file may have been changed meanwhile
		}
		err := t.read(r.workers, faults, func(l *line) {
			one, ok1 := l.integer(t, 0, 0, mostNumber)
			two, ok2 := l.integer(t, 1, 0, mostNumber)
			seconds, ok3 := l.integer(t, 2, 1, longest)
			kind1, ok4 := l.integer(t, 3, int64(Home), int64(Religion))
			kind2, ok5 := l.integer(t, 4, int64(Home), int64(Religion))
			if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
				return
			}
			a, b := r.persons.place(one), r.persons.place(two)
			at, ok6 := l.scene(r, t)
			switch {
			case a == unknown:
				l.unknownPerson(r, one)
			case b == unknown:
				l.unknownPerson(r, two)
			case a == b:
				l.fault("person %d meets itself; remove the row", one)
			case ok6:
				add(a, b, howOf(Kind(kind1), int(seconds)), howOf(Kind(kind2), int(seconds)), at)
			}
		}, nil)
		if err == nil && passes > 1 && len(faults.List) > 0 {
			err = errMoved
		}
		return err
	})
	if len(r.faults.List) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	return nil
}

// scene is when and where a line's contact took place, where that is asked for.
func (l *line) scene(r *reading, t *table) (scene, bool) {
	if !r.scenes {
		return scene{}, true
	}
	lid, ok1 := l.integer(t, 5, 0, mostNumber)
	start, ok2 := l.integer(t, 6, 0, mostStay)
	if !ok1 || !ok2 {
		return scene{}, false
	}
	place := r.residences.place(lid)
	if place == unknown {
		if place = r.locations.place(lid); place != unknown {
			place += uint32(len(r.regions))
		}
	}
	if place == unknown {
		l.fault("place %d is neither in %s nor in %s", lid, r.tables[residenceFile].name, r.tables[locationFile].name)
		return scene{}, false
	}
	return sceneOf(int(start), place), true
}

// mostDays is how many days a graph's masks hold.
const mostDays = 64

// readTraining reads everybody's state on every known day.
func (r *reading) readTraining() error {
	t := r.tables[trainingFile]
	g, n := r.graph, r.graph.Persons()
	g.Infected, g.Recovered = make([]uint64, n), make([]uint64, n)
	seen := make([]uint64, n)
	err := t.read(r.workers, &r.faults, func(l *line) {
		pid, ok1 := l.integer(t, 0, 0, mostNumber)
		day, ok2 := l.integer(t, 1, 0, mostDays-1)
		state := bytes.TrimSpace(l.cells[2])
		if len(state) != 1 || state[0] != 'S' && state[0] != 'I' && state[0] != 'R' {
			l.fault("state is %q; allowed: S, I, R", shortened(state))
			return
		}
		if !ok1 || !ok2 {
			return
		}
		i, bit := r.persons.place(pid), uint64(1)<<day
		if i == unknown {
			l.unknownPerson(r, pid)
			return
		}
		if atomic.OrUint64(&seen[i], bit)&bit != 0 {
			l.fault("person %d has two rows for day %d; remove one of them", pid, day)
		}
		switch state[0] {
		case 'I':
			atomic.OrUint64(&g.Infected[i], bit)
		case 'R':
			atomic.OrUint64(&g.Recovered[i], bit)
		}
	}, nil)
	if err != nil || r.faults.count(t.name) > 0 {
		return err
	}
	all := uint64(0)
	for _, s := range seen {
		all |= s
	}
	g.Days = bits.Len64(all)
	r.checkStates(t, seen)
	return nil
}

// checkStates: everybody has a state on every day, and nobody goes back.
func (r *reading) checkStates(t *table, seen []uint64) {
	g := r.graph
	all := ^uint64(0) >> (mostDays - g.Days)
	wrong := 0
	for i, s := range seen {
		infected, recovered := g.Infected[i], g.Recovered[i]
		what := ""
		switch {
		case s != all:
			what = fmt.Sprintf("has no state on day %d; there are %d days", bits.TrailingZeros64(^s), g.Days)
		case !lasts(recovered, g.Days):
			what = "is recovered on a day and not on a later one; allowed: S, then I, then R"
		case !lasts(infected|recovered, g.Days):
			what = "is infected on a day and susceptible on a later one; allowed: S, then I, then R"
		default:
			continue
		}
		if wrong++; wrong > mostFaults {
			r.faults.Left = append(r.faults.Left, t.name)
			return
		}
		r.faults.add(t.name, 0, "person %d %s", g.ID[i], what)
	}
	if g.Days == 0 {
		r.faults.add(t.name, 0, "no days")
	}
}

// lasts says whether days, once they begin, go on until the last one.
func lasts(mask uint64, days int) bool {
	return mask == 0 || mask == ^uint64(0)>>(mostDays-days)>>bits.TrailingZeros64(mask)<<bits.TrailingZeros64(mask)
}

// readTarget reads who is infected in the days to be foretold, if there is the file.
func (r *reading) readTarget() error {
	t := r.tables[targetFile]
	if t == nil {
		return nil
	}
	g, n := r.graph, r.graph.Persons()
	target, seen := make([]uint64, (n+63)/64), make([]uint64, (n+63)/64)
	err := t.read(r.workers, &r.faults, func(l *line) {
		pid, ok1 := l.integer(t, 0, 0, mostNumber)
		infected, ok2 := l.integer(t, 1, 0, 1)
		if !ok1 || !ok2 {
			return
		}
		i := r.persons.place(pid)
		if i == unknown {
			l.unknownPerson(r, pid)
			return
		}
		bit := uint64(1) << (i % 64)
		if atomic.OrUint64(&seen[i/64], bit)&bit != 0 {
			l.fault("person %d has two rows; remove one of them", pid)
		}
		if infected == 1 {
			atomic.OrUint64(&target[i/64], bit)
		}
	}, nil)
	if err != nil || r.faults.count(t.name) > 0 {
		return err
	}
	missing := 0
	for i := range n {
		if seen[i/64]>>(i%64)&1 == 0 && missing < mostFaults {
			missing++
			r.faults.add(t.name, 0, "person %d is missing", g.ID[i])
		}
	}
	g.Target = target
	return nil
}
