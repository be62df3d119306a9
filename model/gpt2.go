package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// gptName is a tensor's name as GPT-2's first files have it: later ones put the name of
// the whole before it.
func gptName(name string) string { return strings.TrimPrefix(name, "transformer.") }

// gptBuffer says that a tensor of GPT-2's files is no parameter: the mask of places that
// lie ahead, and what they are set to.
func gptBuffer(name string) bool {
	return strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias")
}

// gptPart is one of GPT-2's tensors.
type gptPart struct {
	name  string
	shape []int
	// first says that a tensor with more rows is taken, but for these: words that a shorter
	// vocabulary does not have, and places that a shorter context does not.
	first bool
}

// gptParts are GPT-2's tensors in the order of TransformerLayers' parameters. Matrices lie
// as [input][output] in both.
func gptParts(m config.Model, s data.Shape) []gptPart {
	w := m.Width
	parts := []gptPart{{"wte.weight", []int{s.Vocabulary, w}, true}, {"wpe.weight", []int{s.Features, w}, true}}
	both := func(name string, shape ...int) {
		parts = append(parts, gptPart{name: name + ".weight", shape: shape}, gptPart{name: name + ".bias", shape: shape[len(shape)-1:]})
	}
	for i := range m.Blocks {
		block := fmt.Sprintf("h.%d.", i)
		both(block+"ln_1", w)
		both(block+"attn.c_attn", w, 3*w)
		both(block+"attn.c_proj", w, w)
		both(block+"ln_2", w)
		both(block+"mlp.c_fc", w, 4*w)
		both(block+"mlp.c_proj", 4*w, w)
	}
	both("ln_f", w)
	return parts
}

// gptParameters puts GPT-2's tensors one after another.
func gptParameters(tensors []Tensor[float64], m config.Model, s data.Shape) ([]float64, error) {
	by := map[string]Tensor[float64]{}
	blocks := 0
	for _, t := range tensors {
		name := gptName(t.Name)
		if _, twice := by[name]; twice {
			return nil, fmt.Errorf("the tensor %s stands there twice", name)
		}
		by[name] = t
		var block int
		if n, err := fmt.Sscanf(name, "h.%d.", &block); err == nil && n == 1 {
			blocks = max(blocks, block+1)
		}
	}
	if blocks != m.Blocks {
		return nil, fmt.Errorf("it has %d blocks, model.blocks is %d; set %d", blocks, m.Blocks, blocks)
	}
	var theta []float64
	var wrong []error
	for _, p := range gptParts(m, s) {
		t, ok := by[p.name]
		delete(by, p.name)
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("the tensor %s is missing", p.name))
			continue
		case !p.fits(t.Shape):
			wrong = append(wrong, fmt.Errorf("%s has the shape %v, the run's model %v (model.width %d, data.vocabulary %d, data.context %d)", p.name, t.Shape, p.shape, m.Width, s.Vocabulary, s.Features))
			continue
		}
		if p.name == "wte.weight" {
			if head, ok := by["lm_head.weight"]; ok && !slices.Equal(head.Values, t.Values) {
				wrong = append(wrong, fmt.Errorf("lm_head.weight is not wte.weight: this model's scores are by the words' own vectors; use a file whose head is tied to them"))
			}
			delete(by, "lm_head.weight")
		}
		theta = append(theta, t.Values[:View{Shape: p.shape}.Len()]...)
	}
	for name := range by {
		wrong = append(wrong, fmt.Errorf("the tensor %s is none of GPT-2's", name))
	}
	if len(wrong) > 0 {
		slices.SortStableFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(wrong...)
	}
	return theta, nil
}

func (p gptPart) fits(shape []int) bool {
	if p.first && len(shape) == len(p.shape) {
		return shape[0] >= p.shape[0] && slices.Equal(shape[1:], p.shape[1:])
	}
	return slices.Equal(shape, p.shape)
}

// checkGPTSettings holds what no tensor tells against the config.json beside them, where
// there is one.
func checkGPTSettings(beside func(string) ([]byte, error), m config.Model) error {
	text, err := beside("config.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	said := struct {
		Heads      int     `json:"n_head"`
		Epsilon    float64 `json:"layer_norm_epsilon"`
		Activation string  `json:"activation_function"`
		Scaled     bool    `json:"scale_attn_weights"`
		ByBlock    bool    `json:"scale_attn_by_inverse_layer_idx"`
	}{m.Heads, normEpsilon, "gelu_new", true, false}
	if err := json.Unmarshal(text, &said); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	switch {
	case said.Heads != m.Heads:
		return fmt.Errorf("config.json says n_head %d, model.heads is %d; set %d", said.Heads, m.Heads, said.Heads)
	case said.Epsilon != normEpsilon:
		return fmt.Errorf("config.json says layer_norm_epsilon %v; this program's is %v", said.Epsilon, normEpsilon)
	case said.Activation != "gelu_new" && said.Activation != "gelu_pytorch_tanh":
		return fmt.Errorf("config.json says activation_function %q; this program's is gelu_new, GELU in the form with tanh", said.Activation)
	case !said.Scaled || said.ByBlock:
		return fmt.Errorf("config.json has attention scaled otherwise than by the root of a head's width, which this program does not")
	}
	return nil
}
