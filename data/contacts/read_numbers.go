package contacts

import (
	"cmp"
	"slices"
)

// numbers finds a place by a number of the files. They are mostly dense, and then a table
// serves; otherwise they are searched for.
type numbers struct {
	sorted []int64
	low    int64
	dense  []uint32 // by number less low: one more than the place; nil: not dense
}

const unknown = ^uint32(0)

// denseUpTo is how many times more room a table may take than there are numbers.
const denseUpTo = 8

func newNumbers(sorted []int64) *numbers {
	n := &numbers{sorted: sorted}
	if len(sorted) == 0 {
		return n
	}
	n.low = sorted[0]
	if span := uint64(sorted[len(sorted)-1]) - uint64(n.low) + 1; span > 0 && span <= denseUpTo*uint64(len(sorted))+1024 {
		n.dense = make([]uint32, span)
		for i, v := range sorted {
			n.dense[v-n.low] = uint32(i) + 1
		}
	}
	return n
}

// place is where a number stands, or unknown.
func (n *numbers) place(v int64) uint32 {
	if n.dense != nil {
		if at := uint64(v - n.low); at < uint64(len(n.dense)) {
			return n.dense[at] - 1 // 0 becomes unknown
		}
		return unknown
	}
	if at, ok := slices.BinarySearch(n.sorted, v); ok {
		return uint32(at)
	}
	return unknown
}

// numbered is a row by its number and line.
type numbered[T any] struct {
	number int64
	line   int
	row    T
}

// inOrderOf sorts rows by their numbers, if they are not, and finds numbers that stand
// twice.
func inOrderOf[T any](rows []numbered[T], t *table, column string, f *Faults) *numbers {
	order := func(a, b numbered[T]) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.line, b.line))
	}
	if !slices.IsSortedFunc(rows, order) {
		slices.SortFunc(rows, order)
	}
	sorted := make([]int64, len(rows))
	twice := 0
	for i, r := range rows {
		sorted[i] = r.number
		if i > 0 && r.number == sorted[i-1] && twice < mostFaults {
			twice++
			f.add(t.name, r.line, "%s %d stands on line %d already; remove one of them", column, r.number, rows[i-1].line)
		}
	}
	return newNumbers(sorted)
}
