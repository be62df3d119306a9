package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// precision selects the float32 or the float64 form of every instruction.
type precision struct {
	single bool
	suffix string // of function names
	goType string
	size   int // bytes of a value
	lanes  int // values in a vector
}

var (
	single     = precision{true, "F32", "float32", 4, 8}
	double     = precision{false, "F64", "float64", 8, 4}
	wideSingle = precision{true, "F32", "float32", 4, 16}
	wideDouble = precision{false, "F64", "float64", 8, 8}
)

// bytes is the length of a vector: 32 with AVX2, 64 with AVX-512.
func (p precision) bytes() int { return p.size * p.lanes }

func (p precision) wide() bool { return p.bytes() == 64 }

type (
	vec = reg.VecVirtual
	gp  = reg.Register
	op  = operand.Op
)

// both picks the instruction of the precision. Operands are in Go's order:
// sources reversed, destination last.
func both[T any](p precision, s, d T) T {
	if p.single {
		return s
	}
	return d
}

func (g *generator) add(p precision, b, a, dst op)  { both(p, g.VADDPS, g.VADDPD)(b, a, dst) }
func (g *generator) sub(p precision, b, a, dst op)  { both(p, g.VSUBPS, g.VSUBPD)(b, a, dst) } // a - b
func (g *generator) mul(p precision, b, a, dst op)  { both(p, g.VMULPS, g.VMULPD)(b, a, dst) }
func (g *generator) div(p precision, b, a, dst op)  { both(p, g.VDIVPS, g.VDIVPD)(b, a, dst) } // a / b
func (g *generator) max(p precision, b, a, dst op)  { both(p, g.VMAXPS, g.VMAXPD)(b, a, dst) } // b if one is NaN
func (g *generator) min(p precision, b, a, dst op)  { both(p, g.VMINPS, g.VMINPD)(b, a, dst) } // b if one is NaN
func (g *generator) and(p precision, b, a, dst op)  { both(p, g.VANDPS, g.VANDPD)(b, a, dst) }
func (g *generator) andn(p precision, b, a, dst op) { both(p, g.VANDNPS, g.VANDNPD)(b, a, dst) } // b &^ a
func (g *generator) or(p precision, b, a, dst op)   { both(p, g.VORPS, g.VORPD)(b, a, dst) }
func (g *generator) xor(p precision, b, a, dst op)  { both(p, g.VXORPS, g.VXORPD)(b, a, dst) }
func (g *generator) sqrt(p precision, a, dst op)    { both(p, g.VSQRTPS, g.VSQRTPD)(a, dst) }
func (g *generator) move(p precision, a, dst op)    { both(p, g.VMOVUPS, g.VMOVUPD)(a, dst) }

// fma231: c += a*b; fnma231: c -= a*b; fma213: c = b*c + a.
func (g *generator) fma231(p precision, a, b, c op) {
	both(p, g.VFMADD231PS, g.VFMADD231PD)(a, b, c)
}
func (g *generator) fnma231(p precision, a, b, c op) {
	both(p, g.VFNMADD231PS, g.VFNMADD231PD)(a, b, c)
}
func (g *generator) fma213(p precision, a, b, c op) {
	both(p, g.VFMADD213PS, g.VFMADD213PD)(a, b, c)
}

// fma231Broadcast: c += a*b for one value a in memory; AVX-512 alone has it.
func (g *generator) fma231Broadcast(p precision, a, b, c op) {
	both(p, g.VFMADD231PS_BCST, g.VFMADD231PD_BCST)(a, b, c)
}

// Predicates of compare, from the AVX manual: a OP b.
const (
	equal      = 0  // EQ_OQ
	less       = 1  // LT_OS
	unordered  = 3  // UNORD_Q
	notLess    = 5  // NLT_US: also when unordered
	greater    = 14 // GT_OS
	roundNear  = 8
	roundFloor = 9
)

func (g *generator) compare(p precision, predicate uint64, b, a, dst op) {
	both(p, g.VCMPPS, g.VCMPPD)(operand.U8(predicate), b, a, dst)
}

// blend: dst = yes where mask's sign bit is set, else no.
func (g *generator) blend(p precision, mask, yes, no, dst op) {
	both(p, g.VBLENDVPS, g.VBLENDVPD)(mask, yes, no, dst)
}

func (g *generator) round(p precision, mode uint64, a, dst op) {
	both(p, g.VROUNDPS, g.VROUNDPD)(operand.U8(mode), a, dst)
}

func (g *generator) shiftLeft(p precision, n int, a, dst op) {
	both(p, g.VPSLLD, g.VPSLLQ)(operand.U8(n), a, dst)
}

func (g *generator) shiftRight(p precision, n int, a, dst op) {
	both(p, g.VPSRLD, g.VPSRLQ)(operand.U8(n), a, dst)
}

// maskMove loads or stores the lanes whose mask is set; a load clears the others.
func (g *generator) maskMove(p precision, src, mask, dst op) {
	_, load := src.(operand.Mem)
	switch {
	case !p.wide():
		both(p, g.VMASKMOVPS, g.VMASKMOVPD)(src, mask, dst)
	case load:
		both(p, g.VMOVUPS_Z, g.VMOVUPD_Z)(src, mask, dst)
	default:
		both(p, g.VMOVUPS, g.VMOVUPD)(src, mask, dst)
	}
}

func (g *generator) broadcast(p precision, src, dst op) {
	if p.single {
		g.VBROADCASTSS(src, dst)
	} else {
		g.VBROADCASTSD(src, dst)
	}
}

// bits is a constant vector of one bit pattern.
func (g *generator) bits(p precision, pattern uint64) operand.Mem {
	name := fmt.Sprintf("c%s_%0*x", p.suffix, 2*p.size, pattern)
	if m, ok := g.constants[name]; ok {
		return m
	}
	m := g.StaticGlobal(name)
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range p.lanes {
		if p.single {
			g.AddDatum(4*i, operand.U32(pattern))
		} else {
			g.AddDatum(8*i, operand.U64(pattern))
		}
	}
	g.constants[name] = m
	return m
}

// constant is a vector of one number.
func (g *generator) constant(p precision, x float64) operand.Mem {
	if p.single {
		return g.bits(p, uint64(math.Float32bits(float32(x))))
	}
	return g.bits(p, math.Float64bits(x))
}

// maskTable holds 32 bytes of ones, then 32 of zeros: the 32 bytes that start
// r values before its middle are the mask of r lanes.
func (g *generator) maskTable() operand.Mem {
	if m, ok := g.constants["masks"]; ok {
		return m
	}
	m := g.StaticGlobal("masks")
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		ones := uint64(0)
		if i < 4 {
			ones = math.MaxUint64
		}
		g.AddDatum(8*i, operand.U64(ones))
	}
	g.constants["masks"] = m
	return m
}

// mask loads the mask of the count's lowest lanes; count is destroyed.
func (g *generator) mask(p precision, count gp, dst vec) {
	table := g.GP64()
	g.LEAQ(g.maskTable(), table)
	g.SHLQ(operand.U8(map[int]uint64{4: 2, 8: 3}[p.size]), count)
	g.SUBQ(count, table)
	g.VMOVDQU(operand.Mem{Base: table, Disp: 32}, dst)
}

// laneMask is the mask of the count's lowest lanes, for maskMove; count is destroyed.
func (g *generator) laneMask(p precision, count gp) op {
	if !p.wide() {
		mask := g.YMM()
		g.mask(p, count, mask)
		return mask
	}
	ones, mask := g.GP64(), g.K()
	g.MOVQ(operand.I32(-1), ones)
	g.BZHIQ(count, ones, ones)
	g.KMOVW(ones.As32(), mask)
	return mask
}

// vector is a free register.
func (g *generator) vector(p precision) vec {
	if p.wide() {
		return g.ZMM()
	}
	return g.YMM()
}

// parameter loads an integer or pointer argument.
func (g *generator) parameter(name string) gp { return g.Load(g.Param(name), g.GP64()) }

// broadcastParameter fills a vector with a float argument.
func (g *generator) broadcastParameter(p precision, name string) vec {
	c, err := g.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := g.vector(p)
	g.broadcast(p, c.Addr, v)
	return v
}

func (g *generator) zero(p precision) vec {
	v := g.vector(p)
	if p.wide() {
		g.VPXORD(v, v, v) // VXORPS of this width needs more than the foundation
	} else {
		g.xor(p, v, v, v)
	}
	return v
}

// load puts a constant into a register.
func (g *generator) load(p precision, m operand.Mem) vec {
	v := g.YMM()
	g.move(p, m, v)
	return v
}

func (g *generator) label(name string) string {
	g.labels++
	return fmt.Sprintf("%s%d", name, g.labels)
}
