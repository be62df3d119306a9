package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// Layer describes one layer, as a run file does.
type Layer = config.Layer

// layerKind is a kind of layer: all that networks ask of it by name. Every kind stands
// in the file of its layer and registers itself there.
type layerKind struct {
	name   string
	keys   []string // of Layer that it reads, beside kind; others are faults
	single builder[float32]
	double builder[float64]
	relus  bool // it does the ReLU right behind it as well
}

// builder makes a layer for inputs of a shape, and says what comes out of it. Behind are
// the layers that follow. A nil layer changes nothing but the shape.
type builder[F Float] func(in Shape, s Layer, behind []Layer) (layer[F], Shape, error)

var layerKinds = map[string]layerKind{}

// registerLayer makes a kind of layer known to networks and run files. It is called from
// init functions.
func registerLayer(k layerKind) {
	config.RegisterLayer(k.name, k.keys...)
	layerKinds[k.name] = k
}

// builderOf is a kind's in one precision.
func builderOf[F Float](k layerKind) builder[F] {
	if b, ok := any(k.single).(builder[F]); ok {
		return b
	}
	return any(k.double).(builder[F])
}

// maxValues bounds one example between two layers, maxParameters a network, maxKey a
// number in a layer's description: what is larger is a mistake in a run file, and must
// not exhaust memory.
const (
	maxValues     = 1 << 27
	maxParameters = 1 << 31
	maxKey        = 1 << 24
)

func build[F Float](input Shape, specs []Layer) (*chain[F], error) {
	var layers []layer[F]
	var names []string
	shape, total := input, 0
	for i, spec := range specs {
		if spec.Kind == "relu" && i > 0 && layerKinds[specs[i-1].Kind].relus {
			continue // done by the layer before
		}
		l, out, err := buildLayer[F](shape, spec, specs[i+1:])
		if err != nil {
			return nil, fmt.Errorf("layer %d (%s) on %v: %w", i, spec.Kind, shape, err)
		}
		if l != nil {
			layers, names = append(layers, l), append(names, fmt.Sprintf("layer %d (%s)", i, spec.Kind))
			for _, v := range l.views() {
				total += v.Len()
			}
		}
		if out.Len() > maxValues || total > maxParameters {
			return nil, fmt.Errorf("layer %d (%s): %d values an example and %d parameters are too many", i, spec.Kind, out.Len(), total)
		}
		shape = out
	}
	c := newChain(input, layers)
	c.end, c.names = shape, names
	return c, nil
}

func buildLayer[F Float](in Shape, s Layer, behind []Layer) (layer[F], Shape, error) {
	k, ok := layerKinds[s.Kind]
	if !ok {
		return nil, in, fmt.Errorf("not known; allowed: %s", strings.Join(slices.Sorted(maps.Keys(layerKinds)), ", "))
	}
	if err := k.check(s); err != nil {
		return nil, in, err
	}
	return builderOf[F](k)(in, s, behind)
}

// check refuses keys that the kind does not read, and numbers that cannot be.
func (k layerKind) check(s Layer) error {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key == "kind" || v.Field(i).IsZero() {
			continue
		}
		if !slices.Contains(k.keys, key) {
			return fmt.Errorf("%s is set, but such a layer does not read it; remove it (it reads: %s)", key, strings.Join(append([]string{"kind"}, k.keys...), ", "))
		}
		if n := v.Field(i); n.CanInt() && (n.Int() < 0 || n.Int() > maxKey) {
			return fmt.Errorf("%s %d is out of range; allowed: 0 to %d", key, n.Int(), maxKey)
		}
	}
	return nil
}

// reluBehind says that a ReLU comes next.
func reluBehind(behind []Layer) bool { return len(behind) > 0 && behind[0].Kind == "relu" }

// Network is a chain of layers on a flat parameter vector.
type Network[F Float] struct{ chain *chain[F] }

// Build makes a network of layers for examples of a shape.
func Build[F Float](input Shape, layers []Layer) (*Network[F], error) {
	if input.Height < 1 || input.Width < 1 || input.Channels < 1 || input.Len() > maxValues {
		return nil, fmt.Errorf("network: an input of %v cannot be", input)
	}
	if err := wordsFirst(layers, true); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	c, err := build[F](input, layers)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return &Network[F]{c}, nil
}

// Parameters is the length of the parameter vector.
func (n *Network[F]) Parameters() int { return n.chain.parameters() }

// Input and Output are the shapes at both ends.
func (n *Network[F]) Input() Shape { return n.chain.input }

// Output is the shape at the end.
func (n *Network[F]) Output() Shape { return n.chain.output() }

// Views names the parts of the parameter vector.
func (n *Network[F]) Views() []View { return n.chain.views() }

// Initialise draws parameters as PyTorch does by default.
func (n *Network[F]) Initialise(theta []F, src rand.Source) { n.chain.initialise(theta, src) }
