package data

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// glove are GloVe's vectors of words (Pennington et al. 2014), in single precision.
type glove struct {
	place   map[string]int // of a word
	vectors []float32      // one after another
	size    int            // of a vector
}

// Bounds of a file of vectors: memory is taken as the data arrive, and for no more.
const (
	maxGloveWords = 1 << 20
	maxGloveSize  = 1000
	maxGloveText  = 1 << 26
)

// readGlove reads vectors: "GLV1", then as 32-bit numbers, little endian, how many words
// there are, the values of a vector, and the bytes of all words; then the words, each with
// a line break behind it, and the vectors as 16-bit floats.
func readGlove(name string, r io.Reader) (*glove, error) {
	in := bufio.NewReader(r)
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) != "GLV1" {
		return nil, fmt.Errorf("%s: no vectors of words: the file begins with %q; wanted GLV1 and three numbers (%v)", name, head[:4], err)
	}
	words, size, length := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[12:])
	if words < 1 || words > maxGloveWords || size < 1 || size > maxGloveSize || length > maxGloveText {
		return nil, fmt.Errorf("%s: %d words with vectors of %d values, in %d bytes; allowed: up to %d, %d and %d", name, words, size, length, maxGloveWords, maxGloveSize, maxGloveText)
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(length)))
	if err != nil {
		return nil, fmt.Errorf("%s: the words: %w", name, err)
	}
	list := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) != int(length) || len(list) != int(words) {
		return nil, fmt.Errorf("%s: %d words in %d bytes, the header says %d in %d", name, len(list), len(text), words, length)
	}
	g := &glove{place: map[string]int{}, size: int(size)}
	for i, word := range list {
		if _, twice := g.place[word]; twice || word == "" {
			return nil, fmt.Errorf("%s: word %d, %q, is empty or there twice", name, i, word)
		}
		g.place[word] = i
	}
	row := make([]byte, 2*size)
	for i := range list {
		if _, err := io.ReadFull(in, row); err != nil {
			return nil, fmt.Errorf("%s: the vector of %q: %w", name, list[i], err)
		}
		for j := 0; j < len(row); j += 2 {
			v := fromHalf(binary.LittleEndian.Uint16(row[j:]))
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("%s: value %d of %q is %v; allowed: finite", name, j/2, list[i], v)
			}
			g.vectors = append(g.vectors, v)
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("%s: the file goes on behind the last vector (%v)", name, err)
	}
	return g, nil
}

// fromHalf is a 16-bit float.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, int(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0:
		v := float32(fraction) * 0x1p-24
		if sign != 0 {
			return -v
		}
		return v
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | uint32(exponent-15+127)<<23 | fraction<<13)
}

// vector is that of a word.
func (g *glove) vector(word int) []float32 { return g.vectors[word*g.size : (word+1)*g.size] }

// projection takes vectors to fewer values: less the mean, along the directions in which
// the vectors differ most.
type projection struct {
	mean       []float64
	directions [][]float64
	captured   float64 // share of the variance
}

// listedFrom says that the list of words was drawn from these texts: they have most of it.
// Of GloVe's 400,000 words no collection of news has more than a tenth.
func (g *glove) listedFrom(parts ...[]newsText) bool {
	used := map[int]bool{}
	for _, texts := range parts {
		for _, t := range texts {
			for word := range knownWords(t.words, g.place) {
				used[word] = true
			}
		}
	}
	return 2*len(used) > len(g.place)
}

// project finds the projection to so many values, from all words alike: it tells of texts
// only if the list does.
func (g *glove) project(values int) (*projection, error) {
	n := len(g.place)
	if values > g.size || n < 2 {
		return nil, fmt.Errorf("vectors of %d values, of %d words, cannot be projected to %d values", g.size, n, values)
	}
	p := &projection{mean: make([]float64, g.size)}
	for i := range n {
		for j, v := range g.vector(i) {
			p.mean[j] += float64(v) / float64(n)
		}
	}
	covariance := mat.NewSymDense(g.size, nil)
	sums, centred := covariance.RawSymmetric().Data, make([]float64, g.size)
	for i := range n {
		for j, v := range g.vector(i) {
			centred[j] = float64(v) - p.mean[j]
		}
		for j, a := range centred {
			row := sums[j*g.size : (j+1)*g.size]
			for k := j; k < len(row); k++ {
				row[k] += a * centred[k]
			}
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(covariance, true) {
		return nil, fmt.Errorf("the eigenvectors of %d by %d covariances were not found", g.size, g.size)
	}
	var all mat.Dense
	eigen.VectorsTo(&all)
	ascending, total := eigen.Values(nil), 0.0
	for _, v := range ascending {
		total += v
	}
	for k := range values {
		direction := mat.Col(nil, g.size-1-k, &all)
		// An eigenvector has no sign of its own: the largest entry is to be positive.
		if largest := slices.MaxFunc(direction, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) }); largest < 0 {
			for j := range direction {
				direction[j] = -direction[j]
			}
		}
		p.directions = append(p.directions, direction)
		p.captured += ascending[g.size-1-k] / total
	}
	return p, nil
}

// apply appends a vector's projection.
func (p *projection) apply(dst []float64, vector []float32) []float64 {
	for _, direction := range p.directions {
		sum := 0.0
		for j, v := range vector {
			sum += (float64(v) - p.mean[j]) * direction[j]
		}
		dst = append(dst, sum)
	}
	return dst
}
