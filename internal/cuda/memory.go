package cuda

import (
	"slices"

	"github.com/coterie-fl/coterie/model"
)

// maxChunk is how many examples are on their way at a time, and chunkBytes what their
// memory may be: more would not be faster, and 576 hold a Poisson batch of 512. It follows
// from the network alone: sums are made chunk by chunk, so that another chunk would be other
// bits. Networks that part hold more of an example.
const (
	maxChunk    = 576
	chunkBytes  = 600 << 20
	partedChunk = 1024
	partedBytes = 2 << 30
)

// Parted says that a network is more than a chain of convolutions, pools and linear layers:
// its gradients are held value by value.
func Parted(p model.Plan) bool {
	for i, l := range p.Layers {
		if l.From != i || l.Plus > 0 || !slices.Contains(plain, l.Kind) {
			return true
		}
	}
	return p.Words
}

// plain are the kinds of layers of a chain.
var plain = []string{"conv", "transposed-conv", "linear", "max-pool"}

// Sides is how many parts of a batch are on the device at a time: while the norms of one
// travel and its factors are made, the next one is computed. A chain keeps little of an
// example until its factor is known, and holds that twice; other networks keep most.
func Sides(p model.Plan) int {
	if Parted(p) {
		return 1
	}
	return 2
}

// waiting is how many values of an example a chain keeps until its factor is known: what
// linear layers read, the gradients behind them, and those of convolutions.
func waiting(p model.Plan) (values int) {
	for _, l := range p.Layers {
		if l.Kind == "linear" {
			values += l.In.Len() + l.Out.Len()
		} else if l.Kind != "max-pool" {
			values += Extra(l)
		}
	}
	return values
}

// Floats is how many values of an example the device holds at a time: activations, which
// of them a pool took, gradients on their way back, and those of convolutions and norms.
func Floats(p model.Plan) (values int) {
	widest, read, places := 0, 0, 0
	values = p.Input.Len()
	if p.Rows { // which arrive beside where they are read
		values += p.Input.Len() + 1
	}
	parted := Parted(p)
	for _, l := range p.Layers {
		values += l.Out.Len() + Extra(l)
		widest, read, places = max(widest, l.Out.Len()), max(read, l.In.Len()), max(places, l.Out.Height*l.Out.Width)
		if l.Kind == "linear" || parted && l.Kind != "scores" {
			values += l.Out.Len()
		}
	}
	if parted {
		return values + read + 3*places // something is added to; weights and losses of places
	}
	return values + 2*widest + waiting(p)
}

// Extra is how many values of an example a layer holds beside its output and the gradient
// there.
func Extra(l model.PlannedLayer) int {
	places := l.Out.Height * l.Out.Width
	switch l.Kind {
	case "max-pool":
		return (l.Out.Len() + 3) / 4
	case "conv", "transposed-conv":
		return l.Kernel*l.Kernel*l.In.Channels*l.Out.Channels + l.Out.Channels
	case "places":
		if l.Activation == "gelu" {
			return l.Out.Len()
		}
	case "layer-norm":
		return 2*places + 2*l.Out.Channels
	case "group-norm":
		return 2*l.Groups + 2*l.Out.Channels
	case "scores": // slopes at the text's own words
		return places * places
	case "attention":
		return l.Heads * (2*places*places + places)
	}
	return 0
}

func chunkOf(p model.Plan) int {
	if p.Chunk > 0 {
		return p.Chunk
	}
	bytes, most := chunkBytes, maxChunk
	if Parted(p) {
		bytes, most = partedBytes, partedChunk
	}
	n := bytes / (4 * Floats(p))
	if n > 64 { // a little above a power of 2: Poisson batches of 512 have a few more, now and then
		n -= n % 64
	}
	return min(max(n, 16), most)
}

// evenly is how many of n examples are on their way at a time: a batch of more than a chunk
// is taken in parts of the same size, since the last one would leave the device half empty.
func evenly(n, chunk int) int {
	parts := max(1, (n+chunk-1)/chunk)
	return max(1, (n+parts-1)/parts)
}
