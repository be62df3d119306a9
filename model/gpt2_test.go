package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/tier"
)

// tinyGPT is the model whose weights testdata/gpt2_twin.py made: of one word and two places
// fewer than its file has.
var (
	tinyGPT   = config.Model{Kind: "transformer", Blocks: 2, Width: 12, Heads: 3}
	tinyShape = data.Shape{Features: 6, Vocabulary: 19}
)

type goldenLogits struct {
	Rows   [][]float64   `json:"rows"`
	Logits [][][]float64 `json:"logits"`
}

func readGolden(t *testing.T, folder string) (g goldenLogits) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "logits.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// checkLogits holds the learner's scores against the twin's.
func checkLogits(t *testing.T, folder string) {
	t.Helper()
	theta, err := readStart(folder, tinyGPT, tinyShape)
	if err != nil {
		t.Fatal(err)
	}
	run := config.Run{Model: tinyGPT}
	run.Algorithm.Local.Loss = "next-word"
	m, err := Of(run, tinyShape)
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	golden := readGolden(t, folder)
	c := data.Client{Rows: data.Rows{Features: tinyShape.Features, X: slices.Concat(golden.Rows...), Y: make([]float64, len(golden.Rows))}}
	got, each, err := l.Outputs(nil, theta, &c)
	if err != nil || each != tinyShape.Features*tinyShape.Vocabulary {
		t.Fatalf("%d outputs each; %v", each, err)
	}
	var worst, most float64
	for i, row := range golden.Logits {
		for place, scores := range row {
			for word, want := range scores[:tinyShape.Vocabulary] {
				worst = max(worst, math.Abs(got[i*each+place*tinyShape.Vocabulary+word]-want))
				most = max(most, math.Abs(want))
			}
		}
	}
	if most < 1 || worst > 1e-5*most {
		t.Errorf("largest difference %.2g of scores up to %.2g", worst, most)
	}
}

// TestGoldenLogits: a file in GPT-2's names gives the scores that a twin in NumPy gives.
func TestGoldenLogits(t *testing.T) { checkLogits(t, "testdata/gpt2") }

// TestTwinAgain: the twin still makes what is kept of it.
func TestTwinAgain(t *testing.T) {
	python, folder := tier.PythonProgram(t), t.TempDir()
	if out, err := exec.Command(python, "testdata/gpt2_twin.py", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{StartFile, "config.json"} {
		kept, err := os.ReadFile(filepath.Join("testdata/gpt2", name))
		if err != nil {
			t.Fatal(err)
		}
		if made, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(made, kept) {
			t.Errorf("%s is another file; %v", name, err)
		}
	}
	checkLogits(t, folder)
}

// TestStartIsWhereTrainingStarts: through Starting and Initialise.
func TestStartIsWhereTrainingStarts(t *testing.T) {
	theta, err := readStart(filepath.Join("testdata/gpt2", StartFile), tinyGPT, tinyShape)
	if err != nil {
		t.Fatal(err)
	}
	run := config.Run{Model: tinyGPT}
	run.Algorithm.Local.Loss = "next-word"
	m, err := Of(run, tinyShape)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Starting(m, theta[1:]); err == nil || !strings.Contains(err.Error(), "parameters") {
		t.Errorf("one parameter too few: %v", err)
	}
	if m, err = Starting(m, theta); err != nil {
		t.Fatal(err)
	}
	own := make([]float64, m.Parameters())
	m.Initialise(own, stream("not read"))
	if !slices.Equal(own, theta) {
		t.Error("training starts elsewhere")
	}
	if _, err := Starting(Linear{Features: 2}, []float64{1, 2}); err == nil {
		t.Error("a linear model was given a start")
	}
}

// gptFile writes tensors that were changed as a start, and says why it is refused.
func gptFile(t *testing.T, m config.Model, change func(by map[string]Tensor[float64])) (string, error) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata/gpt2", StartFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tensors, err := readTensors[float64](file, 1<<20, func(name string) bool { return !gptBuffer(name) })
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Tensor[float64]{}
	for _, v := range tensors {
		v.Name = gptName(v.Name)
		by[v.Name] = v
	}
	change(by)
	var changed []Tensor[float64]
	for name, v := range by {
		v.Name = name
		changed = append(changed, v)
	}
	var b bytes.Buffer
	if err := WriteTensors(&b, changed, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = readStart(path, m, tinyShape)
	return path, err
}

// TestStartsThatDoNotFit: each refusal names what does not fit.
func TestStartsThatDoNotFit(t *testing.T) {
	nothing := func(map[string]Tensor[float64]) {}
	with := func(change func(m *config.Model)) config.Model {
		m := tinyGPT
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		model  config.Model
		change func(by map[string]Tensor[float64])
		want   string
	}{
		"as it is":    {tinyGPT, nothing, ""},
		"no head":     {tinyGPT, func(by map[string]Tensor[float64]) { delete(by, "lm_head.weight") }, ""},
		"fewer block": {with(func(m *config.Model) { m.Blocks = 1 }), nothing, "it has 2 blocks, model.blocks is 1; set 2"},
		"narrower":    {with(func(m *config.Model) { m.Width = 6 }), nothing, "wte.weight has the shape [20 12], the run's model [19 6] (model.width 6, data.vocabulary 19, data.context 6)"},
		"no norm":     {tinyGPT, func(by map[string]Tensor[float64]) { delete(by, "h.1.ln_2.bias") }, "the tensor h.1.ln_2.bias is missing"},
		"more":        {tinyGPT, func(by map[string]Tensor[float64]) { by["h.0.rotary"] = by["ln_f.bias"] }, "the tensor h.0.rotary is none of GPT-2's"},
		"own head": {tinyGPT, func(by map[string]Tensor[float64]) {
			head := by["lm_head.weight"]
			head.Values = slices.Clone(head.Values)
			head.Values[3]++
			by["lm_head.weight"] = head
		}, "lm_head.weight is not wte.weight"},
		"turned": {tinyGPT, func(by map[string]Tensor[float64]) {
			w := by["h.0.mlp.c_fc.weight"]
			w.Shape = []int{48, 12}
			by["h.0.mlp.c_fc.weight"] = w
		}, "h.0.mlp.c_fc.weight has the shape [48 12], the run's model [12 48]"},
		"no transformer": {config.Model{Kind: "network"}, nothing, `model.kind is "network"; allowed: transformer`},
		"no GPT-2":       {tinyGPT, func(by map[string]Tensor[float64]) { delete(by, "wte.weight") }, "neither GPT-2's tensors"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gptFile(t, c.model, c.change)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	for said, want := range map[string]string{
		`{"n_head": 4}`:                      "n_head 4, model.heads is 3; set 4",
		`{"layer_norm_epsilon": 1e-6}`:       "layer_norm_epsilon 1e-06",
		`{"activation_function": "relu"}`:    `activation_function "relu"`,
		`{"scale_attn_weights": false}`:      "attention scaled otherwise",
		`{"n_head": "three"}`:                "config.json: ",
		`{"activation_function":"gelu_new"}`: "",
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkGPTSettings(func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(folder, name)) }, tinyGPT); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want one with %q", said, err, want)
		}
	}
}

// TestStartFromARun: a run's folder is taken where layers and data are the same.
func TestStartFromARun(t *testing.T) {
	layers, err := TransformerLayers(tinyGPT, tinyShape.Vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1, 2, 3}
	folder := t.TempDir()
	write := func(m config.Model, s data.Shape, tensors ...Tensor[float64]) {
		t.Helper()
		var b bytes.Buffer
		if err := WriteTensors(&b, tensors, nil); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"model": m, "shape": s})
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{StartFile: b.Bytes(), "model.json": text} {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	one := Tensor[float64]{Name: "hypothesis.0", Shape: []int{3}, Values: want}
	network := config.Model{Kind: "network", Layers: layers}
	refused := func(because string) {
		t.Helper()
		if _, err := readStart(folder, tinyGPT, tinyShape); err == nil || !strings.Contains(err.Error(), because) {
			t.Errorf("error %v, want one with %q", err, because)
		}
	}
	write(network, tinyShape, one)
	if got, err := readStart(folder, tinyGPT, tinyShape); err != nil || !slices.Equal(got, want) {
		t.Errorf("read %v; %v", got, err)
	}
	write(network, data.Shape{Features: 7, Vocabulary: 19}, one)
	refused("of other data")
	write(network, tinyShape, one, Tensor[float64]{Name: "hypothesis.1", Shape: []int{3}, Values: want})
	refused("it holds 2 tensors; allowed: 1")
	network.Layers = layers[:0]
	write(network, tinyShape, one)
	refused("other layers")
}

// TestHalfPrecision: values of both formats, by their definitions.
func TestHalfPrecision(t *testing.T) {
	read := func(dtype string, bits ...uint16) ([]Tensor[float32], error) {
		head := fmt.Sprintf(`{"a":{"dtype":%q,"shape":[%d],"data_offsets":[0,%d]}}`, dtype, len(bits), 2*len(bits))
		b := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
		b = append(b, head...)
		for _, v := range bits {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return ReadTensors[float32](bytes.NewReader(b), 10)
	}
	half, err := read("F16", 0x3c00, 0xc000, 0x0001, 0x7bff, 0x3555, 0x8000)
	if want := []float32{1, -2, 1.0 / (1 << 24), 65504, 0.333251953125, 0}; err != nil || !slices.Equal(half[0].Values, want) {
		t.Errorf("float16: %v, want %v; %v", half, want, err)
	}
	brain, err := read("BF16", 0x3f80, 0xc049, 0x0000)
	if want := []float32{1, -3.140625, 0}; err != nil || !slices.Equal(brain[0].Values, want) {
		t.Errorf("bfloat16: %v, want %v; %v", brain, want, err)
	}
	for _, no := range []struct {
		dtype string
		bits  uint16
	}{{"F16", 0x7c00}, {"F16", 0x7e00}, {"BF16", 0x7f80}, {"I16", 1}} {
		if _, err := read(no.dtype, no.bits); err == nil {
			t.Errorf("%s %#x was read", no.dtype, no.bits)
		}
	}
}

// readStart reads a start as a run does, out of a folder or a file.
func readStart(path string, m config.Model, s data.Shape) ([]float64, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, StartFile)
	}
	return ReadStart(os.DirFS(filepath.Dir(path)), filepath.Base(path), m, s)
}
