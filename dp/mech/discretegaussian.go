package mech

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// MaxSigma is the largest standard deviation, in lattice steps, that the exact
// sampler takes: every draw that it can make then fits an int64.
const MaxSigma = 1 << 55

// The proposal is a staircase above exp(-x^2/(2 sigma^2)), the same for every
// sigma: strips of width ceil(sigma/8), strip j drawn with probability
// slots[j]/1024, slots[j] >= peak*exp(-(j/8)^2/2), and one slot class for all that
// lies beyond three sigma. docs/proofs/discrete-gaussian.md.
const (
	stripsPerSigma = 8
	strips         = 24
	slotBits       = 10
	peak           = 96
	tailSlots      = 5
	tryBits        = 21      // bits of the first word that open the acceptance test
	narrowWidth    = 1 << 28 // widths whose position fits the first word
	maxTailWords   = 15      // zero words after which the source must be broken
)

var slots = [strips]uint64{96, 96, 94, 90, 85, 79, 73, 66, 59, 51, 44, 38, 32, 26, 21, 17, 13, 11, 8, 6, 5, 4, 3, 2}

// stripOf maps a slot to its strip; sureBelow[j] is a number of tryBits bits below
// which every point of strip j is accepted, if the strip is not wider than
// sigma/8 by more than one in 128.
var stripOf, sureBelow = func() (of [1 << slotBits]uint8, sure [strips]uint64) {
	next := 0
	for j, count := range slots {
		for range count {
			of[next] = uint8(j)
			next++
		}
		edge := float64(j+1) / stripsPerSigma * (1 + 1.0/128)
		least := peak * math.Exp(-edge*edge/2) / float64(count)
		sure[j] = uint64(max(0, least*(1<<tryBits)-1)) // one less: room for the rounding
	}
	for ; next < len(of); next++ {
		of[next] = strips
	}
	return of, sure
}()

// gaussianPlan is what the sampler needs to know of one sigma.
type gaussianPlan struct {
	sigma   uint64
	width   uint64 // of a strip
	biased  uint64 // positions are drawn again when the product's low half is below it
	inverse uint64 // floor(2^(63+shift)/sigma)
	shift   uint
	narrow  bool
	squeeze bool
}

func planGaussian(sigma uint64) (gaussianPlan, error) {
	if sigma == 0 || sigma > MaxSigma {
		return gaussianPlan{}, fmt.Errorf("discrete gaussian: sigma of %d lattice steps must be between 1 and 2^55; choose another lattice", sigma)
	}
	p := gaussianPlan{sigma: sigma, width: (sigma + stripsPerSigma - 1) / stripsPerSigma}
	p.shift = uint(bits.Len64(sigma)) - 1
	p.inverse, _ = bits.Div64(1<<p.shift>>1, (1<<p.shift&1)<<63, sigma)
	p.narrow = p.width <= narrowWidth
	p.biased = (1 << 32) % p.width
	p.squeeze = sigma >= 1024 // then width <= sigma/8 * (1 + 1/128)
	return p, nil
}

// DiscreteGaussian fills dst with independent draws from the discrete Gaussian on
// the integers, P(x) ~ exp(-x^2/(2 sigma^2)) (Canonne, Kamath and Steinke 2020),
// exactly: it decides with integers only, and draws more random bits where the
// first do not settle a comparison. An error leaves dst unspecified, and nothing
// of it may be used.
func (e *Entropy) DiscreteGaussian(dst []int64, sigma uint64) error {
	plan, err := planGaussian(sigma)
	if err != nil {
		return err
	}
	for i := range dst {
		if dst[i], err = e.gaussian(&plan); err != nil {
			return fmt.Errorf("discrete gaussian: %w", err)
		}
	}
	return nil
}

// gaussian makes one draw: a strip, a position in it, a sign, and acceptance with
// probability peak*exp(-x^2/(2 sigma^2))/slots.
func (e *Entropy) gaussian(p *gaussianPlan) (int64, error) {
	for range maxTries {
		w, err := e.word()
		if err != nil {
			return 0, err
		}
		strip := uint64(stripOf[w&(1<<slotBits-1)])
		negative := w >> slotBits & 1
		try := w >> (slotBits + 1) & (1<<tryBits - 1)

		var x uint64
		if p.narrow {
			product := (w >> 32) * p.width
			if product&math.MaxUint32 < p.biased {
				continue
			}
			x = product >> 32
		} else if x, err = e.uniform(p.width); err != nil {
			return 0, err
		}

		count, double := uint64(tailSlots), uint(0)
		if strip < strips {
			x += strip * p.width
			count = slots[strip]
		} else {
			group, err := e.tailGroup()
			if err != nil {
				return 0, err
			}
			x += (strips + group) * p.width
			// A group is two strips wide and half as likely as the one before it.
			double = uint(group/2) + 2
		}
		if x == 0 && negative == 1 {
			continue // zero has one sign
		}
		if strip < strips && p.squeeze && try < sureBelow[strip] {
			return signed(x, negative), nil
		}
		ok, err := e.accept(p, x, try, count, double)
		if err != nil {
			return 0, err
		}
		if ok {
			return signed(x, negative), nil
		}
	}
	return 0, errBrokenSource
}

func signed(x, negative uint64) int64 {
	return int64((x ^ -negative) + negative)
}

// tailGroup returns the strip beyond the staircase: twice a geometric number, and
// the lower or upper strip of that group.
func (e *Entropy) tailGroup() (uint64, error) {
	var zeros uint64
	for range maxTailWords {
		w, err := e.word()
		if err != nil {
			return 0, err
		}
		if w>>1 != 0 {
			return 2*(zeros+uint64(bits.TrailingZeros64(w>>1))) + w&1, nil
		}
		zeros += 63
	}
	return 0, errBrokenSource
}

// accept says whether a uniform number that starts with the tryBits bits of try
// lies below peak * 2^double * exp(-x^2/(2 sigma^2)) / count, which is at most 1.
func (e *Entropy) accept(p *gaussianPlan, x, try, count uint64, double uint) (bool, error) {
	const maxDouble = 32 // beyond it the products below might overflow
	if double > maxDouble {
		return e.acceptSlowly(p, x, try, tryBits, count, double)
	}
	approx, scale := expFixed(p.exponent(x)), uint64(peak)<<double
	atLeast := scale * (max(approx, expSlack) - expSlack)
	atMost := scale * (approx + expSlack)
	if (try+1)*count<<(40-tryBits) <= atLeast {
		return true, nil
	}
	if try*count<<(40-tryBits) >= atMost {
		return false, nil
	}
	w, err := e.word()
	if err != nil {
		return false, err
	}
	try = try<<(64-tryBits) | w>>tryBits
	if (try>>24+1)*count <= atLeast {
		return true, nil
	}
	if try>>24*count >= atMost {
		return false, nil
	}
	return e.acceptSlowly(p, x, try, 64, count, double)
}

func (e *Entropy) acceptSlowly(p *gaussianPlan, x, try uint64, known uint, count uint64, double uint) (bool, error) {
	return e.below(try, known, func(prec uint) (lo, hi *big.Int) {
		num := new(big.Int).SetUint64(x)
		num.Mul(num, num)
		den := new(big.Int).SetUint64(p.sigma)
		den.Lsh(den.Mul(den, den), 1)
		lo, hi = expInterval(num, den, prec)
		scale := new(big.Int).Lsh(big.NewInt(peak), double)
		by := new(big.Int).SetUint64(count)
		return lo.Div(lo.Mul(lo, scale), by), ceilDiv(hi.Mul(hi, scale), by)
	})
}

// exponent is x^2/(2 sigma^2) in fixed point, to within 2^-50, or the largest
// exponent.
func (p *gaussianPlan) exponent(x uint64) uint64 {
	if x>>4 >= p.sigma {
		return math.MaxUint64
	}
	hi, lo := bits.Mul64(x, p.inverse)
	ratio := hi<<(61-p.shift) | lo>>(p.shift+3) // x/sigma < 16 with 60 fraction bits
	return mulHigh(ratio, ratio)                // half its square with 57
}
