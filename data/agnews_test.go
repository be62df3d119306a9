package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
)

// toHalf is a float whose value a 16-bit float has: small whole numbers over 8.
func toHalf(eighths int) uint16 {
	if eighths == 0 {
		return 0
	}
	sign, v := uint16(0), eighths
	if v < 0 {
		sign, v = 1<<15, -v
	}
	exponent := 0
	for v>>(exponent+1) > 0 {
		exponent++
	}
	return sign | uint16(exponent-3+15)<<10 | uint16(v<<(10-exponent)&1023)
}

// gloveFile is a file of vectors, given in eighths.
func gloveFile(words []string, vectors [][]int) []byte {
	text := strings.Join(words, "\n") + "\n"
	b := []byte("GLV1")
	for _, n := range []int{len(words), len(vectors[0]), len(text)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, text...)
	for _, v := range vectors {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, toHalf(x))
		}
	}
	return b
}

// numberedWords are w0, w1 and so on, but for those that are given, with vectors of 60
// values of which the last ten are the same for all.
func numberedWords(n int, given ...string) (words []string, vectors [][]int) {
	family := rng.NewFamily(1, "words")
	s := family.Stream(0, 0)
	for i := range n {
		word := fmt.Sprintf("w%d", i)
		if i < len(given) {
			word = given[i]
		}
		v := slices.Repeat([]int{7}, 60)
		for j := range 50 {
			v[j] = s.Below(81) - 40
		}
		words, vectors = append(words, word), append(vectors, v)
	}
	return words, vectors
}

// writeNews writes a small AG News and vectors into a folder of real data.
func writeNews(t *testing.T, folder, test, titled, bare string, vectors []byte) {
	t.Helper()
	for name, text := range map[string]string{
		"agnews/ag_news_test.csv.gz": "label,title,description\n" + test, "agnews/ag_news_train_sample5000_titled.csv.gz": "label,title_and_description\n" + titled,
		"agnews/ag_news_train_sample8000.csv.gz": "label,description\n" + bare, "glove/glove6b_100d_agnews_f16.bin.gz": string(vectors),
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewsAreTheirFirstWords: rows hold the projected vectors of the first 15 known words,
// which keep their distances where 50 directions are all there are, and zeros behind them.
func TestNewsAreTheirFirstWords(t *testing.T) {
	words, vectors := numberedWords(90, "oil", "well-known", "two", "year")
	folder := t.TempDir()
	long := strings.Join(words[10:40], " ")
	writeNews(t, folder,
		"4,Oil!,\"A well-known, #39;oil #39; two-year &lt;A HREF=oil&gt; w7\\w8 quot;w9 quot;\"\n2,x,"+long+"\n1,nothing,known\n",
		"1,W5 unheard w6\n", "3,w60 w61 w62 w63 w64 w65\n", gloveFile(words, vectors))
	files := NewFolder(folder)
	f, err := files.Load(config.Data{Kind: "agnews"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &f.Train[0]
	if again, err := files.Load(config.Data{Kind: "agnews"}, 2); err != nil || &again.Train[0].X[0] != &c.X[0] || &again.Train[0].Held.X[0] != &c.Held.X[0] {
		t.Errorf("a second run has rows of its own: %v", err)
	}
	if f.Classes != 4 || f.Features != 750 || len(f.Train) != 1 || !slices.Equal(c.Y, []float64{0, 2}) || !slices.Equal(c.Held.Y, []float64{3, 1, 0}) {
		t.Fatalf("classes %v and %v of %d; %s", c.Y, c.Held.Y, f.Classes, f.Report)
	}
	// Which words each text begins with, by their places.
	place := func(names ...string) (out []int) {
		for _, name := range names {
			out = append(out, slices.Index(words, name))
		}
		return out
	}
	expected := map[*[]float64][][]int{
		&c.X:      {place("w5", "w6"), place("w60", "w61", "w62", "w63", "w64", "w65")},
		&c.Held.X: {place("oil", "well-known", "oil", "two", "year", "w7", "w8", "w9"), place(words[10:25]...), nil},
	}
	projected := map[int][]float64{}
	for x, texts := range expected {
		for i, known := range texts {
			row := (*x)[i*750 : (i+1)*750]
			for k := range 15 {
				got := row[k*50 : (k+1)*50]
				if k >= len(known) {
					if slices.ContainsFunc(got, func(v float64) bool { return v != 0 }) {
						t.Errorf("text %v: word %d is not there, but has %v", known, k, got[:3])
					}
					continue
				}
				if old, ok := projected[known[k]]; ok && !slices.Equal(old, got) {
					t.Errorf("word %d has two vectors", known[k])
				}
				projected[known[k]] = got
			}
		}
	}
	for a, x := range projected {
		for b, y := range projected {
			want, got := 0.0, 0.0
			for j := range vectors[a] {
				d := float64(vectors[a][j]-vectors[b][j]) / 8
				want += d * d
			}
			for j := range x {
				got += (x[j] - y[j]) * (x[j] - y[j])
			}
			if math.Abs(got-want) > 1e-6*(1+want) {
				t.Fatalf("words %d and %d are %v apart, want %v", a, b, math.Sqrt(got), math.Sqrt(want))
			}
		}
	}
	if len(projected) != 2+6+7+15 || !strings.Contains(f.Report.String(), "keep 100.0 % of its variance") {
		t.Errorf("%d words; %s", len(projected), f.Report)
	}
}

// TestProjectionIsAlongTheWidest directions, widest first, whatever the mean.
func TestProjectionIsAlongTheWidest(t *testing.T) {
	g := &glove{place: map[string]int{}, size: 3}
	for i, v := range [][]float32{{5, 9, 1}, {5, -1, 1}, {5, 4, 3}, {5, 4, -1}} {
		g.place[fmt.Sprint(i)] = i
		g.vectors = append(g.vectors, v...)
	}
	p, err := g.project(2)
	if err != nil {
		t.Fatal(err)
	}
	// Around (5, 4, 1): 5 up and down along the second axis, 2 along the third.
	for i, want := range [][]float64{{5, 0}, {-5, 0}, {0, 2}, {0, -2}} {
		if got := p.apply(nil, g.vector(i)); math.Abs(got[0]-want[0])+math.Abs(got[1]-want[1]) > 1e-9 {
			t.Errorf("vector %d became %v, want %v", i, got, want)
		}
	}
	if one, err := g.project(1); err != nil || math.Abs(one.captured-25.0/29) > 1e-12 {
		t.Errorf("one direction keeps %v, want 25/29: %v", one.captured, err)
	}
	if _, err := g.project(4); err == nil {
		t.Error("four directions of three values")
	}
}

// TestNewsThatAreThereTwice: whatever stands in the test part is left out, with a title or
// without, and of an article that both samples have, the one with its title stays.
func TestNewsThatAreThereTwice(t *testing.T) {
	folder := t.TempDir()
	words, vectors := numberedWords(90)
	writeNews(t, folder,
		"1,Title,it is a test text here\n2,Other,short one\n",
		"3,A title: it is a test text here\n1,Rare title: the same article in both\n4,ends with short one\n4,ends with short one\n",
		"2,The SAME article in both.\n1,It is a (test) text here!\n2,short one\n3,alone with six words in it\n3,alone with six words in it\n", gloveFile(words, vectors))
	p, err := readNews(filepath.Join(folder, "agnews"))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, text := range p.train {
		kept = append(kept, text.words)
	}
	if want := []string{"rare title the same article in both", "ends with short one", "alone with six words in it"}; !slices.Equal(kept, want) {
		t.Errorf("left to train on are %q, want %q", kept, want)
	}
	if p.report.Count(leftInTest) != 3 || p.report.Count(leftTwice) != 3 || p.report.Rows != 11 || len(p.test) != 2 {
		t.Errorf("%s", &p.report)
	}
}

// TestNewsRefuse: files that are not what they should be are refused, with their place.
func TestNewsRefuse(t *testing.T) {
	words, vectors := numberedWords(60)
	good := gloveFile(words, vectors)
	change := func(at int, to ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[at:], to)
		return out
	}
	const row = "1,w1\n"
	for name, c := range map[string]struct {
		test, bare string
		vectors    []byte
		says       string
	}{
		"class 5":          {"5,a,b\n", row, good, "line 2, column label: is \"5\"; allowed: 1 to 4"},
		"class 12":         {"12,a,b\n", row, good, "column label"},
		"no class":         {",a,b\n", row, good, "column label"},
		"no texts":         {"1,a,b\n", "", good, "no texts"},
		"no vectors":       {"1,a,b\n", row, nil, "no vectors of words"},
		"other vectors":    {"1,a,b\n", row, change(0, 'X'), "begins with \"XLV1\""},
		"many words":       {"1,a,b\n", row, change(7, 0xff), "allowed: up to"},
		"a word less":      {"1,a,b\n", row, change(4, 59), "60 words in"},
		"cut words":        {"1,a,b\n", row, good[:40], "the header says"},
		"a word twice":     {"1,a,b\n", row, change(16, 'w', '1', '\n', 'w', '1'), "is empty or there twice"},
		"cut vectors":      {"1,a,b\n", row, good[:len(good)-1], "the vector of \"w59\""},
		"not a number":     {"1,a,b\n", row, change(len(good)-2, 1, 0x7e), "value 59 of \"w59\" is NaN"},
		"infinite":         {"1,a,b\n", row, change(len(good)-2, 0, 0x7c), "is +Inf"},
		"bytes at the end": {"1,a,b\n", row, append(bytes.Clone(good), 0), "goes on behind the last vector"},
	} {
		folder := t.TempDir()
		writeNews(t, folder, c.test, row, c.bare, c.vectors)
		_, err := NewFolder(folder).Load(config.Data{Kind: "agnews"}, 1)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), ".gz") {
			t.Errorf("%s: %v, wanted %q", name, err, c.says)
		}
	}
	short, few := numberedWords(60)
	for i := range few {
		few[i] = few[i][:49]
	}
	folder := t.TempDir()
	writeNews(t, folder, "1,a,b\n", row, row, gloveFile(short, few))
	if _, err := NewFolder(folder).Load(config.Data{Kind: "agnews"}, 1); err == nil || !strings.Contains(err.Error(), "cannot be projected to 50 values") {
		t.Errorf("vectors of 49 values: %v", err)
	}
}

func FuzzReadGlove(f *testing.F) {
	words, vectors := numberedWords(3)
	f.Add(gloveFile(words, vectors))
	f.Fuzz(func(t *testing.T, raw []byte) {
		g, err := readGlove("fuzz", bytes.NewReader(raw))
		if err == nil && len(g.vectors) != len(g.place)*g.size {
			t.Fatalf("%d values for %d words of %d", len(g.vectors), len(g.place), g.size)
		}
	})
}

func TestFromHalf(t *testing.T) {
	for bits, want := range map[uint16]float32{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x3555: 0.333251953125, 0x7bff: 65504, 1: 0x1p-24, 0x83ff: -1023 * 0x1p-24, 0x0400: 0x1p-14,
	} {
		if got := fromHalf(bits); got != want {
			t.Errorf("%#04x is %v, want %v", bits, got, want)
		}
	}
	for eighths := -90; eighths <= 90; eighths++ {
		if got := fromHalf(toHalf(eighths)); got != float32(eighths)/8 {
			t.Errorf("%d eighths became %v", eighths, got)
		}
	}
}

// TestRealNews: the first words of the first text of the test part, and what PCA keeps.
func TestRealNews(t *testing.T) {
	texts, err := readNews(filepath.Join(realData(t), "agnews"))
	if err != nil {
		t.Fatal(err)
	}
	if got := texts.test[0].words; got != "fears for t n pension after talks unions representing workers at turner newall say they are disappointed after talks with stricken parent firm federal mogul" {
		t.Errorf("the first text is %q", got)
	}
	f, err := NewFolder(realData(t)).Load(config.Data{Kind: "agnews"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if text := f.Report.String(); f.Train[0].Held.Len() != 7600 || f.Report.Rows != 8000+4999+7600 || !strings.Contains(text, "keep 70.9 % of its variance") {
		t.Errorf("%d in the test part; %s", f.Train[0].Held.Len(), text)
	}
}

// TestListOfWordsDrawnFromTexts: a list of which the texts have most words tells of them,
// and every number says so; one with many others is GloVe's own and does not.
func TestListOfWordsDrawnFromTexts(t *testing.T) {
	words, vectors := numberedWords(90)
	text := func(n int) string { return strings.Join(words[:n], " ") + "\n" }
	for n, listed := range map[int]bool{45: false, 46: true} { // some of them in the test part alone
		folder := t.TempDir()
		writeNews(t, folder, "4,x,"+text(n), "1,"+text(20), "3,"+text(30), gloveFile(words, vectors))
		f, err := NewFolder(folder).Load(config.Data{Kind: "agnews"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if said := slices.Equal(f.NotCovered, []string{newsListed}); said != listed || len(f.NotCovered) > 1 {
			t.Errorf("%d of 90 words: not covered %q", n, f.NotCovered)
		}
	}
}
