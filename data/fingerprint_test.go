package data

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// smallFederation has rows, pictures and people, and everything that examples can have.
func smallFederation() *Federation {
	rows := func(name string, values ...float64) Client {
		c := Client{Name: name, Rows: Rows{Features: 2}}
		for i := 0; i < len(values); i += 3 {
			c.X, c.Y = append(c.X, values[i:i+2]...), append(c.Y, values[i+2])
		}
		c.Sensitive = [][]int32{make([]int32, len(c.Y))}
		return c
	}
	north, south := rows("north", 1, 2, 0, 3, 4, 1, 5, 6, 1), rows("south", 7, 8, 0)
	held := rows("north", 9, 10, 1)
	north.Held = &held
	pictures := Client{Name: "pictures", Pictures: Pictures{
		Images: &Images{Height: 1, Width: 2, Pixels: []byte{1, 2, 3, 4, 5, 6}, Labels: []int{0, 1, 0}}, Index: []int{2, 0},
	}}
	people := Client{Name: "people", People: somePeople{twoPeople{ID0: 5, input: 0.5}, []int{1, 0}}}
	return &Federation{Features: 2, Train: []Client{north, south, pictures, people}, Validation: []Client{rows("judge", 1, 1, 1)}}
}

// twoPeople are people who do not say what they are made of.
type twoPeople struct {
	People
	ID0   int64
	input float32
}

func (twoPeople) Persons() int          { return 2 }
func (p twoPeople) ID(person int) int64 { return p.ID0 + int64(person) }
func (twoPeople) Inputs() int           { return 1 }
func (twoPeople) Windows() int          { return 1 }
func (p twoPeople) Input(dst []float32, person, _ int) int {
	dst[0] = p.input
	return person
}

// TestEveryChangeOfDataIsTold: whatever is changed of the examples, one value or whose they
// are, a fingerprint that was taken before tells, and says what it was.
func TestEveryChangeOfDataIsTold(t *testing.T) {
	const names, counts, examples = "other names", "other numbers of examples", "not what they were"
	taken := smallFederation().Digest().Fingerprint()
	if !taken.Known() || (Fingerprint{}).Known() {
		t.Error("a fingerprint and none are not told apart")
	}
	if what := smallFederation().Digest().Changed(taken); what != "" {
		t.Errorf("the same data: %s", what)
	}
	for name, c := range map[string]struct {
		change func(f *Federation)
		says   string
	}{
		"a client less":         {func(f *Federation) { f.Train = append(f.Train[:1], f.Train[2:]...) }, "number of clients is 4, and was 5"},
		"a judge that trains":   {func(f *Federation) { f.Train, f.Validation = append(f.Train, f.Validation...), nil }, names},
		"a client is renamed":   {func(f *Federation) { f.Train[1].Name = "west" }, names},
		"clients change places": {func(f *Federation) { f.Train[0], f.Train[1] = f.Train[1], f.Train[0] }, names},
		"a row less":            {func(f *Federation) { c := &f.Train[0]; c.X, c.Y = c.X[:4], c.Y[:2] }, counts},
		"a row is held out": {func(f *Federation) {
			c := &f.Train[0]
			c.Held.Rows, c.Rows = c.Rows.pick([]int{0, 1}), c.Rows.pick([]int{2})
		}, counts},
		"another value":            {func(f *Federation) { f.Train[0].X[3] = 4.5 }, examples},
		"another target":           {func(f *Federation) { f.Train[1].Y[0] = 1 }, examples},
		"another held-out value":   {func(f *Federation) { f.Train[0].Held.X[0] = 0 }, examples},
		"another judge":            {func(f *Federation) { f.Validation[0].X[0] = 0 }, examples},
		"rows change places":       {func(f *Federation) { c := &f.Train[0]; c.Rows = c.Rows.pick([]int{1, 0, 2}) }, examples},
		"another attribute":        {func(f *Federation) { f.Train[0].Sensitive[0][1] = 1 }, examples},
		"another group":            {func(f *Federation) { f.Train[0].Group = 1 }, examples},
		"a pixel":                  {func(f *Federation) { f.Train[2].Images.Pixels[4] = 0 }, examples},
		"a label":                  {func(f *Federation) { f.Train[2].Images.Labels[2] = 1 }, examples},
		"another picture":          {func(f *Federation) { f.Train[2].Index[1] = 1 }, examples},
		"a picture lies otherwise": {func(f *Federation) { f.Train[2].Images.Height, f.Train[2].Images.Width = 2, 1 }, examples},
		"values for labels":        {func(f *Federation) { im := f.Train[2].Images; im.Labels, im.Targets = nil, []float64{0, 1, 0} }, examples},
		"another person":           {func(f *Federation) { f.Train[3].People = somePeople{twoPeople{ID0: 6, input: 0.5}, []int{1, 0}} }, examples},
		"a person's input":         {func(f *Federation) { f.Train[3].People = somePeople{twoPeople{ID0: 5, input: 0.6}, []int{1, 0}} }, examples},
		"another person's place":   {func(f *Federation) { f.Train[3].People = somePeople{twoPeople{ID0: 5, input: 0.5}, []int{0, 1}} }, examples},
		"another encoding":         {func(f *Federation) { f.Encoding = &Encoding{Target: "y"} }, examples},
		"more classes":             {func(f *Federation) { f.Classes = 3 }, examples},
		"an attribute of judges":   {func(f *Federation) { f.Sensitive = []SensitiveColumn{{Name: "sex", Groups: [][]int32{{1}}}} }, examples},
	} {
		f := smallFederation()
		c.change(f)
		if what := f.Digest().Changed(taken); !strings.Contains(what, c.says) {
			t.Errorf("%s: %q, want %q", name, what, c.says)
		}
	}
}

// TestFingerprintsGiveNoHashAway: a plain hash of a small table can be guessed, so none is in
// a fingerprint, and two of the same data have nothing in common.
func TestFingerprintsGiveNoHashAway(t *testing.T) {
	d := smallFederation().Digest()
	one, two := d.Fingerprint(), d.Fingerprint()
	for i, part := range [][]byte{one.Salt, one.Names, one.Counts, one.Examples} {
		if bytes.Equal(part, [][]byte{two.Salt, two.Names, two.Counts, two.Examples}[i]) || len(part) != 32 {
			t.Errorf("part %d is the same under two salts, or of %d bytes", i, len(part))
		}
		for _, plain := range [][32]byte{d.names, d.counts, d.examples} {
			if bytes.Equal(part, plain[:]) {
				t.Errorf("part %d is a plain hash", i)
			}
		}
	}
	text, err := json.Marshal(one)
	var read Fingerprint
	if err != nil || json.Unmarshal(text, &read) != nil || d.Changed(read) != "" {
		t.Errorf("%s is not read back: %v", text, err)
	}
}

// BenchmarkDigest hashes what a run on MNIST holds, as bytes and as numbers.
func BenchmarkDigest(b *testing.B) {
	const pictures, pixels = 70_000, 28 * 28
	f := &Federation{Train: []Client{{Pictures: Pictures{
		Images: &Images{Height: 28, Width: 28, Pixels: make([]byte, pictures*pixels), Labels: make([]int, pictures)}, Index: make([]int, pictures),
	}}}}
	for i := range pictures {
		f.Train[0].Index[i] = i
	}
	b.Run("pictures", func(b *testing.B) {
		for b.Loop() {
			f.Digest()
		}
		b.SetBytes(pictures * pixels)
	})
	rows := &Federation{Train: []Client{{Rows: Rows{Features: 50, X: make([]float64, 50*100_000), Y: make([]float64, 100_000)}}}}
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			rows.Digest()
		}
		b.SetBytes(8 * 51 * 100_000)
	})
}
