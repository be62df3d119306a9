//go:build linux

package device

import "github.com/coterie-fl/coterie/internal/cuda"

// parted is what a network needs whose ways part and join, or that reads words.
type parted struct {
	slopes   []uintptr     // gradients at every value, as far as they are known; 0: nothing yet
	first    []int         // the first layer that reads a value, the last that adds to its gradient
	spare    uintptr       // for a gradient that something is added to
	plain    bool          // nobody asks for norms
	weights  uintptr       // of every place
	spread   int           // places of an example that they are for; 0: they are none's
	losses   uintptr       // at every place
	order    uintptr       // places by their words
	crossing uintptr       // what sums of words' gradients have in common
	met      uintptr       // slopes of every place at the text's own words; 0: scores have vectors of their own
	noises   uintptr       // room for noise on words' vectors; 0: nobody has asked
	halves   waitingHalves // norms that are asked for
	noise    uintptr       // that is on the next ones; 0: none
}

// layerExtra is what some kinds of layers hold beside their output.
type layerExtra struct {
	before uintptr // what goes into a gelu
	stats  uintptr // mean and 1/deviation, of a norm
	looks  uintptr // attention's weights
	slopes uintptr // gradients there
	along  uintptr // and of every place along them
}

// setOf is a set of pictures; texts and rows of values are in none.
func (n *Network) setOf(i int) *set {
	if n.plan.Words || n.plan.Rows {
		return nil
	}
	return &n.sets[i]
}

// rowLength is how many numbers say which example is next: its place, its words, or its values
// and what its outputs are compared with.
func (n *Network) rowLength() int {
	switch {
	case n.plan.Words:
		return n.plan.Input.Len()
	case n.plan.Rows:
		return n.plan.Input.Len() + 1
	}
	return 1
}

// classesOf is where kernels find the classes of g examples, and by which numbers: of pictures
// among those of their set, of rows behind their values, in order.
func (n *Network) classesOf(s *set, g int) (labels, rows uintptr) {
	if n.plan.Rows {
		return n.rows + uintptr(4*g*n.plan.Input.Len()), n.inOrder
	}
	return s.labels, n.rows
}

// allocateParted takes the memory that chains do without.
func (n *Network) allocateParted(floats func(count int) uintptr) {
	p := &n.parted
	p.slopes, p.first = make([]uintptr, len(n.layers)+1), make([]int, len(n.layers)+1)
	for v := range p.first {
		p.first[v] = len(n.layers)
	}
	for i := len(n.layers) - 1; i >= 0; i-- {
		l := &n.layers[i]
		if p.first[l.From] = i; l.Plus > 0 {
			p.first[l.Plus-1] = i
		}
	}
	if !cuda.Parted(n.plan) {
		return
	}
	read, places := 0, 0
	for i := range n.layers {
		l := &n.layers[i]
		read, places = max(read, l.In.Len()), max(places, placesOf(l))
		if l.Kind == "scores" { // slopes take the scores' place
			l.own = n.values[i+1]
			p.met = floats(n.chunk * placesOf(l) * placesOf(l))
			continue
		}
		l.own = floats(n.chunk * l.Out.Len())
		n.allocateExtra(l, floats)
	}
	p.spare, p.weights = floats(n.chunk*read), floats(n.chunk*places)
	if n.plan.Words {
		p.losses = floats(2 * n.chunk * places)
		p.order = floats(n.chunk * places)
		p.crossing = floats(2 * tiles(n.chunk*places, wordsRun) * n.layers[0].Out.Channels)
	}
}

func (n *Network) allocateExtra(l *layer, floats func(count int) uintptr) {
	places := n.chunk * l.Out.Height * l.Out.Width
	switch l.Kind {
	case "places":
		if l.activation.kind == gelu {
			l.extra.before = floats(n.chunk * l.Out.Len())
		}
	case "layer-norm":
		l.extra.stats = floats(2 * places)
	case "group-norm":
		l.extra.stats = floats(2 * n.chunk * l.Groups)
	case "attention":
		looks := l.Heads * places
		l.extra.slopes = floats(looks * l.Out.Height * l.Out.Width)
		if n.texts == nil { // which compute them anew
			l.extra.looks, l.extra.along = floats(looks*l.Out.Height*l.Out.Width), floats(looks)
		}
	}
}

// gelu is an activation's number; its slope follows from what goes into it.
const gelu = 5

// begin forgets the gradients of the last rows.
func (n *Network) begin() {
	clear(n.parted.slopes)
	n.parted.halves = waitingHalves{}
	n.parted.slopes[len(n.layers)] = n.layers[len(n.layers)-1].own
}

// gateOf is the activation that makes a value, and where its slope follows from.
func (n *Network) gateOf(value int) (gate act, at uintptr) {
	if value == 0 || n.pools(value-1) { // whose pool knows what is shut
		return act{}, 0
	}
	l := &n.layers[value-1]
	switch {
	case l.activation.kind == 0:
		return act{}, 0
	case l.activation.kind == gelu && l.Kind == "places":
		return l.activation, l.extra.before
	case l.activation.kind == gelu:
		return act{}, 0 // a joined layer does its own
	}
	return l.activation, n.values[value]
}

// contribute adds layer i's share to the gradients at the values that it reads. Layers come
// in their reverse order: the first that reads a value comes last, and takes its gradient
// through the activation that made it.
func (n *Network) contribute(i, g int) {
	l := &n.layers[i]
	if l.Plus > 0 {
		n.passOn(i, g, l.Plus-1, l.gradient)
	}
	if l.From == 0 {
		return // nobody asks for the example's gradient
	}
	if n.merges(i) {
		n.merge(i, g)
		return
	}
	if n.unpools(l.From - 1) {
		return // its kernel reads this layer's
	}
	if l.Kind == "positions" || l.Kind == "joined" && l.activation.kind != gelu {
		n.passOn(i, g, l.From, l.gradient)
		return
	}
	dx, plus := n.layers[l.From-1].own, n.parted.slopes[l.From]
	gate, at := act{}, uintptr(0)
	if n.parted.first[l.From] == i {
		gate, at = n.gateOf(l.From)
	}
	switch l.Kind {
	case "conv", "transposed-conv", "linear", "max-pool":
		if plus == 0 && gate.kind != gelu {
			n.back(i, g, dx, gate)
		} else {
			n.back(i, g, n.parted.spare, act{})
			n.join(g*l.In.Len(), n.parted.spare, 0, act{}, plus, at, gate, dx)
		}
	default:
		n.backParted(i, g, plus, at, gate, dx)
	}
	n.parted.slopes[l.From] = dx
}

// passOn gives a value the gradient d of what it is added to.
func (n *Network) passOn(i, g, value int, d uintptr) {
	if value == 0 {
		return
	}
	gate, at := act{}, uintptr(0)
	if n.parted.first[value] == i {
		gate, at = n.gateOf(value)
	}
	plus := n.parted.slopes[value]
	if plus == 0 && gate.kind == 0 {
		n.parted.slopes[value] = d
		return
	}
	l := &n.layers[value-1]
	n.join(g*l.Out.Len(), d, 0, act{}, plus, at, gate, l.own)
	n.parted.slopes[value] = l.own
}

// join sets dx to the sum of two gradients, the first times the slope of own, through gate.
func (n *Network) join(count int, d, ownAt uintptr, own act, plus, at uintptr, gate act, dx uintptr) {
	n.call("joined_back", along(count, 256), 256, d, ownAt, own, plus, at, gate, dx, count)
}
