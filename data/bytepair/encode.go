package bytepair

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// knownPieces bounds what an encoding remembers of earlier text.
const knownPieces = 1 << 16

// Encode appends the numbers of a text's words to dst.
func (e *Encoding) Encode(dst []int32, text string) []int32 {
	for piece := range pieces(text) {
		words, ok := e.known[piece]
		if !ok {
			words = e.merge(piece)
			if len(e.known) == knownPieces {
				clear(e.known)
			}
			e.known[strings.Clone(piece)] = words
		}
		dst = append(dst, words...)
	}
	return dst
}

// merge joins a piece's pairs, those of the lowest rank first.
func (e *Encoding) merge(piece string) []int32 {
	words := make([]int32, len(piece))
	for i := range len(piece) {
		words[i] = numberOf[piece[i]]
	}
	for len(words) > 1 {
		best := len(e.merged)
		for i := range len(words) - 1 {
			if rank, ok := e.pairs[[2]int32{words[i], words[i+1]}]; ok && rank < best {
				best = rank
			}
		}
		if best == len(e.merged) {
			break
		}
		words = join(words, e.merged[best], int32(Bytes+best))
	}
	return words
}

// numberOf is the number of every byte.
var numberOf = func() (numbers [Bytes]int32) {
	for n, b := range byteOrder {
		numbers[b] = int32(n)
	}
	return numbers
}()

// join puts one word for every place where a pair stands, from the left, in place.
func join(words []int32, pair [2]int32, word int32) []int32 {
	out := words[:0]
	for i := 0; i < len(words); i++ {
		if i+1 < len(words) && words[i] == pair[0] && words[i+1] == pair[1] {
			out = append(out, word)
			i++
		} else {
			out = append(out, words[i])
		}
	}
	return out
}

// endings are what GPT-2 cuts off behind an apostrophe.
var endings = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// pieces cuts text as GPT-2 does, before pairs are joined: letters, digits and other
// characters by themselves, each with the space before them; further white space alone.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := piece(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// piece is the length of the first.
func piece(text string) int {
	for _, end := range endings {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	first, _ := utf8.DecodeRuneInString(text[start:])
	if start < len(text) && !unicode.IsSpace(first) {
		return start + run(text[start:], class(first))
	}
	n := run(text, spaces)
	if n == len(text) {
		return n
	}
	// The last space belongs to what comes behind it, if there are others before.
	_, last := utf8.DecodeLastRuneInString(text[:n])
	if n > last {
		return n - last
	}
	return n
}

// Classes of characters.
const (
	letters = iota
	digits
	spaces
	others
)

func class(r rune) int {
	switch {
	case unicode.IsLetter(r):
		return letters
	case unicode.IsNumber(r):
		return digits
	case unicode.IsSpace(r):
		return spaces
	}
	return others
}

// run is the length of the first characters of one class.
func run(text string, of int) int {
	for i, r := range text {
		if class(r) != of {
			return i
		}
	}
	return len(text)
}
