// Command gen writes the AVX2 and AVX-512 assembly of package kernel.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// generator is the file under construction. Constants are shared by functions.
type generator struct {
	*build.Context
	constants map[string]operand.Mem
	labels    int
}

func main() {
	dir := flag.String("dir", ".", "folder of package kernel")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	err := assemble(dir, "avx2_amd64", func(g *generator) {
		g.cpuFeatures()
		for _, p := range []precision{single, double} {
			g.peak(p)
			g.tiles(p)
			g.transpose(p)
			g.elementWise(p)
			g.reductions(p)
			g.rows(p)
			g.functions(p)
			g.truncated(p)
		}
		g.normals(single)
		g.conversions()
		for _, length := range []int{24, 48, 96} { // 6 or 12 values
			g.pack(length)
		}
	})
	if err != nil {
		return err
	}
	err = assemble(dir, "avx512_amd64", func(g *generator) {
		for _, p := range []precision{wideSingle, wideDouble} {
			g.peak(p)
			g.tiles(p)
		}
	})
	if err != nil {
		return err
	}
	return writeTileChoice(dir)
}

// assemble writes one file of assembly and the declarations that belong to it.
func assemble(dir, name string, emit func(g *generator)) error {
	g := &generator{Context: build.NewContext(), constants: map[string]operand.Mem{}}
	g.ConstraintExpr("amd64,!purego")
	emit(g)
	file, err := g.Result()
	if err != nil {
		return fmt.Errorf("building %s: %w", name, err)
	}
	if err := pass.Compile.Execute(file); err != nil {
		return fmt.Errorf("allocating registers of %s: %w", name, err)
	}
	config := printer.Config{Name: "internal/kernel/gen", Pkg: "kernel"}
	for ending, p := range map[string]printer.Printer{".s": printer.NewGoAsm(config), ".go": printer.NewStubs(config)} {
		text, err := p.Print(file)
		if err != nil {
			return fmt.Errorf("printing %s: %w", name+ending, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+ending), text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name+ending, err)
		}
	}
	return nil
}

// function opens an assembly function whose pointers do not escape.
func (g *generator) function(name, signature, doc string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr(signature)
	g.Pragma("noescape")
	g.Doc(name + " " + doc)
}
