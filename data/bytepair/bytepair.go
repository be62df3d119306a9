package bytepair

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bytes is how many words any vocabulary has at least: one for every byte, so that no text
// is unknown.
const Bytes = 256

// Most is the largest vocabulary.
const Most = 1 << 20

// Encoding turns text into numbers of words and back. Words 0 to 255 are bytes in GPT-2's
// order; word 256+r is what the pair of rank r makes. It is not safe for concurrent use.
type Encoding struct {
	words  []string         // by number
	pairs  map[[2]int32]int // rank of a pair
	merged [][2]int32       // by rank
	known  map[string][]int32
}

// ErrTooFew means that a file of pairs is shorter than the vocabulary asked for.
var ErrTooFew = errors.New("too few pairs")

// printable are the bytes that GPT-2 writes as themselves, which come first; others are
// written as characters from 256 on.
func printable(b byte) bool {
	return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae
}

// byteOrder is GPT-2's order of bytes, and what each is written as in its files.
var byteOrder, written = func() (order [Bytes]byte, as [Bytes]rune) {
	n, others := 0, rune(Bytes)
	for b := range Bytes {
		if printable(byte(b)) {
			order[n], as[b] = byte(b), rune(b)
			n++
		}
	}
	for b := range Bytes {
		if !printable(byte(b)) {
			order[n], as[b] = byte(b), others
			n, others = n+1, others+1
		}
	}
	return order, as
}()

var byteOf = func() map[rune]byte {
	m := map[rune]byte{}
	for b, r := range written {
		m[r] = byte(b)
	}
	return m
}()

func newEncoding() *Encoding {
	e := &Encoding{pairs: map[[2]int32]int{}, known: map[string][]int32{}}
	for _, b := range byteOrder {
		e.words = append(e.words, string([]byte{b}))
	}
	return e
}

// Vocabulary is the number of words.
func (e *Encoding) Vocabulary() int { return len(e.words) }

func (e *Encoding) add(pair [2]int32) {
	e.pairs[pair] = len(e.merged)
	e.merged = append(e.merged, pair)
	e.words = append(e.words, e.words[pair[0]]+e.words[pair[1]])
}

// Read reads the first pairs of GPT-2's vocab.bpe, or of a file that Write wrote, as many
// as make a vocabulary of that size; 0: all.
func Read(r io.Reader, vocabulary int) (*Encoding, error) {
	if vocabulary != 0 && (vocabulary < Bytes || vocabulary > Most) {
		return nil, fmt.Errorf("a vocabulary of %d; allowed: 0 (all) or %d to %d", vocabulary, Bytes, Most)
	}
	e := newEncoding()
	numbers := map[string]int32{}
	for i, w := range e.words {
		numbers[w] = int32(i)
	}
	lines := bufio.NewScanner(r)
	for n := 1; (vocabulary == 0 || len(e.words) < vocabulary) && lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 && strings.HasPrefix(line, "#version") || line == "" {
			continue
		}
		pair, err := parsePair(line, numbers)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, twice := e.pairs[pair]; twice {
			return nil, fmt.Errorf("line %d: the pair %q stands there twice", n, line)
		}
		if len(e.words) == Most {
			return nil, fmt.Errorf("line %d: more than %d words", n, Most)
		}
		e.add(pair)
		numbers[e.words[len(e.words)-1]] = int32(len(e.words) - 1)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(e.words) < vocabulary {
		return nil, fmt.Errorf("%w: they make %d words, asked for are %d", ErrTooFew, len(e.words), vocabulary)
	}
	return e, nil
}

func parsePair(line string, numbers map[string]int32) (pair [2]int32, err error) {
	left, right, ok := strings.Cut(line, " ")
	if !ok {
		return pair, fmt.Errorf("%q is no pair of words with a space between", line)
	}
	for i, text := range []string{left, right} {
		var word []byte
		for _, r := range text {
			b, ok := byteOf[r]
			if !ok {
				return pair, fmt.Errorf("%q stands for no byte", r)
			}
			word = append(word, b)
		}
		n, ok := numbers[string(word)]
		if !ok {
			return pair, fmt.Errorf("%q is no word that earlier lines make", text)
		}
		pair[i] = n
	}
	return pair, nil
}

// Write writes the pairs, in GPT-2's format.
func (e *Encoding) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "#version: 0.2")
	for _, pair := range e.merged {
		for i, number := range pair {
			for _, b := range []byte(e.words[number]) {
				out.WriteRune(written[b])
			}
			out.WriteByte(" \n"[i])
		}
	}
	return out.Flush()
}

// Decode is the text of words; numbers that are no words have none.
func (e *Encoding) Decode(numbers []int32) string {
	var text strings.Builder
	for _, n := range numbers {
		if n >= 0 && int(n) < len(e.words) {
			text.WriteString(e.words[n])
		}
	}
	return text.String()
}
