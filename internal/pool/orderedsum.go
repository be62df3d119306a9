package pool

import "sync"

// OrderedSum is a sum of vectors in lanes, which are added in their order, whoever is done
// first. A lane that is complete is added to the total as soon as all before
// it are, and its memory serves another: a step then needs little more than a lane a
// worker.
type OrderedSum[F float32 | float64] struct {
	mu    sync.Mutex
	n     int
	add   func(part, total []F)
	parts [][]F // by lane; nil: nothing was added
	done  []bool
	next  int   // the first lane that is not in total
	total []F   // nil: of no lane
	spare [][]F // cleared
}

// NewOrderedSum is an empty sum of n coordinates in so many lanes; add adds one vector to
// another.
func NewOrderedSum[F float32 | float64](n, count int, add func(part, total []F)) *OrderedSum[F] {
	return &OrderedSum[F]{n: n, add: add, parts: make([][]F, count), done: make([]bool, count)}
}

// Part is a lane's memory. A lane is of one goroutine.
func (l *OrderedSum[F]) Part(lane int) []F {
	if l.parts[lane] == nil {
		l.parts[lane] = l.take()
	}
	return l.parts[lane]
}

// take is cleared memory.
func (l *OrderedSum[F]) take() []F {
	if len(l.parts) > 1 {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	if k := len(l.spare); k > 0 {
		last := l.spare[k-1]
		l.spare = l.spare[:k-1]
		return last
	}
	return make([]F, l.n)
}

// Complete says that nothing more will be added to a lane.
func (l *OrderedSum[F]) Complete(lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[lane] = true
	for l.next < len(l.parts) && l.done[l.next] {
		l.fold(l.next)
		l.next++
	}
}

// fold adds a lane to the total and frees its memory.
func (l *OrderedSum[F]) fold(lane int) {
	part := l.parts[lane]
	if part == nil {
		return
	}
	l.parts[lane] = nil
	if l.total == nil { // the first lane is the total so far
		l.total = part
		return
	}
	for from := 0; from < l.n; from += foldLength {
		to := min(from+foldLength, l.n)
		l.add(part[from:to], l.total[from:to])
		clear(part[from:to])
	}
	l.spare = append(l.spare, part)
}

// foldLength is how many values are added, and then cleared while they are in the cache.
const foldLength = 1 << 10

// free keeps memory, if it is some, for the next lane.
func (l *OrderedSum[F]) free(part []F) {
	if part != nil {
		clear(part)
		l.spare = append(l.spare, part)
	}
}

// Total is all lanes' sum, in memory of the sum's own, which the caller may change.
// Nothing may be added until Reset.
func (l *OrderedSum[F]) Total() []F {
	for ; l.next < len(l.parts); l.next++ {
		l.fold(l.next)
	}
	if l.total == nil {
		l.total = l.take()
	}
	return l.total
}

// Reset forgets all that was added.
func (l *OrderedSum[F]) Reset() {
	for i, part := range l.parts {
		l.parts[i] = nil
		l.free(part)
	}
	l.free(l.total)
	l.total = nil
	clear(l.done)
	l.next = 0
}

// Len is the number of coordinates.
func (l *OrderedSum[F]) Len() int { return l.n }
