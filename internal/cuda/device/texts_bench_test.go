//go:build linux

package device

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// textNetwork is a transformer on a device, with parameters and so many texts of 64 of its words.
func textNetwork(t testing.TB, blocks, words, texts int) *Network {
	t.Helper()
	bare := bare(t)
	m, err := model.Of(config.Run{Model: config.Model{Kind: "transformer", Blocks: blocks, Width: 128, Heads: 4}, Algorithm: config.Algorithm{Local: config.Local{Loss: "next-word"}}},
		data.Shape{Features: textPlaces, Vocabulary: words})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := model.PlanOf(m)
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk = texts
	n, err := newNetwork(bare.d, plan, &kernelSet{functions: bare.functions})
	if err != nil {
		t.Fatal(err)
	}
	start := make([]float64, m.Parameters())
	m.Initialise(start, rand.NewPCG(1, 2))
	src := rand.New(rand.NewPCG(3, 4))
	theta, rows, factors := make([]float32, len(start)), make([]float32, texts*textPlaces), make([]float32, texts)
	for i, v := range start {
		theta[i] = float32(v)
	}
	for i := range rows {
		rows[i] = math.Float32frombits(uint32(src.IntN(words)))
	}
	for i := range factors {
		factors[i] = src.Float32()
	}
	bytes := func(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }
	n.parameters(bytes(theta))
	n.d.toDevice(n.rows, bytes(rows))
	n.d.toDevice(n.factors[0], bytes(factors))
	n.d.clear(n.sums, 8*plan.Parameters)
	if err := n.d.wait(); err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkTextSteps times the kernels of a private step of the membership study's transformer on
// 512 texts, one by one:
//
//	COTERIE_CUDA=1 go test ./internal/cuda/device -run - -bench TextSteps -benchtime 20x
func BenchmarkTextSteps(b *testing.B) {
	if !cudatest.OnDevice() {
		b.Skip("an emulation's times say nothing")
	}
	const texts = 512
	n := textNetwork(b, 2, 2048, texts)
	step := func() {
		n.forward(nil, texts)
		n.backward(nil, texts)
		n.add(0, texts)
	}
	step()
	if b.N > 1 {
		n.times = map[string][2]time.Duration{}
	}
	for range b.N {
		step()
	}
	if err := n.d.wait(); err != nil {
		b.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(n.times)) {
		took := n.times[name]
		fmt.Printf("%9.1f us %3d times %s\n", float64(took[0].Microseconds())/float64(b.N), int(took[1])/b.N, name)
	}
}
