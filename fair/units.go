package fair

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// cells are sums of rows by unit and group: unit u has the cells first[u] to
// first[u+1], at most one of each group, with width sums in each.
type cells struct {
	width int
	first []int32
	group []int32
	sums  []float64
}

// unit gives the groups and the sums of a unit's cells.
func (c *cells) unit(u int32) ([]int32, []float64) {
	from, to := c.first[u], c.first[u+1]
	return c.group[from:to], c.sums[int(from)*c.width : int(to)*c.width]
}

// compare orders two units by their groups, then by their sums.
func (c *cells) compare(a, b int32) int {
	groupsA, sumsA := c.unit(a)
	groupsB, sumsB := c.unit(b)
	if order := slices.Compare(groupsA, groupsB); order != 0 {
		return order
	}
	return slices.Compare(sumsA, sumsB)
}

// sumCells sums rows up. Without clusters every row is a unit; add adds a row to
// the sums of its cell.
func sumCells(groupOf []int32, cluster []int, width int, add func(row int, sums []float64)) cells {
	order := counting(len(groupOf))
	if cluster != nil {
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(cluster[a], cluster[b]), cmp.Compare(groupOf[a], groupOf[b]), cmp.Compare(a, b))
		})
	}
	c := cells{width: width}
	zeros := make([]float64, width)
	for i, row := range order {
		newUnit := i == 0 || cluster == nil || cluster[row] != cluster[order[i-1]]
		if newUnit {
			c.first = append(c.first, int32(len(c.group)))
		}
		if newUnit || groupOf[row] != groupOf[order[i-1]] {
			c.group = append(c.group, groupOf[row])
			c.sums = append(c.sums, zeros...)
		}
		add(int(row), c.sums[len(c.sums)-width:])
	}
	c.first = append(c.first, int32(len(c.group)))
	return c
}

func counting(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i)
	}
	return v
}

// sample is the units of a population, ready to be resampled. All figures are
// functions of sums by group, so units with the same sums are not told apart:
// they are one kind, with so many copies. The kinds are sorted, so that no figure
// depends on the order of the rows or on the numbers of the clusters.
type sample struct {
	rows, units, groups int
	kinds               cells
	copies              []int32
	kindOf              []int32 // the kind of each unit, kinds in order
}

func newSample(groupOf []int32, groups int, cluster []int, width int, add func(row int, sums []float64)) *sample {
	all := sumCells(groupOf, cluster, width, add)
	s := &sample{rows: len(groupOf), units: len(all.first) - 1, groups: groups}
	s.kinds = cells{width: width, first: []int32{0}}
	s.kindOf = make([]int32, s.units)

	order := counting(s.units)
	slices.SortFunc(order, all.compare)
	for i, u := range order {
		if i == 0 || all.compare(order[i-1], u) != 0 {
			group, sums := all.unit(u)
			s.kinds.group = append(s.kinds.group, group...)
			s.kinds.sums = append(s.kinds.sums, sums...)
			s.kinds.first = append(s.kinds.first, int32(len(s.kinds.group)))
			s.copies = append(s.copies, 0)
		}
		s.copies[len(s.copies)-1]++
		s.kindOf[i] = int32(len(s.copies) - 1)
	}
	return s
}

// columns are the cells of a sample ordered by group, each sum in a column of its
// own: so the sums of a resample are dot products with the kinds' numbers of draws.
type columns struct {
	first   []int   // group g has the cells first[g] to first[g+1]
	kind    []int32 // the kind of each cell
	values  [][]float64
	weights []float64
}

func (s *sample) columns() *columns {
	count := len(s.kinds.group)
	c := &columns{first: make([]int, s.groups+1), kind: make([]int32, count), weights: make([]float64, count)}
	for _, g := range s.kinds.group {
		c.first[g+1]++
	}
	for g := range s.groups {
		c.first[g+1] += c.first[g]
	}
	for range s.kinds.width {
		c.values = append(c.values, make([]float64, count))
	}
	next := slices.Clone(c.first)
	for kind := range s.copies {
		group, sums := s.kinds.unit(int32(kind))
		for i, g := range group {
			at := next[g]
			next[g]++
			c.kind[at] = int32(kind)
			for j, column := range c.values {
				column[at] = sums[i*s.kinds.width+j]
			}
		}
	}
	return c
}

// totals sums the cells up by group, those of each kind as often as times says.
func (c *columns) totals(times []int32, out []float64) {
	for cell, kind := range c.kind {
		c.weights[cell] = float64(times[kind])
	}
	for g := range len(c.first) - 1 {
		from, to := c.first[g], c.first[g+1]
		for i, column := range c.values {
			out[g*len(c.values)+i] = floats.Dot(c.weights[from:to], column[from:to])
		}
	}
}

// support counts the units that have rows of a sort: in each group, outside each
// group, and anywhere.
type support struct {
	within, outside []int
	all             int
}

// support counts; has says whether a cell with these sums has rows of the sort.
func (s *sample) support(has func(sums []float64) bool) support {
	c := support{within: make([]int, s.groups), outside: make([]int, s.groups)}
	for kind, copies := range s.copies {
		n := int(copies)
		group, sums := s.kinds.unit(int32(kind))
		last, found := int32(0), 0
		for i, g := range group {
			if has(sums[i*s.kinds.width:][:s.kinds.width]) {
				c.within[g] += n
				last, found = g, found+1
			}
		}
		if found > 0 {
			c.all += n
		}
		if found == 1 {
			c.outside[last] -= n // this unit has nothing outside its group
		}
	}
	for g := range c.outside {
		c.outside[g] += c.all
	}
	return c
}
