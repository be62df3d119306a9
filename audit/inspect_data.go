package audit

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// networkOf is the run's model, and the same as a network that can be attacked.
func networkOf(run config.Run, f *data.Federation) (Network, model.Model, error) {
	if run.Algorithm.Local.ClassWeights != nil || run.Algorithm.Local.Loss == model.Focal.String() {
		return Network{}, nil, fmt.Errorf("audit: the attacks know plain losses, not class_weights or focal; audit the run with cross-entropy and no algorithm.local.class_weights")
	}
	if f.Vocabulary > 0 {
		return Network{}, nil, fmt.Errorf("audit: the attacks know targets that are classes or values, not words; audit a run on classes")
	}
	if f.Reconstruct {
		return Network{}, nil, fmt.Errorf("audit: the attacks know targets that are classes or values, not examples that are their own targets (data.task %s); audit a run on classes", data.TaskReconstruct)
	}
	if run.Model.Kind != "network" && f.Classes > 2 {
		return Network{}, nil, fmt.Errorf("audit: the attacks know linear models of one output, not those of %d classes; audit a network of one linear layer with %d units instead", f.Classes, f.Classes)
	}
	n := Network{Name: run.Model.Name, Input: model.Shape{Height: 1, Width: 1, Channels: f.Features}, Layers: run.Model.Layers}
	if run.Model.Kind != "network" {
		n.Name, n.Layers = "linear", model.LinearLayers(1, run.Model.Intercept)
	} else if run.Model.Name != "" {
		named, err := model.NamedNetwork(run.Model.Name)
		if err != nil {
			return Network{}, nil, err
		}
		n.Layers = named.Layers
	}
	if im := f.Train[0].Images; im != nil {
		n.Input = model.Shape{Height: im.Height, Width: im.Width, Channels: 1}
	}
	m, err := model.Of(run, f.Shape())
	return n, m, err
}

// oneExample is the client with one of its examples.
func oneExample(c data.Client, i int) (data.Client, error) {
	if i < 0 || i >= c.Len() {
		return data.Client{}, fmt.Errorf("audit: example %d; allowed: 0 to %d: %w", i, c.Len()-1, errNoExample)
	}
	if c.Images != nil {
		c.Index = c.Index[i : i+1]
		return c, nil
	}
	c.X, c.Y = c.X[i*c.Features:(i+1)*c.Features], c.Y[i:i+1]
	return c, nil
}

// trainedOn is how many examples an update uses.
func trainedOn(run config.Run, c *data.Client) int {
	if limit := run.Algorithm.Local.Limit; limit > 0 && c.Images != nil {
		return min(limit, c.Len())
	}
	return c.Len()
}

// steps is how many steps an update takes. The server is assumed to know.
func steps(run config.Run, c *data.Client) int {
	n, batch := trainedOn(run, c), run.Algorithm.Local.Batch
	if batch == 0 || batch > n {
		batch = n
	}
	return run.Algorithm.Local.Epochs * ((n + batch - 1) / batch)
}

// example is one of a client's examples as its model sees it, and its label if it
// has one.
func example(c *data.Client, i int) ([]float64, int) {
	if c.Images == nil {
		return c.X[i*c.Features : (i+1)*c.Features], -1
	}
	size, at := c.Images.Height*c.Images.Width, c.Index[i]
	x := make([]float64, size)
	for j, b := range c.Images.Pixels[at*size : (at+1)*size] {
		x[j] = float64(b) / 255
	}
	return x, c.Images.Labels[at]
}

// nearestExample fills a finding with the figures of the client's example that
// comes nearest to what was recovered.
func nearestExample(f Finding, n Network, c *data.Client, r Recovered) (Finding, error) {
	if c.Len() == 0 {
		return f, fmt.Errorf("audit: %w", errNoExample)
	}
	f.Found = r.Picture
	if r.Label >= 0 {
		f.Label = &r.Label
	}
	for i := range c.Len() {
		x, label := example(c, i)
		g := f
		g.Example, g.Original, g.Cosine = i, x, event.Number(Cosine(x, r.Picture))
		if c.Images != nil {
			q, err := Judge(x, r.Picture, n.Input.Height, n.Input.Width)
			if err != nil {
				return f, err
			}
			psnr, ssim := event.Number(q.PSNR), event.Number(q.SSIM)
			g.PSNR, g.SSIM, g.TrueLabel, g.Recovered = &psnr, &ssim, &label, q.Success()
		} else if r.Scaled {
			off := relativeError(x, r.Picture)
			e := event.Number(off)
			g.Error, g.Recovered = &e, off < rowError
		}
		if f.Example < 0 || g.beats(f) {
			f = g
		}
	}
	return f, nil
}

// relativeError is |x - y|/|x|.
func relativeError(x, y []float64) float64 {
	var sum float64
	for i := range x {
		sum += (x[i] - y[i]) * (x[i] - y[i])
	}
	return math.Sqrt(sum / max(squared(x), math.SmallestNonzeroFloat64))
}

// MeanExample is the mean of all examples of some clients: what one can say of an
// example without any update.
func MeanExample(clients []data.Client, features int) []float64 {
	mean := make([]float64, features)
	count := 0
	for c := range clients {
		for i := range clients[c].Len() {
			x, _ := example(&clients[c], i)
			add(mean, 1, x)
			count++
		}
	}
	for j := range mean {
		mean[j] /= float64(max(1, count))
	}
	return mean
}
