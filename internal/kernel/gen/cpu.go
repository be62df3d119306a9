package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cpuFeatures emits the two instructions that tell what the machine can do.
func (g *generator) cpuFeatures() {
	g.function("cpuid", "func(leaf, sub uint32) (eax, ebx, ecx, edx uint32)", "asks the processor about a feature leaf.")
	g.Load(g.Param("leaf"), reg.EAX)
	g.Load(g.Param("sub"), reg.ECX)
	g.CPUID()
	g.Store(reg.EAX, g.Return("eax"))
	g.Store(reg.EBX, g.Return("ebx"))
	g.Store(reg.ECX, g.Return("ecx"))
	g.Store(reg.EDX, g.Return("edx"))
	g.RET()

	g.function("xgetbv", "func() (eax, edx uint32)", "reads which registers the operating system saves.")
	g.XORL(reg.ECX, reg.ECX)
	g.XGETBV()
	g.Store(reg.EAX, g.Return("eax"))
	g.Store(reg.EDX, g.Return("edx"))
	g.RET()
}

// peak emits a loop of nothing but independent fused multiply-adds: the bound
// that benchmarks compare with.
func (g *generator) peak(p precision) {
	name := "fmaPeak"
	if p.wide() {
		name = "wideFMAPeak"
	}
	g.function(name+p.suffix, "func(rounds uintptr)", "runs twelve independent vector FMAs a round.")
	rounds := g.parameter("rounds")
	var acc [12]vec
	for i := range acc {
		acc[i] = g.zero(p)
	}
	x := g.zero(p)
	g.Label("loop")
	for i := range acc {
		g.fma231(p, x, x, acc[i])
	}
	g.SUBQ(operand.U8(1), rounds)
	g.JG(operand.LabelRef("loop"))
	g.finish()
}
