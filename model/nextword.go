package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// nextWord is the mean over a row's places of the cross entropy of the word that comes
// next. The last place has none.
type nextWord[F Float] struct {
	places int
	ones   []F // as many as words
}

func newNextWord[F Float](places, vocabulary int) nextWord[F] {
	o := nextWord[F]{places, make([]F, vocabulary)}
	for i := range o.ones {
		o.ones[i] = 1
	}
	return o
}

func (nextWord[F]) labelled() bool { return false }

// targets is how many a row has: its words.
func (o nextWord[F]) targets(int) int { return o.places }

func (o nextWord[F]) check(outputs int) error {
	if o.places < 2 || outputs != o.places*len(o.ones) {
		return fmt.Errorf("next words of %d places need a score for every word at each, the network has %d outputs", o.places, outputs)
	}
	return nil
}

func (o nextWord[F]) loss(out []F, _ int, row, d []F) float64 {
	n := len(o.ones)
	var sum float64
	share := 1 / float64(o.places-1)
	for t := range o.places - 1 {
		sum += nextWordAt(out[t*n:(t+1)*n], d[t*n:(t+1)*n], int(row[t+1]), share, o.ones)
	}
	clear(d[(o.places-1)*n:])
	return sum * share
}

// safeScore is how far scores may lie from 0 for sums of their exponentials to stay far
// from the ends of single precision.
const safeScore = 30

// leastSum and mostSum are e^-30 and e^30, each a little nearer to 1: between them sums were
// rounded by no more than that.
const leastSum, mostSum = 1e-13, 1e13

// nextWordAt is the cross entropy at one place; d becomes its slopes times share. Ones are
// as many as there are words.
func nextWordAt[F Float](scores, d []F, word int, share float64, ones []F) float64 {
	right := float64(scores[word])
	kernel.Exp(d, scores)
	sum := kernel.Dot(d, ones)
	// The largest score is only looked for where the sum does not already say that it is safe:
	// it lies between the sum's logarithm less that of the words, and the sum's.
	if !(sum >= leastSum*float64(len(scores)) && sum <= mostSum) {
		if top := largest(scores); top < -safeScore || top > safeScore {
			for i, v := range scores {
				d[i] = v - top
			}
			right = float64(d[word])
			kernel.Exp(d, d)
			sum = kernel.Dot(d, ones)
		}
	}
	kernel.Scale(d, F(share/sum), d)
	d[word] -= F(share)
	return math.Log(sum) - right
}

// largest is of values, four at a time; where one is no number it may be any of them.
func largest[F Float](values []F) F {
	a := values[0]
	b, c, d := a, a, a
	i := 0
	for ; i+4 <= len(values); i += 4 {
		four := values[i : i+4 : i+4]
		if four[0] > a {
			a = four[0]
		}
		if four[1] > b {
			b = four[1]
		}
		if four[2] > c {
			c = four[2]
		}
		if four[3] > d {
			d = four[3]
		}
	}
	for _, v := range values[i:] {
		if v > a {
			a = v
		}
	}
	return max(a, b, c, d)
}
