package fair

import (
	"cmp"
	"slices"
)

// sample is rows summed up by independent unit: a cluster, or a single row. The
// bootstrap draws units, and every figure is a function of sums by group, so
// units with the same sums need not be told apart: they are one kind. Kinds are
// in an order of their own, so that no figure depends on the order of rows or on
// how clusters are numbered.
type sample struct {
	rows, units   int
	groups, width int

	copies []int     // units of each kind
	first  []int32   // kind k has the cells first[k] to first[k+1]
	group  []int32   // the group of each cell
	sums   []float64 // width sums of each cell
}

// newSample sums rows up. cluster may be nil; add adds a row to a cell's sums.
func newSample(groupOf []int32, groups int, cluster []int, width int, add func(row int, sums []float64)) *sample {
	s := &sample{rows: len(groupOf), groups: groups, width: width}
	cells := cellsByUnit(groupOf, cluster, width, add)
	s.units = len(cells.first) - 1

	order := make([]int32, s.units)
	for u := range order {
		order[u] = int32(u)
	}
	slices.SortFunc(order, func(a, b int32) int { return cells.compare(cells, a, b) })

	s.first = append(s.first, 0)
	for i, u := range order {
		if i > 0 && cells.compare(cells, order[i-1], u) == 0 {
			s.copies[len(s.copies)-1]++
			continue
		}
		s.copies = append(s.copies, 1)
		from, to := cells.first[u], cells.first[u+1]
		s.group = append(s.group, cells.group[from:to]...)
		s.sums = append(s.sums, cells.sums[int(from)*width:int(to)*width]...)
		s.first = append(s.first, int32(len(s.group)))
	}
	return s
}

// cells are sums by unit and group, units one after the other.
type cells struct {
	width int
	first []int32
	group []int32
	sums  []float64
}

func cellsByUnit(groupOf []int32, cluster []int, width int, add func(row int, sums []float64)) cells {
	c := cells{width: width}
	order := make([]int32, len(groupOf))
	for i := range order {
		order[i] = int32(i)
	}
	if cluster != nil {
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(cluster[a], cluster[b]), cmp.Compare(groupOf[a], groupOf[b]), cmp.Compare(a, b))
		})
	}
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

// compare orders two units by their groups, then by their sums.
func (c *cells) unit(u int32) ([]int32, []float64) {
	from, to := c.first[u], c.first[u+1]
	return c.group[from:to], c.sums[int(from)*c.width : int(to)*c.width]
}
