package kernel

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"pgregory.net/rapid"
)

var soak = flag.Bool("soak", false, "run the long tests as well")

// TestMain fixes the seed of the random shapes, so that a failure repeats, and
// their number; flags override both.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.seed": "20261115", "rapid.nofailfile": "true", "rapid.checks": "200"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := flag.Set(name, value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// check runs a property on the assembly, if there is any, and on the twin.
func check(t *testing.T, property func(t *rapid.T)) {
	t.Helper()
	t.Run(Name(), func(t *testing.T) { rapid.Check(t, property) })
	if wide {
		t.Run("avx2", func(t *testing.T) { withAVX2(func() { rapid.Check(t, property) }) })
	}
	if vectorised {
		t.Run("twin", func(t *testing.T) { withTwin(func() { rapid.Check(t, property) }) })
	}
}

// band is the number of guard values before every buffer of an arena.
const band = 40

// arena hands out buffers that end where memory ends: one value read or
// written too far is a fault, one written too early breaks the guard band.
type arena[F Float] struct {
	regions [][]F
	guards  [][]F
	used    int
}

const sentinel = -7777.25

func (a *arena[F]) make(n int) []F {
	debug.SetPanicOnFault(true) // the fault is reported with its shapes
	if a.used == len(a.regions) {
		a.regions = append(a.regions, newRegion[F]())
	}
	region := a.regions[a.used]
	a.used++
	if n+band > len(region) {
		panic("test buffer too large")
	}
	buffer := region[len(region)-n:]
	guard := region[len(region)-n-band : len(region)-n]
	for i := range guard {
		guard[i] = sentinel
	}
	a.guards = append(a.guards, guard)
	return buffer[:n:n]
}

// normal is a buffer of normal values.
func (a *arena[F]) normal(r *rand.Rand, n int) []F {
	b := a.make(n)
	for i := range b {
		b[i] = F(r.NormFloat64())
	}
	return b
}

// done checks the guards and takes all buffers back.
func (a *arena[F]) done(t *rapid.T) {
	if v, broken := a.broken(); broken {
		t.Fatalf("a value before the buffer was overwritten with %v", v)
	}
	a.reset()
}

func (a *arena[F]) broken() (with F, broken bool) {
	for _, g := range a.guards {
		for _, v := range g {
			if v != sentinel {
				return v, true
			}
		}
	}
	return 0, false
}

func (a *arena[F]) reset() { a.used, a.guards = 0, a.guards[:0] }

// epsilon is the spacing of numbers at 1.
func epsilon[F Float]() float64 {
	if isSingle[F]() {
		return 0x1p-23
	}
	return 0x1p-52
}

func same[F Float](x, y F) bool { return x == y || (x != x && y != y) }

func source(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

// awkward are the values that break kernels.
func awkward[F Float]() []F {
	smallest, largest := math.SmallestNonzeroFloat64, math.MaxFloat64/4
	if isSingle[F]() {
		smallest, largest = math.SmallestNonzeroFloat32, math.MaxFloat32/4
	}
	tiny, huge := F(smallest), F(largest)
	return []F{0, F(math.Copysign(0, -1)), 1, -1, F(math.NaN()), F(math.Inf(1)), F(math.Inf(-1)), tiny, -tiny, huge, -huge}
}

// mixed is a buffer of normal values with awkward ones among them.
func (a *arena[F]) mixed(r *rand.Rand, n int) []F {
	b := a.normal(r, n)
	odd := awkward[F]()
	for i := range b {
		if r.IntN(4) == 0 {
			b[i] = odd[r.IntN(len(odd))]
		}
	}
	return b
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		text, _ := recover().(string)
		if len(text) < 8 || text[:7] != "kernel:" {
			t.Errorf("%s: panic %q, want one that begins with kernel:", name, text)
		}
	}()
	f()
}

// length is mostly short, to meet every tail, and sometimes one of the long
// ones, to cross a chunk's end.
func length(t *rapid.T, long ...int) int {
	if rapid.IntRange(0, 39).Draw(t, "long") == 39 {
		return rapid.SampledFrom(long).Draw(t, "n")
	}
	return rapid.IntRange(0, 70).Draw(t, "n")
}
