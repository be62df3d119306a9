package bytepair

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPieces(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello world":          {"Hello", " world"},
		"it's they'll I'd 'em": {"it", "'s", " they", "'ll", " I", "'d", " '", "em"},
		"a  b":                 {"a", " ", " b"},
		"a \n\n b":             {"a", " \n\n", " b"},
		"x=3.14!?":             {"x", "=", "3", ".", "14", "!?"},
		"a\nb":                 {"a", "\n", "b"},
		"end  ":                {"end", "  "},
		"été 12":               {"été", " 12"},
		" ":                    {" "},
		"":                     nil,
	} {
		if got := slices.Collect(pieces(text)); !slices.Equal(got, want) {
			t.Errorf("%q is cut into %q, want %q", text, got, want)
		}
	}
}

// TestTextComesBack: every text, also bytes that are no characters, is its words' text.
func TestTextComesBack(t *testing.T) {
	e, err := Train("the cat sat on the mat; the cat ate the rat", 280)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text") + " the cat"
		if got := e.Decode(e.Encode(nil, text)); got != text {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}

// TestTrainedByHand: the pairs of a text that can be counted by hand.
func TestTrainedByHand(t *testing.T) {
	e, err := Train("aaab aaab aaac", Bytes+3)
	if err != nil {
		t.Fatal(err)
	}
	words := e.words[Bytes:]
	// aa comes 6 times (3 pieces of 2 each), then aa+a in 3, then a space before it in 2.
	if want := []string{"aa", "aaa", " aaa"}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
	short, err := Train("ab", 1000)
	if err != nil || short.Vocabulary() != Bytes {
		t.Errorf("a text of one pair made %d words: %v", short.Vocabulary(), err)
	}
	for _, size := range []int{0, 255, Most + 1} {
		if _, err := Train("ab", size); err == nil {
			t.Errorf("a vocabulary of %d was accepted", size)
		}
	}
}

func TestWrittenAndRead(t *testing.T) {
	e, err := Train("the cat sat on the mat; the cat ate the rat  é", 290)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := e.Write(&file); err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(file.Bytes()), e.Vocabulary())
	if err != nil || !slices.Equal(again.words, e.words) {
		t.Errorf("read back: %v, %q", err, again.words[Bytes:])
	}
	if _, err := Read(&file, e.Vocabulary()+1); !errors.Is(err, ErrTooFew) {
		t.Errorf("a longer vocabulary than the file: %v", err)
	}
	for name, text := range map[string]string{
		"one word": "ab", "no earlier word": "ab c", "no byte": "\u4e00 a", "twice": "a b\na b",
	} {
		if _, err := Read(strings.NewReader(text), 0); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestGPT2 holds GPT-2's own files to what another implementation counted.
func TestGPT2(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set: no files of GPT-2")
	}
	open := func(name string) io.Reader {
		f, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	whole, err := Read(open("gpt2-bpe/vocab.bpe.gz"), 0)
	if err != nil {
		t.Fatal(err)
	}
	// As GPT-2's own encoder numbers them.
	if got := whole.Encode(nil, "Hello world, it's 2019."); !slices.Equal(got, []int32{15496, 995, 11, 340, 338, 13130, 13}) {
		t.Errorf("GPT-2's words are %v", got)
	}
	text, err := io.ReadAll(io.MultiReader(open("wikitext2/wiki.valid.tokens.gz"), open("wikitext2/wiki.test.tokens.gz")))
	if err != nil {
		t.Fatal(err)
	}
	e, err := Read(open("gpt2-bpe/vocab.bpe.gz"), 2048)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.Encode(nil, string(text))); n != 865_399 {
		t.Errorf("WikiText-2 has %d words of 2048, counted elsewhere 865,399", n)
	}
}
