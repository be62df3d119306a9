package onnx

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

func logisticGraph() Graph {
	e, err := data.NewEncoding(config.Data{Target: "y", Task: "yes/no", Features: []config.Column{
		{Name: "a", Type: "number", Range: []float64{0, 1}},
		{Name: "b", Type: "category", Values: []config.Cell{"u", "v"}},
	}})
	if err != nil {
		panic(err)
	}
	return Graph{Encoding: e, Shape: e.Shape(), Model: config.Model{Kind: "linear", Intercept: true}, Loss: "cross-entropy", Theta: []float64{1, 2, 3, 4}}
}

// TestRefusals: each says what is wrong, and nothing is written.
func TestRefusals(t *testing.T) {
	network := func(g *Graph) {
		g.Model = config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 1}}}
	}
	for name, c := range map[string]struct {
		change func(g *Graph)
		want   string
	}{
		"too few parameters": {func(g *Graph) { g.Theta = g.Theta[1:] }, "3 parameters for a linear model of 3 features and 1 outputs; it has 4"},
		"too many of a network": {func(g *Graph) {
			network(g)
			g.Theta = make([]float64, 5)
		}, "5 parameters for a network of 4"},
		"unknown layer": {func(g *Graph) {
			network(g)
			g.Model.Layers[0].Kind = "strange"
		}, "strange"},
		"unknown kind":        {func(g *Graph) { g.Model.Kind = "strange" }, `model.kind "strange" is not known; allowed: linear, network, transformer`},
		"unknown network":     {func(g *Graph) { g.Model = config.Model{Kind: "network", Name: "strange"} }, `network "strange" is not known`},
		"unknown loss":        {func(g *Graph) { g.Loss = "strange" }, `loss "strange" is not known`},
		"loss of no class":    {func(g *Graph) { g.Encoding, g.Shape.Classes, g.Loss = nil, 0, "hinge" }, "the loss hinge on 1 outputs for 0 classes"},
		"other shape":         {func(g *Graph) { g.Shape.Features = 4 }, "the encoding makes 3 inputs and 2 classes, the model takes 4 and 2"},
		"linear for pictures": {func(g *Graph) { g.Encoding, g.Shape.Height, g.Shape.Width = nil, 2, 2 }, "pictures need a network"},
		"no features":         {func(g *Graph) { g.Encoding, g.Shape.Features, g.Theta = nil, 0, nil }, "a linear model of 0 features; allowed: 1 or more"},
		"broken encoding":     {func(g *Graph) { g.Encoding.Inputs = g.Encoding.Inputs[1:] }, "the encoding's columns make the inputs"},
		"no range":            {func(g *Graph) { g.Encoding.Columns[0].Range = nil }, "range"},
		"not a number":        {func(g *Graph) { g.Theta[2] = math.NaN() }, "parameter 2 is NaN; allowed: what single precision can hold"},
		"too large a number":  {func(g *Graph) { g.Theta[1] = 1e39 }, "parameter 1 is 1e+39"},
		"centre alone":        {func(g *Graph) { g.Centre = []float64{1, 2, 3} }, "3 centres and 0 scales, the rows have 3"},
		"too short a scale":   {func(g *Graph) { g.Centre, g.Scale = []float64{1}, []float64{1} }, "1 centres and 1 scales, the rows have 3"},
		"scale 0":             {func(g *Graph) { g.Centre, g.Scale = []float64{0, 0, 0}, []float64{1, 1e-60, 1} }, "scale 1 is 1e-60; allowed: what is not 0 in single precision"},
		"infinite centre":     {func(g *Graph) { g.Centre, g.Scale = []float64{0, 0, math.Inf(1)}, []float64{1, 1, 1} }, "centre 2 is +Inf"},
		"a name in Latin-1":   {func(g *Graph) { g.Encoding.Columns[0].Name, g.Encoding.Inputs[0] = "r\xe9gion", "r\xe9gion" }, `"r\xe9gion" is not UTF-8`},
		"projected rows": {func(g *Graph) {
			one := make([]float64, len(g.Encoding.Inputs))
			if err := g.Encoding.Project(&data.Projection{Inputs: g.Encoding.Inputs, Directions: [][]float64{one}}); err != nil {
				t.Fatal(err)
			}
		}, "data.projection"},
		"metadata": {func(g *Graph) { g.Metadata = map[string]string{"a": "\xff"} }, `"\xff" is not UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			g := logisticGraph()
			c.change(&g)
			var b bytes.Buffer
			err := Write(&b, g)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "export as ONNX: ") || b.Len() > 0 {
				t.Errorf("error %v and %d bytes, want one with %q and none", err, b.Len(), c.want)
			}
		})
	}
}

// TestLayerThatIsNotWritten: what package model may learn one day is refused by its name,
// inside of a residual too.
func TestLayerThatIsNotWritten(t *testing.T) {
	g := newGraph(nil)
	in := value{name: "x", shape: model.Shape{Height: 1, Width: 1, Channels: 2}}
	_, err := g.layers(in, []config.Layer{{Kind: "relu"}, {Kind: "residual", Inner: []config.Layer{{Kind: "swish"}}}})
	if err == nil || !strings.Contains(err.Error(), "layer 1 (residual): layer 0 (swish): the ONNX export does not know this kind; it knows: attention, conv, ") {
		t.Errorf("error %v", err)
	}
}

// TestEveryLayerIsWritten: package model's list of kinds is that of this package.
func TestEveryLayerIsWritten(t *testing.T) {
	_, err := model.Build[float64](model.Shape{Height: 1, Width: 1, Channels: 1}, []config.Layer{{Kind: "?"}})
	if err == nil {
		t.Fatal("a layer of the kind ? was built")
	}
	_, list, _ := strings.Cut(err.Error(), "allowed: ")
	if got, want := slices.Sorted(maps.Keys(layerKinds)), strings.Split(list, ", "); !slices.Equal(got, want) {
		t.Errorf("layers that are written: %v; that networks have: %v", got, want)
	}
}

// TestTooLarge: by the parameters alone, before anything is made of them, and by the
// whole file.
func TestTooLarge(t *testing.T) {
	g := logisticGraph()
	var b bytes.Buffer
	if err := Write(&b, g); err != nil {
		t.Fatal(err)
	}
	all := int64(b.Len())
	if err := write(&b, g, all); err != nil {
		t.Errorf("%d bytes of %d are refused: %v", all, all, err)
	}
	b.Reset()
	err := write(&b, g, all-1)
	if err == nil || !strings.Contains(err.Error(), "would have") || b.Len() > 0 {
		t.Errorf("one byte too many: error %v and %d bytes", err, b.Len())
	}
	if err = write(&b, g, 15); err == nil || !strings.Contains(err.Error(), "the file would have 16 bytes; allowed: 15") {
		t.Errorf("4 parameters in 15 bytes: error %v", err)
	}
}

type full struct{}

var errFull = errors.New("no space is left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFullDisk(t *testing.T) {
	if err := Write(full{}, logisticGraph()); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}
