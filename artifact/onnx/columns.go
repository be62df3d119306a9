package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/data"
)

// columns adds an input for every column of the encoding and what makes the model's
// inputs of them. A row that Coterie would refuse cannot be refused in a graph: refused
// says for every row whether it is such a one, [N, 1]; empty: no row can be.
func (g *graph) columns(e *data.Encoding) (inputs, refused string) {
	for _, c := range e.Columns {
		element, doc := int64(floats), describe(c)
		if c.Type == "category" {
			element = texts
		}
		g.input(c.Name, element, []int{1}, doc)
	}
	var parts []string
	for i, encoder := range e.Encoders() {
		part, fault := g.column(e.Columns[i], encoder)
		parts = append(parts, part...)
		switch {
		case fault == "":
		case refused == "":
			refused = fault
		default:
			refused = g.node("Or", []string{refused, fault})
		}
	}
	return g.node("Concat", parts, integerAttribute("axis", 1)), refused
}

// column makes the inputs of one column, side by side.
func (g *graph) column(c data.EncodedColumn, encoder *data.CellEncoder) (parts []string, refused string) {
	var present, missing string
	width := 1
	switch c.Type {
	case "number":
		present, missing = g.number(c)
	case "category":
		present, missing = g.category(c)
		width = len(c.Values)
	default:
		present, missing, refused = g.yesNo(c)
	}
	switch {
	case c.Missing == "refuse" && refused == "":
		return []string{present}, missing
	case c.Missing == "refuse":
		return []string{present}, refused
	}
	instead := make([]float64, encoder.Width())
	encoder.Missing(instead)
	stands := g.floats("missing", []int{1, width}, single(instead[:width])...)
	parts = []string{g.node("Where", []string{missing, stands, present})}
	if c.Missing == "indicator" {
		parts = append(parts, g.asFloats(missing))
	}
	return parts, refused
}

// number clips to the public range and maps it to -1…1.
func (g *graph) number(c data.EncodedColumn) (present, missing string) {
	low, high := c.Range[0], c.Range[1]
	missing = g.node("IsNaN", []string{c.Name})
	present = g.node("Clip", []string{c.Name, g.scalar(low), g.scalar(high)})
	present = g.node("Sub", []string{present, g.scalar((low + high) / 2)})
	return g.node("Div", []string{present, g.scalar((high - low) / 2)}), missing
}

// category is one-hot in the order of the values. What stands for a missing cell is the
// public list's, but for what is a value of the column.
func (g *graph) category(c data.EncodedColumn) (present, missing string) {
	hot := g.node("Equal", []string{c.Name, g.texts("values", []int{1, len(c.Values)}, c.Values)})
	nothing := slices.DeleteFunc(data.MissingCells(), func(s string) bool { return slices.Contains(c.Values, s) })
	among := g.asFloats(g.node("Equal", []string{c.Name, g.texts("nothing", []int{1, len(nothing)}, nothing)}))
	any := g.node("ReduceMax", []string{among, g.integers("axes", 1)})
	return g.asFloats(hot), g.node("Cast", []string{any}, integerAttribute("to", booleans))
}

// yesNo is 0 or 1 already; other numbers are faults, and so is a missing one unless the
// column allows it.
func (g *graph) yesNo(c data.EncodedColumn) (present, missing, refused string) {
	known := g.node("Or", []string{
		g.node("Equal", []string{c.Name, g.scalar(0)}),
		g.node("Equal", []string{c.Name, g.scalar(1)}),
	})
	if c.Missing != "refuse" {
		missing = g.node("IsNaN", []string{c.Name})
		known = g.node("Or", []string{known, missing})
	}
	return c.Name, missing, g.node("Not", []string{known})
}

// describe says in the file what an input takes.
func describe(c data.EncodedColumn) string {
	var takes, missing string
	switch c.Type {
	case "number":
		takes, missing = fmt.Sprintf("a number, clipped to %v…%v", c.Range[0], c.Range[1]), "NaN"
	case "category":
		takes, missing = "one of "+strings.Join(c.Values, ", ")+"; anything else is other", "an empty string"
	default:
		takes, missing = "0 or 1", "NaN"
		if len(c.Values) == 2 {
			takes = fmt.Sprintf("0 (%s) or 1 (%s)", c.Values[0], c.Values[1])
		}
	}
	switch c.Missing {
	case "constant":
		return fmt.Sprintf("%s; %s is missing and stands for %s", takes, missing, c.Constant)
	case "indicator":
		return fmt.Sprintf("%s; %s is missing, which is an input of its own", takes, missing)
	}
	return fmt.Sprintf("%s; %s is missing, and the row gets no answer", takes, missing)
}
