package pool

import (
	"sync"
	"time"
)

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
	made  int   // vectors that there are
	room  int   // for how many there is room, before who is ahead waits; 0: any number
}

// NewOrderedSum is an empty sum of n coordinates in so many lanes; add adds one vector to
// another.
func NewOrderedSum[F float32 | float64](n, count int, add func(part, total []F)) *OrderedSum[F] {
	return &OrderedSum[F]{n: n, add: add, parts: make([][]F, count), done: make([]bool, count)}
}

// InTurn says that so many goroutines take lanes in turn; 0: they take them otherwise. In
// turn, there is room for a lane of each and for the total: who is ahead, since another was
// held up, waits instead of taking memory for one more lane.
func (l *OrderedSum[F]) InTurn(workers int) {
	if l.room = 0; workers > 0 {
		l.room = workers + 1
	}
}

// Part is a lane's memory. A lane is of one goroutine.
func (l *OrderedSum[F]) Part(lane int) []F {
	if l.parts[lane] == nil {
		l.parts[lane] = l.take(lane)
	}
	return l.parts[lane]
}

// A lane that waits for memory looks for it after every nap. More than there is room for is
// made after many of them, several times what a busy machine holds a goroutine up for: so
// that a sum whose other lanes were given up ends as well.
const (
	nap      = 200 * time.Microsecond
	manyNaps = 8000
)

// take is cleared memory for a lane.
func (l *OrderedSum[F]) take(lane int) []F {
	if len(l.parts) > 1 {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	for range manyNaps {
		if l.room == 0 || l.made < l.room || len(l.spare) > 0 || lane <= l.next {
			break
		}
		l.mu.Unlock()
		time.Sleep(nap)
		l.mu.Lock()
	}
	if k := len(l.spare); k > 0 {
		last := l.spare[k-1]
		l.spare = l.spare[:k-1]
		return last
	}
	l.made++
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
		l.total = l.take(l.next)
	}
	return l.total
}

// Reset forgets all that was added, and memory for more lanes than there is room for.
func (l *OrderedSum[F]) Reset() {
	for i, part := range l.parts {
		l.parts[i] = nil
		l.free(part)
	}
	l.free(l.total)
	l.total = nil
	clear(l.done)
	l.next = 0
	for l.room > 0 && l.made > l.room {
		l.made--
		l.spare[l.made] = nil
		l.spare = l.spare[:l.made]
	}
}

// Len is the number of coordinates.
func (l *OrderedSum[F]) Len() int { return l.n }
