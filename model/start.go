package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// StartFile is what a folder's parameters are called, GPT-2's as well as a run's.
const StartFile = "model.safetensors"

// ReadStart reads the parameters that training starts from, model.start, out of a
// safetensors file with what lies beside it. It holds GPT-2's tensors, under their usual
// names, or the one model of a run of this program on data of the same shape.
func ReadStart(files fs.FS, name string, block config.Model, s data.Shape) ([]float64, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tensors, err := readTensors[float64](file, maxParameters, func(name string) bool { return !gptBuffer(name) })
	if err != nil {
		return nil, err
	}
	beside := func(other string) ([]byte, error) { return fs.ReadFile(files, path.Join(path.Dir(name), other)) }
	if !slices.ContainsFunc(tensors, func(t Tensor[float64]) bool { return strings.HasPrefix(gptName(t.Name), "wte.") }) {
		return oneModel(tensors, beside, block, s)
	}
	if block.Kind != "transformer" {
		return nil, fmt.Errorf("it holds GPT-2's tensors, but model.kind is %q; allowed: transformer", block.Kind)
	}
	if err := checkGPTSettings(beside, block); err != nil {
		return nil, err
	}
	return gptParameters(tensors, block, s)
}

// oneModel is the model of a run: of the same layers, on data of the same shape.
func oneModel(tensors []Tensor[float64], beside func(string) ([]byte, error), block config.Model, s data.Shape) ([]float64, error) {
	text, err := beside("model.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it has neither GPT-2's tensors (wte.weight and others) nor a model.json beside it that says what its layers are; name a run's folder, or a file in GPT-2's names")
	}
	if err != nil {
		return nil, err
	}
	var of struct {
		Shape data.Shape   `json:"shape"`
		Model config.Model `json:"model"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("model.json: %w", err)
	}
	layers, err := layersOf(block, s)
	if err != nil {
		return nil, err
	}
	switch {
	case of.Model.Kind != "network" || !reflect.DeepEqual(of.Model.Layers, layers):
		return nil, fmt.Errorf("model.json describes other layers than the run's model block; allowed: the same, as in the run.yaml beside it")
	case of.Shape != s:
		return nil, fmt.Errorf("its model is of other data, %s, than the run's, %s; allowed: the same", shapeWords(of.Shape), shapeWords(s))
	case len(tensors) != 1:
		return nil, fmt.Errorf("it holds %d tensors; allowed: 1, the one model of a run such as central or fedavg", len(tensors))
	}
	return tensors[0].Values, nil
}

// shapeWords say what examples look like.
func shapeWords(s data.Shape) string {
	text := fmt.Sprintf("rows of %d values", s.Features)
	switch {
	case s.Pictures():
		text = fmt.Sprintf("pictures of %d x %d with %d channels", s.Height, s.Width, s.Depth())
	case s.Vocabulary > 0:
		return fmt.Sprintf("rows of %d words out of %d", s.Features, s.Vocabulary)
	}
	return fmt.Sprintf("%s in %d classes", text, s.Classes)
}

// layersOf are a network's, however the block says what they are.
func layersOf(block config.Model, s data.Shape) ([]Layer, error) {
	switch {
	case block.Kind == "transformer":
		return TransformerLayers(block, s.Vocabulary)
	case block.Name != "":
		named, err := NamedNetwork(block.Name)
		return named.Layers, err
	}
	return block.Layers, nil
}

// Starting is the model with parameters that training starts from, instead of drawn ones.
func Starting(m Model, theta []float64) (Model, error) {
	if len(theta) != m.Parameters() {
		return nil, fmt.Errorf("model.start has %d parameters, the model %d", len(theta), m.Parameters())
	}
	switch m := m.(type) {
	case *network[float32]:
		own := *m
		own.start = theta
		return &own, nil
	case *network[float64]:
		own := *m
		own.start = theta
		return &own, nil
	}
	return nil, fmt.Errorf("model.start is given, but only networks and transformers start from a file")
}
