package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "attention", keys: []string{"heads"}, single: buildAttention[float32], double: buildAttention[float64]})
}

// attention lets every place look back at itself and the places before it, and never
// ahead. A place's channels are a question, a key and a value, one after another; every
// head has its part of each. What comes out is the values of the places looked at, by how
// well their keys answer the question: softmax(q k'/sqrt(d)) v. It has no parameters:
// linear layers before and behind it have them.
type attention[F Float] struct {
	bare[F]
	places, heads, width int // width: channels of a head
}

func (a *attention[F]) oneByOne() bool { return false }

// values is how many weights between places one example has.
func (a *attention[F]) values() int { return a.heads * a.places * a.places }

func (a *attention[F]) cell(examples int) cell[F] {
	square := a.places * a.places
	return &attentionCell[F]{attention: a, weights: make([]F, examples*a.heads*square), d: make([]F, square)}
}

type attentionCell[F Float] struct {
	*attention[F]
	weights []F // of the last examples, head by head, [place][looked at]
	d       []F // gradient at one head's
	work    kernel.Workspace[F]
}

// part is a head's questions (0), keys (1) or values (2) of an example.
func (c *attentionCell[F]) part(example []F, which, head int) kernel.Matrix[F] {
	all := c.heads * c.width
	return kernel.Matrix[F]{Data: example[which*all+head*c.width:], Rows: c.places, Cols: c.width, RowStride: 3 * all, ColStride: 1}
}

// result is a head's part of an example's output.
func (c *attentionCell[F]) result(example []F, head int) kernel.Matrix[F] {
	return kernel.Matrix[F]{Data: example[head*c.width:], Rows: c.places, Cols: c.width, RowStride: c.heads * c.width, ColStride: 1}
}

func (c *attentionCell[F]) scale() F { return F(1 / math.Sqrt(float64(c.width))) }

// of is a head's weights of an example.
func (c *attentionCell[F]) of(example, head int) []F {
	square := c.places * c.places
	from := (example*c.heads + head) * square
	return c.weights[from : from+square]
}

func (c *attentionCell[F]) forward(_, in, out []F, g int) {
	n, m := 3*c.shape.Len(), c.shape.Len()
	for i := range g {
		x, y := in[i*n:(i+1)*n], out[i*m:(i+1)*m]
		for h := range c.heads {
			w := c.of(i, h)
			table := kernel.Dense(w, c.places, c.places)
			kernel.Gemm(c.scale(), c.part(x, 0, h), c.part(x, 1, h).T(), 0, table, &c.work)
			for t := range c.places {
				softmaxUpTo(w[t*c.places:(t+1)*c.places], t+1)
			}
			kernel.Gemm(1, table, c.part(x, 2, h), 0, c.result(y, h), &c.work)
		}
	}
}

// softmaxUpTo makes weights that add up to 1 of the first n scores, and 0 of the others.
func softmaxUpTo[F Float](row []F, n int) {
	seen := row[:n]
	top := largest(seen)
	for i := range seen {
		seen[i] -= top
	}
	kernel.Exp(seen, seen)
	var sum float64
	for _, v := range seen {
		sum += float64(v)
	}
	kernel.Scale(seen, F(1/sum), seen)
	clear(row[n:])
}

func (c *attentionCell[F]) backward(p pass[F]) {
	if p.dIn == nil {
		return
	}
	n, m := 3*c.shape.Len(), c.shape.Len()
	table := kernel.Dense(c.d, c.places, c.places)
	for i := range p.g {
		x, d, dx := p.in[i*n:(i+1)*n], p.dOut[i*m:(i+1)*m], p.dIn[i*n:(i+1)*n]
		for h := range c.heads {
			w, dOut := c.of(i, h), c.result(d, h)
			weights := kernel.Dense(w, c.places, c.places)
			kernel.Gemm(1, weights.T(), dOut, 0, c.part(dx, 2, h), &c.work)
			kernel.Gemm(1, dOut, c.part(x, 2, h).T(), 0, table, &c.work)
			for t := range c.places {
				softmaxBack(c.d[t*c.places:(t+1)*c.places], w[t*c.places:(t+1)*c.places], t+1)
			}
			kernel.Gemm(c.scale(), table, c.part(x, 1, h), 0, c.part(dx, 0, h), &c.work)
			kernel.Gemm(c.scale(), table.T(), c.part(x, 0, h), 0, c.part(dx, 1, h), &c.work)
		}
	}
}

// softmaxBack takes the gradient at the first n weights back to their scores.
func softmaxBack[F Float](d, weights []F, n int) {
	along := F(kernel.Dot(d[:n], weights[:n]))
	for i, w := range weights[:n] {
		d[i] = w * (d[i] - along)
	}
	clear(d[n:])
}

func buildAttention[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	if s.Heads < 1 || in.Channels%(3*s.Heads) != 0 {
		return nil, in, fmt.Errorf("heads %d for %d channels; allowed: 1 or more, and channels that are questions, keys and values of as many for every head, such as %d", s.Heads, in.Channels, 3*32*max(1, s.Heads))
	}
	places := in.Height * in.Width
	if places > maxValues/places/s.Heads {
		return nil, in, fmt.Errorf("%d places that look at each other are too many", places)
	}
	out := Shape{in.Height, in.Width, in.Channels / 3}
	return &attention[F]{bare[F]{out}, places, s.Heads, out.Channels / s.Heads}, out, nil
}
