package onnx_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/artifact/onnx"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// tensor is an input or an output, as the runtimes' files have it. NaN is null there.
type tensor struct {
	Type   string `json:"type"`
	Dims   []int  `json:"dims"`
	Values []any  `json:"values"`
}

func floatsOf(values []float64, dims ...int) tensor {
	t := tensor{Type: "float32", Dims: dims}
	for _, v := range values {
		if math.IsNaN(v) {
			t.Values = append(t.Values, nil)
		} else {
			t.Values = append(t.Values, float32(v))
		}
	}
	return t
}

// example is a model, inputs for it, and what Coterie itself makes of them.
type example struct {
	name   string
	graph  onnx.Graph
	inputs map[string]tensor
	want   map[string]tensor
}

// rows are how many each example has.
const rows = 40

// everyColumn has each type with each rule for missing cells.
func everyColumn() []config.Column {
	return []config.Column{
		{Name: "age", Type: "number", Range: []float64{0, 120}},
		{Name: "height in cm", Type: "number", Range: []float64{100.5, 220}, Missing: "constant", Constant: "171.25"},
		{Name: "bmi", Type: "number", Range: []float64{10, 60}, Missing: "indicator"},
		{Name: "smoker", Type: "yes/no"},
		{Name: "insured", Type: "yes/no", Values: []config.Cell{"none", "full"}, Missing: "constant", Constant: "full"},
		{Name: "retired", Type: "yes/no", Missing: "indicator"},
		{Name: "ward", Type: "category", Values: []config.Cell{"C", "A", "B"}},
		{Name: "région", Type: "category", Values: []config.Cell{"north", "NA", "south"}, Missing: "constant", Constant: "south"},
		{Name: "Equal.0", Type: "category", Values: []config.Cell{"x", "y", "z", "x y"}, Missing: "indicator"},
	}
}

// table draws cells of every kind that a column can have, and encodes them: faults are
// the rows that Coterie refuses.
func table(t testing.TB, e *data.Encoding, src *rand.Rand) (inputs map[string]tensor, client *data.Client, faults []bool) {
	t.Helper()
	inputs, faults = map[string]tensor{}, make([]bool, rows)
	client = &data.Client{Rows: data.Rows{Features: len(e.Inputs), X: make([]float64, rows*len(e.Inputs)), Y: make([]float64, rows)}}
	first := 0
	for i, encoder := range e.Encoders() {
		c := e.Columns[i]
		in := tensor{Type: "float32", Dims: []int{rows, 1}}
		for row := range rows {
			cell, value := cell(c, src, row)
			outcome := encoder.Text([]byte(cell), client.X[row*len(e.Inputs)+first:][:encoder.Width()])
			faults[row] = faults[row] || outcome == data.CellFault
			in.Values = append(in.Values, value)
		}
		if c.Type == "category" {
			in.Type = "string"
		}
		inputs[c.Name] = in
		first += encoder.Width()
	}
	return inputs, client, faults
}

// cell draws a cell, as text and as the graph takes it. Every eighth is missing: where
// that is refused, in few rows only, so that most have an answer.
func cell(c data.EncodedColumn, src *rand.Rand, row int) (string, any) {
	missing := src.IntN(8) == 0 && (c.Missing != "refuse" || row%5 == 0)
	switch {
	case c.Type == "category" && missing:
		text := data.MissingCells()[src.IntN(len(data.MissingCells()))]
		return text, text
	case c.Type == "category":
		text := append([]string{"unheard of", "X"}, c.Values...)[src.IntN(2+len(c.Values))]
		return text, text
	case missing:
		return "", nil
	case c.Type == "yes/no" && row == 7:
		return "2", 2 // neither
	case c.Type == "yes/no":
		i := src.IntN(2)
		if len(c.Values) == 2 {
			return c.Values[i], i
		}
		return strconv.Itoa(i), i
	}
	width := c.Range[1] - c.Range[0]
	v := float32(c.Range[0] + width*(1.6*src.Float64()-0.3)) // some lie outside
	return strconv.FormatFloat(float64(v), 'g', -1, 64), v
}

func normals(src *rand.Rand, n int, sd float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = sd * src.NormFloat64()
	}
	return out
}

func runOf(m config.Model, loss string) config.Run {
	return config.Run{Model: m, Algorithm: config.Algorithm{Local: config.Local{Loss: loss}}}
}

// trained gives a graph parameters and asks package model for its outputs.
func trained(t testing.TB, g *onnx.Graph, client *data.Client, src *rand.Rand) (outputs []float64, each int) {
	t.Helper()
	m, err := model.Of(runOf(g.Model, g.Loss), g.Shape)
	if err != nil {
		t.Fatal(err)
	}
	g.Theta = make([]float64, m.Parameters())
	m.Initialise(g.Theta, src)
	if g.Model.Kind == "linear" {
		sd := 1.0
		if strings.HasSuffix(g.Loss, "squared-error") {
			sd = 0.2 // outputs are to be around 0 and 1
		}
		copy(g.Theta, normals(src, len(g.Theta), sd))
	}
	if g.Shape.Vocabulary > 0 { // these start from next to nothing
		for i, v := range normals(src, len(g.Theta), 0.3) {
			g.Theta[i] += v
		}
	}
	for i := range g.Theta {
		g.Theta[i] *= 1.5 // fresh networks say little: nearly the same of every example
	}
	if g.Centre != nil {
		client = &data.Client{Rows: client.Standardised(g.Centre, g.Scale)}
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	outputs, each, err = l.Outputs(nil, g.Theta, client)
	if err != nil {
		t.Fatal(err)
	}
	return outputs, each
}

// answers are what outputs mean, by the contract of models: written anew, so that the
// exporter is not held against itself.
func answers(g onnx.Graph, outputs []float64, each int, faults []bool) map[string]tensor {
	if words := g.Shape.Vocabulary; words > 0 {
		var next []float64
		for place := 0; place < len(outputs); place += words {
			p, _ := chances(outputs[place:place+words], g.Loss)
			next = append(next, p...)
		}
		return map[string]tensor{"probabilities": floatsOf(next, len(outputs)/each, g.Shape.Features, words)}
	}
	n := len(outputs) / each
	var values, probabilities, scores []float64
	label := tensor{Type: "int64", Dims: []int{n}}
	if g.Encoding != nil {
		label.Type = "string"
	}
	for row := range n {
		out := outputs[row*each : (row+1)*each]
		p, best := chances(out, g.Loss)
		value := out[0]
		if g.Encoding != nil && g.Shape.Classes == 0 {
			value = value*(g.Encoding.TargetRange[1]-g.Encoding.TargetRange[0]) + g.Encoding.TargetRange[0]
		}
		var name any = best
		if g.Encoding != nil && g.Shape.Classes > 0 {
			name = g.Encoding.Classes[best]
		}
		score := out[0]
		if faults != nil && faults[row] {
			for i := range p {
				p[i] = math.NaN()
			}
			value, score, name = math.NaN(), math.NaN(), ""
		}
		values, scores, probabilities = append(values, value), append(scores, score), append(probabilities, p...)
		label.Values = append(label.Values, name)
	}
	if g.Shape.Classes == 0 {
		return map[string]tensor{"value": floatsOf(values, n, 1)}
	}
	want := map[string]tensor{"probabilities": floatsOf(probabilities, n, g.Shape.Classes), "label": label}
	if g.Loss == "hinge" {
		want["score"] = floatsOf(scores, n, 1)
	}
	return want
}

// chances are the classes' probabilities and the most probable one.
func chances(out []float64, loss string) (p []float64, best int) {
	if len(out) == 1 {
		var second float64
		above := out[0] > 0
		switch loss {
		case "cross-entropy", "focal":
			second = 1 / (1 + math.Exp(-out[0]))
		case "hinge":
			if above {
				second = 1
			}
		default:
			second, above = min(1, max(0, out[0])), out[0] > 0.5
		}
		if above {
			best = 1
		}
		return []float64{1 - second, second}, best
	}
	var sum float64
	for i, v := range out {
		p = append(p, math.Exp(v))
		sum += p[i]
		if v > out[best] {
			best = i
		}
	}
	for i := range p {
		p[i] /= sum
	}
	return p, best
}

func tableExample(t testing.TB, name string, d config.Data, m config.Model, loss string, change func(*onnx.Graph)) example {
	t.Helper()
	src := rand.New(rand.NewPCG(16, uint64(len(name))))
	e, err := data.NewEncoding(d)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	g := onnx.Graph{Encoding: e, Shape: e.Shape(), Model: m, Loss: loss, Metadata: map[string]string{"method": "mr-mtl", "version": "1.2.3", "a": "ü"}}
	if change != nil {
		change(&g)
	}
	inputs, client, faults := table(t, e, src)
	outputs, each := trained(t, &g, client, src)
	return example{name, g, inputs, answers(g, outputs, each, faults)}
}

func plainExample(t testing.TB, name string, s data.Shape, m config.Model, loss string) example {
	t.Helper()
	src := rand.New(rand.NewPCG(17, uint64(len(name))))
	g := onnx.Graph{Shape: s, Model: m, Loss: loss}
	n := 5
	client := &data.Client{}
	var x tensor
	if s.Pictures() {
		im := &data.Images{Height: s.Height, Width: s.Width, Channels: s.Channels, Labels: make([]int, n), Pixels: make([]byte, n*s.Height*s.Width*s.Depth())}
		if s.Classes == 0 {
			im.Targets = make([]float64, n)
		}
		values := make([]float64, len(im.Pixels))
		for i := range im.Pixels {
			im.Pixels[i] = byte(src.IntN(256))
			values[i] = float64(im.Pixels[i]) / 255
		}
		client.Images = im
		for i := range n {
			client.Index = append(client.Index, i)
		}
		x = floatsOf(values, n, s.Height, s.Width, s.Depth())
	} else {
		client.Rows = data.Rows{Features: s.Features, X: single(normals(src, n*s.Features, 1)), Y: make([]float64, n)}
		for i := range client.X {
			if s.Vocabulary == 0 && len(m.Layers) > 0 && m.Layers[0].Kind == "embedding" {
				client.X[i] = float64(src.IntN(m.Layers[0].Vocabulary))
			}
		}
		x = floatsOf(client.X, n, s.Features)
		if s.Vocabulary > 0 {
			x = tensor{Type: "int64", Dims: x.Dims}
			for i := range client.X {
				client.X[i] = float64(src.IntN(s.Vocabulary))
				x.Values = append(x.Values, int(client.X[i]))
			}
		}
	}
	outputs, each := trained(t, &g, client, src)
	return example{name, g, map[string]tensor{"x": x}, answers(g, outputs, each, nil)}
}

// single rounds to what the graph's inputs can hold.
func single(values []float64) []float64 {
	for i, v := range values {
		values[i] = float64(float32(v))
	}
	return values
}

func network(layers ...config.Layer) config.Model {
	return config.Model{Kind: "network", Layers: layers}
}
