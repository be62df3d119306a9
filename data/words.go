package data

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/bytepair"
)

// mergesParts is where GPT-2's pairs lie in the folder of real data.
var mergesParts = []string{"gpt2-bpe", "vocab.bpe.gz"}

// Encoding is how a data block has text cut into words.
func (f *Folder) Encoding(d config.Data) (*bytepair.Encoding, error) {
	path := d.Merges
	if path == "" {
		if err := f.Has(mergesParts[0]); err != nil {
			return nil, fmt.Errorf("data.merges names no file, so GPT-2's is taken: %w", err)
		}
		path = filepath.Join(append([]string{f.path}, mergesParts...)...)
	}
	return readFile(path, func(name string, r io.Reader) (*bytepair.Encoding, error) {
		e, err := bytepair.Read(r, d.Vocabulary)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return e, nil
	})
}

// WordRows cuts text into rows of so many words. What is left at the end is no row.
func WordRows(e *bytepair.Encoding, text string, context int) Rows {
	words := e.Encode(nil, text)
	n := len(words) / context
	rows := Rows{Features: context, X: make([]float64, n*context), Y: make([]float64, n)}
	for i := range rows.X {
		rows.X[i] = float64(words[i])
	}
	return rows
}

// ReadText reads a file of text as a whole, packed by gzip or not.
func ReadText(path string) (string, error) {
	text, err := readFile(path, func(_ string, r io.Reader) (*string, error) {
		all, err := io.ReadAll(r)
		text := string(all)
		return &text, err
	})
	if err != nil {
		return "", err
	}
	return *text, nil
}

// TextShape is that of a data block's rows.
func TextShape(d config.Data) (Shape, bool) {
	return Shape{Features: d.Context, Vocabulary: d.Vocabulary}, d.Context > 0 && d.Vocabulary > 0
}

// CheckText says what is wrong with how a block has text cut.
func CheckText(c *config.Checker, d config.Data) {
	c.Require(d.Vocabulary >= bytepair.Bytes && d.Vocabulary <= bytepair.Most, "data.vocabulary", "is %d; allowed: %d to %d, for example 2048", d.Vocabulary, bytepair.Bytes, bytepair.Most)
	c.Require(d.Context >= 2, "data.context", "is %d; allowed: 2 or more words, for example 64", d.Context)
	c.Require(d.TestShare > 0 && d.TestShare < 1, "data.test_share", "is %v; allowed: between 0 and 1", d.TestShare)
}

// TextSettings are what a run file on text need not say: a small transformer, trained in
// one place.
func TextSettings(r *config.Run) {
	d, a, p := &r.Data, &r.Algorithm, &r.Privacy
	d.Vocabulary, d.Context, d.TestShare = 2048, 64, 0.4
	r.Model = config.Model{Kind: "transformer", Blocks: 2, Width: 128, Heads: 4}
	a.Rounds, a.ClientsPerRound, a.Stop = 4, 0, config.Stop{Return: "last", Every: 1}
	a.Local.Batch, a.Local.Loss, a.Local.Step, a.Local.Remainder = 512, "next-word", 0.003, "drop"
	a.Local.Optimiser, a.Local.Beta2 = "adam", 0.99
	a.Empty, a.Clustering, a.Weights = "keep", "declared", "equal"
	p.Protects, p.Epsilon, p.Delta, p.Clip = "example", 8, 1e-5, 1
	r.Judge.By = "test"
}

// SettleText is what follows from the rest of a file. Where nothing is protected, training
// is as usual for such models.
func SettleText(r *config.Run, given func(path string) bool) {
	l := &r.Algorithm.Local
	set := func(path string, apply func()) {
		if !given("algorithm.local." + path) {
			apply()
		}
	}
	if r.Model.Kind != "transformer" {
		for path, key := range map[string]*int{"blocks": &r.Model.Blocks, "width": &r.Model.Width, "heads": &r.Model.Heads} {
			if !given("model." + path) {
				*key = 0
			}
		}
	}
	if r.Privacy.Protects == "example" {
		return
	}
	set("optimiser", func() { l.Optimiser = "adamw" })
	set("batch", func() { l.Batch = 16 })
	set("step", func() { l.Step = 0.002 })
	set("warm_up", func() { l.WarmUp = 50 })
	set("gradient_norm", func() { l.GradientNorm = 1 })
	if l.Optimiser == "adamw" {
		set("weight_decay", func() { l.WeightDecay = 0.01 })
	}
}
