package onnx

import "fmt"

// graph is a GraphProto that is being built. Nodes are added in the order in which they
// are computed; every call returns the name of what it adds.
type graph struct {
	nodes, tensors, inputs, outputs []*message
	taken                           map[string]bool // names of values
	counted                         map[string]int  // names made of a hint
	theta                           []float64       // parameters that no layer has read yet
}

func newGraph(theta []float64) *graph {
	return &graph{taken: map[string]bool{}, counted: map[string]int{}, theta: theta}
}

// fresh is a name that no value has: columns are called as they like.
func (g *graph) fresh(hint string) string {
	for {
		name := fmt.Sprintf("%s.%d", hint, g.counted[hint])
		g.counted[hint]++
		if !g.taken[name] {
			g.taken[name] = true
			return name
		}
	}
}

// node adds an operation with one result.
func (g *graph) node(operation string, inputs []string, attributes ...attribute) string {
	name := g.fresh(operation)
	g.nodeTo(name, operation, inputs, attributes...)
	return name
}

func (g *graph) nodeTo(output, operation string, inputs []string, attributes ...attribute) {
	n := &message{}
	for _, in := range inputs {
		n.text(1, in)
	}
	n.text(2, output)
	n.text(3, output)
	n.text(4, operation)
	for _, a := range attributes {
		n.message(5, a)
	}
	g.nodes = append(g.nodes, n)
}

func (g *graph) floats(hint string, dims []int, values ...float32) string {
	name := g.fresh(hint)
	g.tensors = append(g.tensors, floatTensor(name, dims, values))
	return name
}

// scalar is a constant that goes with values of any shape.
func (g *graph) scalar(v float64) string { return g.floats("constant", nil, float32(v)) }

func (g *graph) integers(hint string, values ...int) string {
	name := g.fresh(hint)
	g.tensors = append(g.tensors, integerTensor(name, values))
	return name
}

func (g *graph) texts(hint string, dims []int, values []string) string {
	name := g.fresh(hint)
	g.tensors = append(g.tensors, textTensor(name, dims, values))
	return name
}

// input adds an input of the graph, under the very name.
func (g *graph) input(name string, element int64, dims []int, doc string) {
	g.taken[name] = true
	g.inputs = append(g.inputs, valueInfo(name, element, dims, doc))
}

// output makes a value one of the graph's, under a name of its own: the given one, or
// "predicted" before it as long as a column is called so.
func (g *graph) output(name, value string, element int64, dims []int, doc string) {
	for g.taken[name] {
		name = "predicted " + name
	}
	g.taken[name] = true
	g.nodeTo(name, "Identity", []string{value})
	g.outputs = append(g.outputs, valueInfo(name, element, dims, doc))
}

func (g *graph) message(name, doc string) *message {
	m := &message{}
	for _, n := range g.nodes {
		m.message(1, n)
	}
	m.text(2, name)
	for _, t := range g.tensors {
		m.message(5, t)
	}
	m.text(10, doc)
	for _, v := range g.inputs {
		m.message(11, v)
	}
	for _, v := range g.outputs {
		m.message(12, v)
	}
	return m
}

// asFloats makes 0 and 1 of false and true.
func (g *graph) asFloats(value string) string {
	return g.node("Cast", []string{value}, integerAttribute("to", floats))
}
