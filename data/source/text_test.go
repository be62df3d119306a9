package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/bytepair"
)

// letters is a text that is nobody's, of so many sentences.
func letters(from, sentences int) string {
	var b strings.Builder
	for i := range sentences {
		fmt.Fprintf(&b, "On day %d the %s nurse met %d guests. ", from+i, []string{"north", "south", "tall"}[i%3], i*7%11)
	}
	return b.String()
}

// textBlock is a folder of three clients' text, one of them packed, and the block that
// reads it.
func textBlock(t *testing.T) (config.Data, string) {
	t.Helper()
	folder := t.TempDir()
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.txt", []byte(letters(0, 40)))
	put("b.txt", []byte(letters(50, 20)))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, letters(90, 30))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put("c.txt.gz", packed.Bytes())
	put("notes.md", []byte("no client"))
	put(".hidden.txt", []byte("no client"))
	merges, err := bytepair.Train(letters(0, 40), 280)
	if err != nil {
		t.Fatal(err)
	}
	var pairs bytes.Buffer
	if err := merges.Write(&pairs); err != nil {
		t.Fatal(err)
	}
	put("merges.bpe", pairs.Bytes())
	return config.Data{Kind: "text", Source: config.Source{Path: folder}, Merges: filepath.Join(folder, "merges.bpe"), Vocabulary: 280, Context: 8, TestShare: 0.3}, folder
}

// TestTexts: every file is a client, every word is there, in its order, and a share is held
// out.
func TestTexts(t *testing.T) {
	d, folder := textBlock(t)
	d.NotPublic = []string{"data.merges"}
	var none *data.Folder
	f, err := none.Load(d, 7)
	if err != nil {
		t.Fatal(err)
	}
	e, err := none.Encoding(d)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Train) != 3 || f.Vocabulary != 280 || f.Features != 8 || len(f.NotCovered) != 1 {
		t.Fatalf("%d clients, %d words, rows of %d, not covered %v", len(f.Train), f.Vocabulary, f.Features, f.NotCovered)
	}
	texts := map[string]string{"a": letters(0, 40), "b": letters(50, 20), "c": letters(90, 30)}
	for i := range f.Train {
		c := &f.Train[i]
		words := e.Encode(nil, texts[c.Name])
		if want := len(words) / 8; c.Len()+c.Held.Len() != want || c.Held.Len() == 0 || c.Len() == 0 {
			t.Errorf("client %s has %d rows and %d held out, of %d", c.Name, c.Len(), c.Held.Len(), want)
		}
		var first []int32
		for _, v := range c.X[:8] {
			first = append(first, int32(v))
		}
		if text := e.Decode(first); !strings.Contains(texts[c.Name], text) {
			t.Errorf("client %s trains on %q, which it did not write", c.Name, text)
		}
	}
	one := d
	one.Source.Path = filepath.Join(folder, "c.txt.gz")
	if f, err := none.Load(one, 7); err != nil || len(f.Train) != 1 || f.Train[0].Name != "c" {
		t.Errorf("one file: %v", err)
	}
	d.TrainLimit = 4
	if f, err := none.Load(d, 7); err != nil || f.Train[0].Len() != 4 {
		t.Errorf("a limit of 4: %v", err)
	}
}

// TestTextsThatAreRefused: each by its name, all at once.
func TestTextsThatAreRefused(t *testing.T) {
	d, folder := textBlock(t)
	for name, content := range map[string]string{"short.txt": "Only this.", "picture.txt": "\x89PNG\r\n", "zero.txt": "a\x00b"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var none *data.Folder
	refused := func(d config.Data, want ...string) {
		t.Helper()
		_, err := none.Load(d, 1)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v, want one with %q", err, w)
			}
		}
	}
	refused(d, "short.txt has ", "less than one row of data.context 8", "picture.txt: byte 0 is 0x89", "zero.txt: byte 1 is 0x0", "save it as UTF-8")
	with := func(change func(d *config.Data)) config.Data {
		other := d
		change(&other)
		return other
	}
	refused(with(func(d *config.Data) { d.Source.Path = "" }), "data.source.path is missing")
	refused(with(func(d *config.Data) { d.Source.Path = filepath.Join(folder, "none") }), "none")
	refused(with(func(d *config.Data) { d.Source.Path = t.TempDir() }), "a folder without a file that ends in .txt or .txt.gz")
	refused(with(func(d *config.Data) { d.Vocabulary = 5000 }), "too few pairs")
	refused(with(func(d *config.Data) { d.Merges = "" }), "data.merges names no file, so GPT-2's is taken")
	if err := os.WriteFile(filepath.Join(folder, "a.txt.gz"), []byte("twice"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(d, `a.txt and a.txt.gz are both of the client "a"`)
	block := func(keys string) string {
		return fmt.Sprintf("data: {kind: text, source: {path: %q%s}}\nprivacy: {protects: nothing}\n", folder, keys)
	}
	for text, want := range map[string]string{
		block(", client: ward"): "allowed for text: path",
		strings.Replace(block(""), "}}", "}, not_public: [' ']}", 1): "data.not_public.0",
		strings.Replace(block(""), "}}", "}, samples: 9}", 1):        "data.samples: is set, but data of the kind text do not read it",
	} {
		if _, err := config.Resolve([]byte(text), nil, data.Check); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}
