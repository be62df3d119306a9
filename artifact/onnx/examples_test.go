package onnx_test

import (
	"testing"

	"github.com/coterie-fl/coterie/artifact/onnx"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// tableExamples have an encoding: every task, loss and rule for missing cells.
func tableExamples(t testing.TB) []example {
	linear := config.Model{Kind: "linear", Intercept: true}
	yesNo := config.Data{Target: "readmitted", Task: "yes/no", Classes: []config.Cell{"sent home", "kept"}, Features: everyColumn()}
	classes := config.Data{Target: "stage", Task: "classes", Classes: []config.Cell{"late", "ünknown", "early"}, Features: everyColumn()}
	number := config.Data{Target: "days", Task: "number", TargetRange: []float64{-3, 95}, Features: everyColumn()}
	// Columns that are called as the outputs are, and no row that is refused.
	called := func(d config.Data, names ...string) config.Data {
		d.Features = nil
		for _, name := range names {
			d.Features = append(d.Features, config.Column{Name: name, Type: "number", Range: []float64{0, 1}, Missing: "constant", Constant: "0.5"})
		}
		return d
	}
	rename := func(e example, names ...string) example {
		for _, name := range names {
			e.want["predicted "+name] = e.want[name]
			delete(e.want, name)
		}
		return e
	}
	return []example{
		tableExample(t, "logistic", yesNo, linear, "cross-entropy", nil),
		tableExample(t, "logistic without intercept", yesNo, config.Model{Kind: "linear"}, "cross-entropy", nil),
		tableExample(t, "standardised", yesNo, linear, "cross-entropy", func(g *onnx.Graph) {
			for i := range g.Shape.Features {
				g.Centre, g.Scale = append(g.Centre, float64(i)/16-0.5), append(g.Scale, 0.5+float64(i)/8)
			}
		}),
		tableExample(t, "focal", yesNo, linear, "focal", nil),
		tableExample(t, "focal softmax", classes, linear, "focal", nil),
		tableExample(t, "hinge", yesNo, linear, "hinge", nil),
		tableExample(t, "hinge network", yesNo, network(config.Layer{Kind: "linear", Units: 4}, config.Layer{Kind: "tanh"}, config.Layer{Kind: "linear", Units: 1}), "hinge", nil),
		tableExample(t, "squares of yes and no", yesNo, linear, "squared-error", nil),
		tableExample(t, "a score a class", yesNo, network(config.Layer{Kind: "linear", Units: 2}), "half-squared-error", nil),
		tableExample(t, "number", number, linear, "half-squared-error", nil),
		tableExample(t, "number by a network", number, network(config.Layer{Kind: "linear", Units: 8}, config.Layer{Kind: "relu"}, config.Layer{Kind: "linear", Units: 1, NoBias: true}), "rmse", nil),
		tableExample(t, "softmax regression", classes, linear, "cross-entropy", nil),
		tableExample(t, "softmax regression without intercept", classes, config.Model{Kind: "linear"}, "cross-entropy", nil),
		tableExample(t, "softmax network", classes, network(config.Layer{Kind: "linear", Units: 7}, config.Layer{Kind: "leaky-relu"}, config.Layer{Kind: "linear", Units: 3}), "cross-entropy", nil),
		rename(tableExample(t, "columns called as outputs", called(yesNo, "label", "probabilities", "Clip.0"), linear, "cross-entropy", nil), "label", "probabilities"),
		rename(tableExample(t, "a column called value", called(number, "value", "x"), linear, "squared-error", nil), "value"),
	}
}

// plainExamples have none: rows and pictures, every kind of layer, every named network.
func plainExamples(t testing.TB) []example {
	out := []example{
		plainExample(t, "rows", data.Shape{Features: 6, Classes: 2}, config.Model{Kind: "linear", Intercept: true}, "cross-entropy"),
		plainExample(t, "values", data.Shape{Features: 6}, config.Model{Kind: "linear"}, "squared-error"),
		plainExample(t, "pictures with values", data.Shape{Height: 6, Width: 5}, network(config.Layer{Kind: "linear", Units: 1}), "squared-error"),
		plainExample(t, "convolutions", data.Shape{Height: 11, Width: 8, Channels: 3, Classes: 4}, network(
			config.Layer{Kind: "conv", Channels: 5, Kernel: 3, Padding: 1}, config.Layer{Kind: "relu"},
			config.Layer{Kind: "conv", Channels: 6, Kernel: 4, Stride: 2, Padding: 2, NoBias: true}, config.Layer{Kind: "tanh"},
			config.Layer{Kind: "transposed-conv", Channels: 3, Kernel: 3, Stride: 2, Padding: 1}, config.Layer{Kind: "leaky-relu", Slope: 0.3},
			config.Layer{Kind: "transposed-conv", Channels: 2, Kernel: 2, NoBias: true}, config.Layer{Kind: "sigmoid"},
			config.Layer{Kind: "flatten"}, config.Layer{Kind: "linear", Units: 4},
		), "cross-entropy"),
		plainExample(t, "residuals", data.Shape{Height: 9, Width: 7, Channels: 2, Classes: 3}, network(
			config.Layer{Kind: "residual", Inner: []config.Layer{{Kind: "conv", Channels: 4, Kernel: 3, Padding: 1}, {Kind: "relu"}, {Kind: "conv", Channels: 2, Kernel: 3, Padding: 1}}},
			config.Layer{Kind: "relu"}, config.Layer{Kind: "conv", Channels: 5, Kernel: 3}, config.Layer{Kind: "max-pool", Kernel: 5},
			config.Layer{Kind: "residual", Inner: []config.Layer{{Kind: "linear", Units: 6}, {Kind: "tanh"}, {Kind: "linear", Units: 5}}}, // planes, then flat
			config.Layer{Kind: "flatten"},
			config.Layer{Kind: "residual", Inner: []config.Layer{{Kind: "conv", Channels: 5, Kernel: 1}}}, // flat, then planes
			config.Layer{Kind: "residual", Inner: []config.Layer{{Kind: "residual", Inner: []config.Layer{{Kind: "linear", Units: 5}}}}},
			config.Layer{Kind: "linear", Units: 3},
		), "cross-entropy"),
	}
	out = append(out, normExamples(t)...)
	out = append(out, wordExamples(t)...)
	for _, pool := range []string{"max-pool", "mean-pool"} {
		out = append(out, plainExample(t, pool, data.Shape{Height: 9, Width: 12, Channels: 2, Classes: 3}, network(
			config.Layer{Kind: "conv", Channels: 4, Kernel: 2}, config.Layer{Kind: pool, Kernel: 3, Stride: 2},
			config.Layer{Kind: pool, Kernel: 2, Padding: 1, Stride: 1}, config.Layer{Kind: pool, Kernel: 2}, config.Layer{Kind: "linear", Units: 3},
		), "cross-entropy"))
	}
	for _, kind := range []string{"relu", "leaky-relu", "sigmoid", "tanh"} {
		out = append(out, plainExample(t, kind, data.Shape{Features: 9, Classes: 3}, network(
			config.Layer{Kind: kind}, config.Layer{Kind: "linear", Units: 5}, config.Layer{Kind: kind}, config.Layer{Kind: "linear", Units: 3},
		), "cross-entropy"))
	}
	for _, name := range []string{"mnist", "femnist", "hospital", "agnews", "autoencoder", "cross-silo-cifar", "cross-silo-mnist", "cross-silo-adni", "resnet8"} {
		n, err := model.NamedNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		s := data.Shape{Features: n.Input.Len()}
		if n.Input.Height > 1 {
			s = data.Shape{Height: n.Input.Height, Width: n.Input.Width, Channels: n.Input.Channels}
		}
		loss := "cross-entropy"
		switch name {
		case "hospital", "cross-silo-adni":
			loss = "squared-error"
		case "autoencoder":
			s.Classes = n.Input.Len()
		default:
			s.Classes = n.Layers[len(n.Layers)-1].Units
		}
		out = append(out, plainExample(t, "network "+name, s, config.Model{Kind: "network", Name: name}, loss))
	}
	return out
}

// normExamples have layers that normalise, words, shortcuts and the mean of a picture.
func normExamples(t testing.TB) []example {
	return []example{
		plainExample(t, "layer norm", data.Shape{Features: 9, Classes: 3}, network(
			config.Layer{Kind: "layer-norm"}, config.Layer{Kind: "linear", Units: 5}, config.Layer{Kind: "layer-norm"}, config.Layer{Kind: "linear", Units: 3},
		), "cross-entropy"),
		plainExample(t, "words", data.Shape{Features: 7, Classes: 3}, network(
			config.Layer{Kind: "embedding", Vocabulary: 11, Units: 4}, config.Layer{Kind: "layer-norm"}, config.Layer{Kind: "tanh"}, config.Layer{Kind: "linear", Units: 3},
		), "cross-entropy"),
		plainExample(t, "norms of pictures", data.Shape{Height: 7, Width: 6, Channels: 3, Classes: 4}, network(
			config.Layer{Kind: "group-norm", Groups: 1}, config.Layer{Kind: "conv", Channels: 12, Kernel: 3}, config.Layer{Kind: "group-norm", Groups: 4},
			config.Layer{Kind: "leaky-relu"}, config.Layer{Kind: "layer-norm"}, config.Layer{Kind: "conv", Channels: 6, Kernel: 2}, config.Layer{Kind: "group-norm"},
			config.Layer{Kind: "linear", Units: 4},
		), "cross-entropy"),
		plainExample(t, "shortcuts", data.Shape{Height: 9, Width: 7, Channels: 2, Classes: 3}, network(
			config.Layer{Kind: "residual",
				Inner:    []config.Layer{{Kind: "conv", Channels: 4, Kernel: 3, Stride: 2, Padding: 1}, {Kind: "relu"}, {Kind: "conv", Channels: 4, Kernel: 3, Padding: 1}},
				Shortcut: []config.Layer{{Kind: "conv", Channels: 4, Kernel: 1, Stride: 2}, {Kind: "group-norm", Groups: 2}}},
			config.Layer{Kind: "relu"}, config.Layer{Kind: "mean-pool"},
			config.Layer{Kind: "residual", Inner: []config.Layer{{Kind: "linear", Units: 3}}, Shortcut: []config.Layer{{Kind: "conv", Channels: 3, Kernel: 1}}}, // flat and planes
		), "cross-entropy"),
	}
}

// wordExamples are language models: a transformer, and layers that none has together.
func wordExamples(t testing.TB) []example {
	each := func(units int, bias bool) config.Layer {
		return config.Layer{Kind: "linear", Units: units, Each: true, NoBias: !bias}
	}
	return []example{
		plainExample(t, "transformer", data.Shape{Features: 6, Vocabulary: 13}, config.Model{Kind: "transformer", Blocks: 2, Width: 12, Heads: 3}, "next-word"),
		plainExample(t, "layers of words", data.Shape{Features: 5, Vocabulary: 7}, network(
			config.Layer{Kind: "words", Vocabulary: 7, Units: 4, Inner: []config.Layer{
				{Kind: "positions"}, each(18, false), {Kind: "attention", Heads: 2}, {Kind: "gelu"}, each(5, true), {Kind: "relu"}, each(4, true),
			}},
		), "next-word"),
		plainExample(t, "places of rows", data.Shape{Features: 5, Classes: 3}, network(
			config.Layer{Kind: "embedding", Vocabulary: 9, Units: 6}, config.Layer{Kind: "attention", Heads: 1}, config.Layer{Kind: "gelu"}, each(3, true), config.Layer{Kind: "linear", Units: 3},
		), "cross-entropy"),
	}
}
