//go:build linux

package device

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

// seconds is how long what do starts takes, on the benchmark's own thread, which has the device's
// context.
func seconds(b *testing.B, n *Network, do func()) float64 {
	b.Helper()
	const rounds = 20
	do()
	n.d.wait()
	began := time.Now()
	for range rounds {
		do()
	}
	if err := n.d.wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began).Seconds() / rounds
}

// BenchmarkTexts times the kernels of a transformer of 2 blocks of 4 heads of 32 channels on 512
// texts of 64 of 2048 words, one by one, and of products every tile:
//
//	COTERIE_CUDA=1 go test ./internal/cuda/device -run - -bench Texts
func BenchmarkTexts(b *testing.B) {
	if !cudatest.OnDevice() {
		b.Skip("an emulation's times say nothing")
	}
	n := onTensors(b)
	const texts, places, rows, words = 512, 64, 512 * 64, 2048
	zeros := func(count int) uintptr {
		p := n.d.alloc(4 * count)
		n.d.clear(p, 4*count)
		return p
	}
	one, other, third, out, before := zeros(rows*words), zeros(rows*words), zeros(rows*words), zeros(rows*words), zeros(rows*words)
	laid := zeros(1 << 20)
	n.parts = zeros(64 << 20)
	n.parted.weights = put(n, slices.Repeat([]float32{1}, rows))
	timed := func(name string, flop float64, do func()) {
		each := seconds(b, n, do)
		fmt.Printf("%s: %.1f us, %.1f TFLOPS\n", name, 1e6*each, flop/each/1e12)
	}
	sizes := [][]tile{{}}
	for _, one := range productTiles["times"] {
		sizes = append(sizes, []tile{one})
	}
	for i, all := range append(sizes, nil) { // none, each, and as they suit
		tile := "chosen"
		if n.tiles = all; i == 0 {
			tile = "none"
		} else if all != nil {
			tile = all[0].name()
		}
		back := len(all) == 0 || slices.Contains(productTiles["times_back"], all[0])
		for _, s := range [][2]int{{128, 384}, {128, 128}, {128, 512}, {512, 128}, {128, 2048}} {
			in, to := s[0], s[1]
			flop := 2 * float64(rows*in*to)
			timed(fmt.Sprint("times/", tile, "/", in, "to", to), flop, func() { n.product(one, matrix{other, laid}, 0, 0, before, out, rows, to, in, act{}) })
			if !back {
				continue
			}
			timed(fmt.Sprint("back/", tile, "/", to, "to", in), flop, func() { n.productBack(one, matrix{other, laid}, third, before, act{}, out, rows, in, to) })
		}
		timed("gelu/"+tile, 2*rows*128*512, func() { n.product(one, matrix{other, laid}, third, 0, before, out, rows, 512, 128, act{kind: gelu}) })
		if tile == "none" {
			continue
		}
		var sums []summed
		flop := 0.0
		for _, s := range [][3]int{{128, 384, 1}, {128, 128, 1}, {128, 512, 1}, {512, 128, 1}, {128, 384, 1}, {128, 128, 1}, {128, 512, 1}, {512, 128, 1}, {2048, 128, 0}} {
			sums = append(sums, summed{x: one, d: other, sum: out, m: int32(s[0]), n: int32(s[1]), bias: int32(s[2])})
			flop += 2 * float64(rows*s[0]*s[1])
		}
		timed("sums/"+tile, flop, func() { n.tensorSums(sums, rows, nil) })
	}
	l := &layer{}
	l.Heads, l.Out.Height, l.Out.Width, l.Out.Channels = 4, places, 1, 128
	l.extra.looks = zeros(texts * 4 * places * places)
	timed("attend", 0, func() { n.attend(l, texts, one, out) })
	timed("attend_back", 0, func() { n.attendBack(l, texts, one, other, third, out) })
	timed("next_word", 0, func() {
		n.call(nextWordKernel(words), along(rows, 1), 256, one, other, before, uintptr(0), places, words, 1)
	})
	timed("layer_norm", 0, func() {
		n.call(normKernel("layer_norm", 128, other), along(rows, 8), 256, one, other, out, before, rows, 128, act{})
	})
	timed("layer_norm_back", 0, func() {
		n.call(normKernel("layer_norm_back", 128, other), along(rows, 8), 256, one, before, other, third, third, third, act{}, out, rows, 128)
	})
	n.room = room{squares: zeros(2 * texts * 9), squaresRow: 9}
	for _, s := range [][2]int{{128, 2048}, {128, 512}, {128, 128}} {
		timed(fmt.Sprint("times_half/", s[0], "and", s[1]), 64*72*float64(texts*(s[0]+s[1])), func() {
			n.productSquare(one, other, texts, places, s[0], s[1], 1, 1, n.room)
			n.squareHalves(texts)
		})
	}
}
