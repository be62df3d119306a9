package mech

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// words scripts the bits that a sampler sees.
func words(ws ...uint64) io.Reader {
	var b []byte
	for _, w := range ws {
		for range 8 {
			b = append(b, byte(w))
			w >>= 8
		}
	}
	// Chunks are read whole: pad with a pattern that ends any loop.
	return io.MultiReader(bytes.NewReader(b), rand.NewChaCha8([32]byte{9}))
}

func TestExpIntervalHoldsKnownDigits(t *testing.T) {
	// exp(-1), exp(-1/3), exp(-100) and exp(-0.001) to 40 significant digits.
	for _, c := range []struct {
		num, den int64
		digits   string
	}{
		{1, 1, "0.3678794411714423215955237701614608674458"},
		{1, 3, "0.71653131057378925042560409692537966745311"},
		{100, 1, "3.720075976020835962959695803863118337359e-44"},
		{1, 1000, "0.9990004998333749916680553571676559747024"},
	} {
		want, _, err := big.ParseFloat(c.digits, 10, 400, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := expInterval(big.NewInt(c.num), big.NewInt(c.den), 300)
		slack := new(big.Float).Mul(want, big.NewFloat(1e-39))
		low := new(big.Float).SetMantExp(new(big.Float).SetInt(lo), -300)
		high := new(big.Float).SetMantExp(new(big.Float).SetInt(hi), -300)
		if new(big.Float).Sub(low, want).Cmp(slack) > 0 || new(big.Float).Sub(want, high).Cmp(slack) > 0 {
			t.Errorf("exp(-%d/%d) is not in [%v, %v]", c.num, c.den, low, high)
		}
		if width := new(big.Int).Sub(hi, lo); width.Sign() < 0 || width.BitLen() > 4 {
			t.Errorf("exp(-%d/%d): the interval is %v units wide", c.num, c.den, width)
		}
	}
}

func TestTablesOfExp(t *testing.T) {
	check := func(table []uint64, per int64) {
		for i, got := range table {
			lo, _ := expInterval(big.NewInt(int64(i)), big.NewInt(per), 200)
			if want := lo.Rsh(lo, 200-63).Uint64(); got != want {
				t.Errorf("exp(-%d/%d): %#x, want %#x", i, per, got, want)
			}
		}
	}
	check(expWhole[:], 1)
	check(expPart[:], 64)
}

func TestExpFixedIsWithinItsSlack(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		z := source.Uint64() >> (source.UintN(64))
		if i < 200 { // the edges of the tables
			z = uint64(i)<<(exponentBits-6) - uint64(i&1)
		}
		lo, hi := expInterval(new(big.Int).SetUint64(z), new(big.Int).Lsh(big.NewInt(1), exponentBits), 104)
		got := new(big.Int).Lsh(new(big.Int).SetUint64(expFixed(z)), 64)
		// The slack must also cover exponents that are 2^-50 off: leave that room.
		room := new(big.Int).Lsh(big.NewInt(expSlack), 64)
		room.Sub(room, new(big.Int).Lsh(big.NewInt(1), 104-50))
		if new(big.Int).Abs(lo.Sub(lo, got)).Cmp(room) > 0 || new(big.Int).Abs(hi.Sub(hi, got)).Cmp(room) > 0 {
			t.Fatalf("expFixed(%#x) = %d is outside its slack", z, expFixed(z))
		}
	}
}

func TestExponentIsWithinItsError(t *testing.T) {
	source := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		sigma := max(1, source.Uint64()>>(9+source.UintN(54)))
		plan, err := planGaussian(sigma)
		if err != nil {
			t.Fatal(err)
		}
		x := source.Uint64N(16 * sigma)
		exact := new(big.Rat).SetFrac(new(big.Int).SetUint64(x), new(big.Int).SetUint64(sigma))
		exact.Mul(exact, exact)
		exact.Mul(exact, big.NewRat(1, 2))
		got := new(big.Rat).SetFrac(new(big.Int).SetUint64(plan.exponent(x)), big.NewInt(1<<exponentBits))
		if off := exact.Sub(exact, got); off.Abs(off).Cmp(big.NewRat(1, 1<<50)) > 0 {
			t.Fatalf("sigma %d, x %d: the exponent is %v off", sigma, x, off)
		}
	}
}

// TestStaircaseIsAboveTheBell: the proposal may nowhere be below the target, or
// an acceptance probability would pass 1.
func TestStaircaseIsAboveTheBell(t *testing.T) {
	total := uint64(tailSlots)
	for j, count := range slots {
		total += count
		_, hi := expInterval(big.NewInt(int64(j*j)), big.NewInt(2*stripsPerSigma*stripsPerSigma), 64)
		if new(big.Int).Lsh(new(big.Int).SetUint64(count), 64).Cmp(hi.Mul(hi, big.NewInt(peak))) < 0 {
			t.Errorf("strip %d: %d slots are below the bell", j, count)
		}
	}
	if total != 1<<slotBits {
		t.Errorf("%d slots in all, want %d", total, 1<<slotBits)
	}
	for group := range int64(60) { // 2^(group+2) * peak * exp(-z) <= tailSlots; then each falls by more than half
		left := strips + 2*group
		_, hi := expInterval(big.NewInt(left*left), big.NewInt(2*stripsPerSigma*stripsPerSigma), 4096)
		hi.Lsh(hi.Mul(hi, big.NewInt(peak)), uint(group)+2)
		if new(big.Int).Lsh(big.NewInt(tailSlots), 4096).Cmp(hi) < 0 {
			t.Errorf("tail group %d is below the bell", group)
		}
	}
}

func TestSqueezeIsBelowTheBell(t *testing.T) {
	for j := range slots {
		for _, sigma := range []uint64{1024, 1025, 1 << 20, 1<<20 + 1, 1<<33 + 3} {
			plan, err := planGaussian(sigma)
			if err != nil {
				t.Fatal(err)
			}
			x := uint64(j+1)*plan.width - 1
			lo, _ := expInterval(new(big.Int).SetUint64(x*x), new(big.Int).SetUint64(2*sigma*sigma), 64+tryBits)
			if sigma > 1<<30 {
				square := new(big.Int).SetUint64(x)
				den := new(big.Int).SetUint64(sigma)
				lo, _ = expInterval(square.Mul(square, square), den.Lsh(den.Mul(den, den), 1), 64+tryBits)
			}
			lo.Mul(lo, big.NewInt(peak))
			if new(big.Int).Lsh(new(big.Int).SetUint64(sureBelow[j]*slots[j]), 64).Cmp(lo) > 0 {
				t.Errorf("sigma %d, strip %d: the sure region reaches above the bell", sigma, j)
			}
		}
	}
}

// TestFastAndSlowAcceptanceAgree: the same bits must give the same decision.
func TestFastAndSlowAcceptanceAgree(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 3))
	e := keyed(3)
	for range 10_000 {
		sigma := max(1, source.Uint64()>>(9+source.UintN(54)))
		plan, err := planGaussian(sigma)
		if err != nil {
			t.Fatal(err)
		}
		strip, double := source.Uint64N(strips), uint(0)
		count := slots[strip]
		if source.IntN(2) == 0 { // in the tail
			group := source.Uint64N(80)
			strip, double, count = strips+group, uint(group/2)+2, tailSlots
		}
		x := strip*plan.width + source.Uint64N(plan.width)
		p := math.Exp(math.Log(peak)-0.5*math.Pow(float64(x)/float64(sigma), 2)+float64(double)*math.Ln2) / float64(count)
		// Aim at the edge, where a wrong bound would show.
		try := max(1, min(uint64(p*(1<<tryBits))+source.Uint64N(3), 1<<tryBits)) - 1
		more := source.Uint64()
		e.Reset(words(more))
		fast, err := e.accept(&plan, x, try, count, double)
		if err != nil {
			t.Fatal(err)
		}
		slow, err := e.acceptSlowly(&plan, x, try<<(64-tryBits)|more>>tryBits, 64, count, double)
		if err != nil {
			t.Fatal(err)
		}
		if fast != slow {
			t.Fatalf("sigma %d, x %d, try %d: fast %t, exact %t", sigma, x, try, fast, slow)
		}
	}
}

func TestBelowDrawsUntilDecided(t *testing.T) {
	third := func(prec uint) (lo, hi *big.Int) {
		lo = new(big.Int).Div(new(big.Int).Lsh(big.NewInt(1), prec), big.NewInt(3))
		return lo, new(big.Int).Add(lo, big.NewInt(1))
	}
	const pattern = 0x5555555555555555 // 1/3 in binary, for ever
	for depth := range 12 {
		for _, c := range []struct {
			last uint64
			want bool
		}{{pattern - 1, true}, {pattern + 1, false}} {
			script := make([]uint64, depth, depth+1)
			for i := range script {
				script[i] = pattern
			}
			e := NewEntropy(words(append(script, c.last)...))
			got, err := e.below(pattern, 64, third)
			if err != nil || got != c.want {
				t.Errorf("after %d undecided words: %t, %v; want %t", depth+1, got, err, c.want)
			}
			if read := e.pos / 8; read != depth+1 {
				t.Errorf("%d words were drawn, want %d", read, depth+1)
			}
		}
	}
	always, err := keyed(1).below(math.MaxUint64, 64, func(prec uint) (lo, hi *big.Int) {
		return expInterval(new(big.Int), big.NewInt(1), prec)
	})
	if err != nil || !always {
		t.Errorf("probability one: %t, %v", always, err)
	}
}

func TestEntropyFaultsAreReturned(t *testing.T) {
	broken := errors.New("disk on fire")
	lattice := Lattice{Step: 0x1p-20}
	for name, source := range map[string]io.Reader{
		"nil":         nil,
		"error":       iotest.ErrReader(broken),
		"short":       bytes.NewReader(make([]byte, 100)),
		"error later": io.MultiReader(io.LimitReader(rand.NewChaCha8([32]byte{}), 4096), iotest.ErrReader(broken)),
		"ones":        ones{}, // every draw is in the tail and refused: it must not hang
		"zeros":       zeros{},
	} {
		dst := make([]int64, 100_000)
		e := NewEntropy(source)
		if err := e.DiscreteGaussian(dst, 12345); err == nil {
			t.Errorf("%s: the discrete Gaussian gave values", name)
		}
		if err := e.LatticeLaplace(dst, 1, lattice); err == nil {
			t.Errorf("%s: the Laplace noise gave values", name)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0xff
	}
	return len(p), nil
}

func TestBrokenSourceIsNamed(t *testing.T) {
	e := NewEntropy(zeros{})
	if _, err := e.tailGroup(); !errors.Is(err, errBrokenSource) {
		t.Errorf("a source of zeros: %v", err)
	}
}

func TestSigmaOutOfRange(t *testing.T) {
	for _, sigma := range []uint64{0, MaxSigma + 1, math.MaxUint64} {
		if err := keyed(1).DiscreteGaussian(make([]int64, 1), sigma); err == nil {
			t.Errorf("sigma %d was taken", sigma)
		}
	}
}

func TestDrawsDependOnTheBytesAlone(t *testing.T) {
	stream := func() io.Reader { return rand.NewChaCha8([32]byte{7}) }
	want := make([]int64, 5000)
	if err := NewEntropy(stream()).DiscreteGaussian(want, 12345); err != nil {
		t.Fatal(err)
	}
	got := make([]int64, len(want))
	e := keyed(1)
	if err := e.DiscreteGaussian(got, 9); err != nil { // leaves bytes read ahead
		t.Fatal(err)
	}
	e.Reset(iotest.OneByteReader(stream()))
	if err := e.DiscreteGaussian(got[:1234], 12345); err != nil {
		t.Fatal(err)
	}
	if err := e.DiscreteGaussian(got[1234:], 12345); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("draw %d is %d, want %d", i, got[i], want[i])
		}
	}
}

func TestExactNoiseDoesNotAllocate(t *testing.T) {
	e, dst := keyed(5), make([]int64, 1000)
	lattice := Lattice{Step: 0x1p-20}
	if n := testing.AllocsPerRun(50, func() {
		if e.DiscreteGaussian(dst, 1<<20) != nil || e.LatticeLaplace(dst, 30, lattice) != nil {
			t.Error("no noise")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestUniformIsUnbiased(t *testing.T) {
	e := keyed(6)
	for _, n := range []uint64{3, 7, 100} {
		counts := make([]int, n)
		for range 200_000 {
			v, err := e.uniform(n)
			if err != nil {
				t.Fatal(err)
			}
			counts[v]++
		}
		if err := checkCounts(counts, func(int) float64 { return 1 / float64(n) }); err != nil {
			t.Errorf("uniform below %d: %v", n, err)
		}
	}
}
