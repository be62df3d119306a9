package bytepair

import (
	"fmt"
	"maps"
	"slices"
)

// Train finds the pairs of a vocabulary in text: again and again the most frequent pair of
// words within pieces, the one of lower numbers among equals. Whoever uses such a
// vocabulary tells of the text that it comes from. It ends early where no pair is left that
// comes twice.
func Train(text string, vocabulary int) (*Encoding, error) {
	if vocabulary < Bytes || vocabulary > Most {
		return nil, fmt.Errorf("a vocabulary of %d; allowed: %d to %d", vocabulary, Bytes, Most)
	}
	t := newTraining(text)
	e := newEncoding()
	for len(e.words) < vocabulary {
		pair, ok := t.mostFrequent()
		if !ok {
			break
		}
		e.add(pair)
		t.join(pair, int32(len(e.words)-1))
	}
	return e, nil
}

// training is a text as pieces, each once, with how often it comes.
type training struct {
	pieces [][]int32
	counts []int
	pairs  map[[2]int32]int              // how often each comes
	where  map[[2]int32]map[int]struct{} // pieces that have, or had, it
}

func newTraining(text string) *training {
	seen := map[string]int{}
	for p := range pieces(text) {
		seen[p]++
	}
	t := &training{pairs: map[[2]int32]int{}, where: map[[2]int32]map[int]struct{}{}}
	for i, p := range slices.Sorted(maps.Keys(seen)) {
		words := make([]int32, len(p))
		for k := range len(p) {
			words[k] = numberOf[p[k]]
		}
		t.pieces, t.counts = append(t.pieces, words), append(t.counts, seen[p])
		t.count(i, 1)
	}
	return t
}

// count adds a piece's pairs, or takes them off.
func (t *training) count(piece, sign int) {
	words := t.pieces[piece]
	for i := range max(0, len(words)-1) {
		pair := [2]int32{words[i], words[i+1]}
		t.pairs[pair] += sign * t.counts[piece]
		if sign > 0 {
			if t.where[pair] == nil {
				t.where[pair] = map[int]struct{}{}
			}
			t.where[pair][piece] = struct{}{}
		}
	}
}

func (t *training) mostFrequent() (best [2]int32, ok bool) {
	most := 1
	for pair, n := range t.pairs {
		if n > most || n == most && ok && slices.Compare(pair[:], best[:]) < 0 {
			best, most, ok = pair, n, true
		}
	}
	return best, ok
}

// join puts a word for a pair in all pieces.
func (t *training) join(pair [2]int32, word int32) {
	for piece := range t.where[pair] {
		t.count(piece, -1)
		t.pieces[piece] = join(t.pieces[piece], pair, word)
		t.count(piece, 1)
	}
	delete(t.pairs, pair)
	delete(t.where, pair)
}
