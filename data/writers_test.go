package data

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// madeUpWriters are n writers of 1 or 2 pictures of 2 by 2.
func madeUpWriters(t testing.TB, n int) *WriterImages {
	t.Helper()
	im := &Images{Height: 2, Width: 2}
	var writers []Writer
	for i := range n {
		w := Writer{Name: string(rune('a' + i))}
		for range 1 + i%2 {
			w.Index = append(w.Index, im.Len())
			im.Labels = append(im.Labels, i%10)
			im.Pixels = append(im.Pixels, 1, 2, 3, byte(4+i))
		}
		writers = append(writers, w)
	}
	w, err := NewWriterImages(im, 10, writers)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestNewWriterImagesRefuses(t *testing.T) {
	for name, change := range map[string]func(*Images, []Writer){
		"a pixel less":          func(im *Images, _ []Writer) { im.Pixels = im.Pixels[1:] },
		"no height":             func(im *Images, _ []Writer) { im.Height = 0 },
		"a huge height":         func(im *Images, _ []Writer) { im.Height = math.MaxInt },
		"a label out of range":  func(im *Images, _ []Writer) { im.Labels[0] = 10 },
		"a negative label":      func(im *Images, _ []Writer) { im.Labels[0] = -1 },
		"a name twice":          func(_ *Images, w []Writer) { w[1].Name = w[0].Name },
		"a writer of nothing":   func(_ *Images, w []Writer) { w[0].Index = nil },
		"a picture of two":      func(_ *Images, w []Writer) { w[0].Index = append(w[0].Index, w[1].Index[0]) },
		"a picture of none":     func(_ *Images, w []Writer) { w[1].Index = w[1].Index[:1] },
		"a picture beyond":      func(_ *Images, w []Writer) { w[0].Index[0] = 99 },
		"a picture before":      func(_ *Images, w []Writer) { w[0].Index[0] = -1 },
		"the same picture here": func(_ *Images, w []Writer) { w[1].Index[1] = w[1].Index[0] },
	} {
		w := madeUpWriters(t, 4)
		change(w.Images, w.Writers)
		if _, err := NewWriterImages(w.Images, 10, w.Writers); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := NewWriterImages(&Images{Height: 2, Width: 2}, 10, nil); err == nil {
		t.Error("nobody was accepted")
	}
}

// rotated as numpy.rot90 turns [[1,2,3],[4,5,6],[7,8,9]].
func TestRotateLeft(t *testing.T) {
	src, dst := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, make([]byte, 9)
	turn(dst, src, 3, 1)
	if !bytes.Equal(dst, []byte{3, 6, 9, 2, 5, 8, 1, 4, 7}) {
		t.Errorf("turned to %v", dst)
	}
	back := bytes.Clone(src)
	for range 4 {
		turn(dst, back, 3, 1)
		back, dst = dst, back
	}
	if !bytes.Equal(back, src) {
		t.Errorf("after a full turn %v", back)
	}
}

func TestWriterFederation(t *testing.T) {
	w := madeUpWriters(t, 20)
	before := bytes.Clone(w.Images.Pixels)
	coins, err := drawRotated(5, 20, 0.5)
	if err != nil || countTrue(coins) == 0 || countTrue(coins) == 20 {
		t.Fatal(coins, err)
	}
	o := WriterOptions{Seed: 5, HeldOut: 0.1, Rotated: 0.5, InkLow: true}
	f, err := w.Federation(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Train) != 18 || len(f.Validation) != 2 || f.Features != 4 {
		t.Errorf("%d and %d clients, %d features", len(f.Train), len(f.Validation), f.Features)
	}
	if !bytes.Equal(before, w.Images.Pixels) {
		t.Error("the loaded pictures were changed")
	}
	turned, seen := 0, map[int]bool{}
	for _, c := range slices.Concat(f.Train, f.Validation) {
		turned += c.Group
		for _, i := range c.Index {
			seen[i] = true
			plain := before[4*i : 4*i+4]
			want := []byte{255 - 1, 255 - 2, 255 - 3, 255 - plain[3]}
			if c.Group == 1 { // [[1,2],[3,x]] becomes [[2,x],[1,3]]
				want = []byte{255 - 2, 255 - plain[3], 255 - 1, 255 - 3}
			}
			if got := c.Images.Pixels[4*i : 4*i+4]; !bytes.Equal(got, want) {
				t.Errorf("picture %d of group %d is %v, want %v", i, c.Group, got, want)
			}
		}
	}
	if turned != countTrue(coins) || len(seen) != w.Images.Len() {
		t.Errorf("%d of 20 writers were turned, %d of %d pictures are there", turned, len(seen), w.Images.Len())
	}
	// Nobody turned and nobody held out: the pictures themselves, uncopied.
	plain, err := w.Federation(WriterOptions{Seed: 5})
	if err != nil || len(plain.Train) != 20 || &plain.Train[0].Images.Pixels[0] != &w.Images.Pixels[0] {
		t.Error("a plain federation copies the pictures", err)
	}
	// 1-0.9 is a little less than 0.1: 2 of 20 must train all the same.
	if few, err := w.Federation(WriterOptions{HeldOut: 0.9}); err != nil || len(few.Train) != 2 {
		t.Error("a tenth of 20 writers is not 2", err)
	}
	for name, o := range map[string]WriterOptions{
		"all held out": {HeldOut: 1}, "NaN held out": {HeldOut: math.NaN()}, "-1 held out": {HeldOut: -1},
		"NaN rotated": {Rotated: math.NaN()}, "2 rotated": {Rotated: 2}, "nobody left": {HeldOut: 0.99},
	} {
		if _, err := w.Federation(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	flat, err := NewWriterImages(&Images{Height: 1, Width: 2, Pixels: []byte{1, 2}, Labels: []int{0}}, 1, []Writer{{"a", []int{0}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flat.Federation(WriterOptions{Rotated: 1}); err == nil {
		t.Error("a picture that is not square was turned")
	}
}

// falseAlarm is the rate at which each statistical look below fails by chance.
const falseAlarm = 1e-6

// unlikely tells whether a count of successes is in a tail of its binomial
// distribution that has at most the given probability, both tails together.
func unlikely(count, trials int, p, rate float64) bool {
	b := distuv.Binomial{N: float64(trials), P: p}
	return b.CDF(float64(count)) < rate/2 || 1-b.CDF(float64(count-1)) < rate/2
}

// coinFaults judges draws of n coins each: how many heads there are, and how
// their number spreads from draw to draw. The spread is compared with chi-square,
// which the sum of squared standardised binomials is near enough: their excess
// kurtosis is below 0.01 here.
func coinFaults(draws [][]bool, share float64) (rate, spread bool) {
	n, all, squares := len(draws[0]), 0, 0.0
	for _, d := range draws {
		heads := countTrue(d)
		all += heads
		z := (float64(heads) - float64(n)*share) / math.Sqrt(float64(n)*share*(1-share))
		squares += z * z
	}
	chi := distuv.ChiSquared{K: float64(len(draws))}
	rate = unlikely(all, n*len(draws), share, falseAlarm)
	spread = chi.CDF(squares) < falseAlarm/2 || chi.Survival(squares) < falseAlarm/2
	return rate, spread
}

func countTrue(list []bool) int {
	n := 0
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// Paper 000, appendix B.3: rot_c ~ Bernoulli(0.5), one coin a client.
func TestRotationIsAFairCoinPerWriter(t *testing.T) {
	const writers, seeds = 244, 500
	draw := func(of func(seed uint64) ([]bool, error)) [][]bool {
		out := make([][]bool, seeds)
		for s := range out {
			var err error
			if out[s], err = of(uint64(s)); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	for _, share := range []float64{0.5, 0.2} {
		rate, spread := coinFaults(draw(func(s uint64) ([]bool, error) { return drawRotated(s, writers, share) }), share)
		if rate || spread {
			t.Errorf("share %v: wrong rate %v, wrong spread %v", share, rate, spread)
		}
	}
	// Planted: a share that is off by 0.02, and one coin for all writers.
	if rate, _ := coinFaults(draw(func(s uint64) ([]bool, error) { return drawRotated(s, writers, 0.52) }), 0.5); !rate {
		t.Error("the test does not see a coin of 0.52")
	}
	if _, spread := coinFaults(draw(func(s uint64) ([]bool, error) {
		one, err := drawRotated(s, 1, 0.5)
		return slices.Repeat(one, writers), err
	}), 0.5); !spread {
		t.Error("the test does not see one coin for all")
	}
}

// splitFaults counts the clients that are held out too rarely or too often; over
// all of them together the false-alarm rate holds.
func splitFaults(seeds, n int, share float64, split func(seed uint64) []int) int {
	counts := make([]int, n)
	for s := range seeds {
		for _, i := range split(uint64(s)) {
			counts[i]++
		}
	}
	faults := 0
	for _, c := range counts {
		if unlikely(c, seeds, share, falseAlarm/float64(n)) {
			faults++
		}
	}
	return faults
}

func TestEveryWriterIsHeldOutAlikeOften(t *testing.T) {
	const n, seeds = 244, 2000
	held := func(seed uint64) []int {
		_, rest, err := splitKeyed(seed, "data: writers held out", n, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		return rest
	}
	if got := len(held(1)); got != 25 { // 219 train
		t.Fatalf("%d of 244 held out", got)
	}
	if faults := splitFaults(seeds, n, 25.0/n, held); faults != 0 {
		t.Errorf("%d writers are held out too rarely or too often", faults)
	}
	// Planted: the last writers always, and a shuffle that leaves the first alone.
	if splitFaults(seeds, n, 25.0/n, func(uint64) []int { return seq(n - 25)[:25] }) == 0 {
		t.Error("the test does not see a split without shuffle")
	}
	if splitFaults(seeds, n, 25.0/n, func(s uint64) []int {
		order := shuffled(s, "planted", n-1)
		rest := make([]int, 25)
		for i := range rest {
			rest[i] = order[i] + 1
		}
		return rest
	}) == 0 {
		t.Error("the test does not see that writer 0 is never held out")
	}
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
