package model

import "fmt"

// Plan is a network as a device is told of it: layers in an order in which each reads what
// is there already.
type Plan struct {
	Input      Shape
	Words      bool // an example is as many words' numbers, instead of a picture
	Rows       bool // it is as many values and what its outputs are compared with, which come with every batch
	Layers     []PlannedLayer
	Loss       string // the run file's name
	Itself     bool   // outputs are compared with the example itself
	Classes    int    // 0: with a value
	Emphasis   Emphasis
	Parameters int
	Chunk      int  // examples at a time; 0: as many as pay
	Whole      bool // gradients are added as whole numbers, for noise that is exact, and not otherwise
	Pictures   int  // that the device is to hold, so that too little memory is told before anything; 0: nobody knows
}

// PlannedLayer is a layer, and the activation behind it.
type PlannedLayer struct {
	Name string // where it is in the run file, for messages
	// Kind is conv, transposed-conv, linear, max-pool, mean-pool, group-norm, layer-norm,
	// attention, positions, embedding; places, a linear layer on every place; scores, of all
	// words by their vectors; joined, which only adds and activates.
	Kind    string
	From    int // which value it reads: 0 is the example, i+1 what layer i makes
	Plus    int // 1 + the value that is added to what it makes, before the activation; 0: none
	In, Out Shape

	Kernel, Stride, Padding int
	Groups, Heads, Words    int
	Bias                    bool
	Start                   int    // of its parameters: weights, then biases
	Activation              string // relu, leaky-relu, sigmoid, tanh, gelu; empty: none
	Slope                   float64
}

// PlanOf describes a model to a device, or says what of it no device here computes.
func PlanOf(m Model) (Plan, error) {
	n, err := forDevice(m)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Input: n.Input(), Words: n.vocabulary > 0, Rows: !n.pictures && n.vocabulary == 0, Loss: n.loss.String(), Itself: n.reconstructs, Classes: n.classes,
		Emphasis: n.emphasis, Parameters: n.Parameters(),
	}
	if n.loss == RMSE && n.reconstructs {
		return Plan{}, fmt.Errorf("a device has no kernel for the loss rmse of examples that are given back; it has squared-error and half-squared-error")
	}
	if _, err := p.chain(n.chain, 0, 0, ""); err != nil {
		return Plan{}, err
	}
	if last := p.Layers[len(p.Layers)-1]; last.Activation == "gelu" || p.Words && last.Activation != "" {
		return Plan{}, fmt.Errorf("a device has no kernel for a network that ends with %s", last.Activation)
	}
	return p, nil
}

// forDevice is the network that a device computes for a model: its own, in single precision.
func forDevice(m Model) (*network[float32], error) {
	var n *network[float32]
	switch m := m.(type) {
	case *network[float32]:
		n = m
	case *network[float64]:
		net, err := Build[float32](m.Input(), m.layers)
		if err != nil {
			return nil, err
		}
		n = &network[float32]{
			Network: net, layers: m.layers, loss: m.loss, emphasis: m.emphasis, classes: m.classes, reconstructs: m.reconstructs, vocabulary: m.vocabulary,
			pictures: m.pictures, people: m.people, start: m.start, stopped: m.stopped, runner: m.runner,
		}
	}
	if n == nil || n.people {
		return nil, fmt.Errorf("a device computes networks of pictures, of words and of rows, and this model is none of them")
	}
	return n, nil
}

// chain plans layers that read value from, with parameters from start on, and says which
// value they end with.
func (p *Plan) chain(c *chain[float32], from, start int, within string) (value int, err error) {
	value, own := from, len(p.Layers) // layers from own on are this chain's
	for i, l := range c.layers {
		one := PlannedLayer{Name: within + c.names[i], From: value, In: c.shapeInto(i), Out: l.output(), Start: start + c.starts[i]}
		switch l := l.(type) {
		case *residual[float32]:
			if value, err = p.residual(l, one); err != nil {
				return 0, err
			}
			continue
		case *words[float32]:
			if value, err = p.words(l, one); err != nil {
				return 0, err
			}
			continue
		case *activation[float32]:
			if p.behind(l.kind, l.slope, value, own) {
				continue
			}
			one.Kind, one.Activation, one.Slope = "joined", l.kind, l.slope
		case *gelu[float32]:
			if value == len(p.Layers) && value > own && p.Layers[value-1].Kind == "places" && p.behind("gelu", 0, value, own) {
				continue
			}
			one.Kind, one.Activation = "joined", "gelu"
		default:
			if _, vectors := any(l).(*embedding[float32]); vectors && !p.Words {
				return 0, fmt.Errorf("a device has no kernel for %s: it reads words of texts alone, and examples here are none", one.Name)
			}
			if !one.of(l) {
				return 0, fmt.Errorf("a device has no kernel for %s", one.Name)
			}
		}
		value = p.append(one)
	}
	return value, nil
}

// append adds a layer and says which value it makes.
func (p *Plan) append(l PlannedLayer) int {
	p.Layers = append(p.Layers, l)
	return len(p.Layers)
}

// behind has the layer that makes a value do the activation behind it, if it is this chain's
// own last one and has none: what a chain starts from may be read elsewhere as it is.
func (p *Plan) behind(kind string, slope float64, value, own int) bool {
	if value != len(p.Layers) || value <= own {
		return false
	}
	last := &p.Layers[value-1]
	if last.Activation != "" || last.Kind == "attention" { // whose way back reads what it made
		return false
	}
	last.Activation, last.Slope = kind, slope
	return true
}

// residual plans both ways and what joins them: the last layer of the inner one, where it
// can add.
func (p *Plan) residual(r *residual[float32], one PlannedLayer) (int, error) {
	own := len(p.Layers)
	inner, err := p.chain(r.inner, one.From, one.Start, one.Name+", ")
	if err != nil {
		return 0, err
	}
	other := one.From
	if r.shortcut != nil {
		if other, err = p.chain(r.shortcut, one.From, one.Start+r.inner.parameters(), one.Name+", shortcut "); err != nil {
			return 0, err
		}
	}
	if inner > own && inner == len(p.Layers) {
		if last := &p.Layers[inner-1]; last.Kind == "places" && last.Plus == 0 && last.Activation == "" {
			last.Plus = 1 + other
			return inner, nil
		}
	}
	one.Kind, one.From, one.In, one.Plus = "joined", inner, one.Out, 1+other
	return p.append(one), nil
}

// words plans a language model: its words' vectors, the layers between, the scores.
func (p *Plan) words(l *words[float32], one PlannedLayer) (int, error) {
	one.of(l.embedding)
	value, err := p.chain(l.inner, p.append(one), one.Start+l.own, one.Name+", ")
	if err != nil {
		return 0, err
	}
	return p.append(PlannedLayer{Name: one.Name, Kind: "scores", From: value, In: l.embedding.output(), Out: l.output(), Words: l.vocabulary, Start: one.Start}), nil
}

// of says what kind of layer l is, and whether devices have it.
func (one *PlannedLayer) of(l layer[float32]) bool {
	switch l := l.(type) {
	case *conv[float32]:
		one.Kind, one.Bias = "conv", l.bias
		if l.transposed {
			one.Kind = "transposed-conv"
		}
		one.Kernel, one.Stride, one.Padding = l.geometry.KernelH, l.geometry.StrideH, l.geometry.PadH
		one.relu(l.relu)
	case *dense[float32]:
		one.Kind, one.Bias = "linear", l.bias
		one.relu(l.relu)
	case *places[float32]:
		one.Kind, one.Bias = "places", l.bias
		one.relu(l.relu)
	case *maxPool[float32]:
		one.Kind = "max-pool"
		one.Kernel, one.Stride, one.Padding = l.geometry.KernelH, l.geometry.StrideH, l.geometry.PadH
	case *meanPool[float32]:
		one.Kind = "mean-pool"
		one.Kernel, one.Stride, one.Padding = l.geometry.KernelH, l.geometry.StrideH, l.geometry.PadH
		if l.geometry.KernelW != l.geometry.KernelH {
			return false
		}
	case *groupNorm[float32]:
		one.Kind, one.Groups = "group-norm", l.groups
	case *layerNorm[float32]:
		one.Kind = "layer-norm"
	case *attention[float32]:
		one.Kind, one.Heads = "attention", l.heads
	case *positions[float32]:
		one.Kind = "positions"
	case *embedding[float32]:
		one.Kind, one.Words, one.Out = "embedding", l.vocabulary, l.output()
	default:
		return false
	}
	return true
}

func (one *PlannedLayer) relu(is bool) {
	if is {
		one.Activation = "relu"
	}
}

// shapeInto is what goes into layer i.
func (c *chain[F]) shapeInto(i int) Shape {
	if i == 0 {
		return c.input
	}
	return c.layers[i-1].output()
}
