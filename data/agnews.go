package data

import (
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
)

// AG News as paper 001, table 3.7, has it: the first words of a text, each as a vector,
// one after another.
const (
	newsClasses = 4
	newsWords   = 15
	newsVector  = 50
	// newsSize is how many of the stored texts are left to train on: a test counts them.
	newsSize = 12572
)

func init() {
	kind := centralKind("agnews", newsSize, func(r *config.Run) {
		r.Model = config.Model{Kind: "network", Name: "agnews"}
		r.Algorithm.Local.Step = 10
	})
	kind.Settle = settleCentral(0.3)
	Register(Kind{
		Get:      "AG News and GloVe's vectors of its words: agnews/ag_news_{test,train_sample5000_titled,train_sample8000}.csv.gz, glove/glove6b_100d_agnews_f16.bin.gz",
		DataKind: kind,
		Shape:    wholeShape(Shape{Features: newsWords * newsVector, Classes: newsClasses}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			p, err := once(f, "agnews", []string{"agnews", "glove"}, loadNews)
			if err != nil {
				return nil, err
			}
			whole, err := heldByOne(d, seed, newsClasses, p.report, Client{Rows: p.train}, Client{Rows: p.test})
			if err == nil && p.listed {
				whole.NotCovered = append(whole.NotCovered, newsListed)
			}
			return whole, err
		},
		Words: func(config.Data) string {
			return "AG News, texts of four kinds of news as vectors of their first 15 words, all in one place"
		},
	})
}

// newsRows are both parts of AG News.
type newsRows struct {
	train, test Rows
	report      LoadReport
	listed      bool // the list of words was drawn from the texts
}

// newsListed is what such a list leaves out of every number: one text less can leave words
// out of it, which moves the rows of all others.
const newsListed = "the projection of words' vectors: the stored list of words was drawn from these texts (a list of GloVe's own, which has words that no text has, is public)"

// loadNews reads texts and vectors from the folder of real data.
func loadNews(folder string) (*newsRows, error) {
	texts, err := readNews(filepath.Join(folder, "agnews"))
	if err != nil {
		return nil, err
	}
	vectors, err := readFile(filepath.Join(folder, "glove", "glove6b_100d_agnews_f16.bin.gz"), readGlove)
	if err != nil {
		return nil, err
	}
	p, err := vectors.project(newsVector)
	if err != nil {
		return nil, fmt.Errorf("agnews: %w", err)
	}
	v := newsVectors{glove: vectors, projection: p, known: map[int][]float64{}}
	out := &newsRows{train: v.rows(texts.train), test: v.rows(texts.test), report: texts.report, listed: vectors.listedFrom(texts.train, texts.test)}
	out.report.Notes = append(out.report.Notes,
		fmt.Sprintf("%d values of a word's vector are projected to %d by principal components of the list of words, which keep %.1f %% of its variance", vectors.size, newsVector, 100*p.captured))
	return out, nil
}

// newsVectors turns words into what a network reads.
type newsVectors struct {
	*glove
	*projection
	known map[int][]float64 // projected, by place
}

// rows are texts as rows: the vectors of the first words that have one, and zeros where a
// text has fewer, which is where the mean of all words lies.
func (v *newsVectors) rows(texts []newsText) Rows {
	const width = newsWords * newsVector
	out := Rows{Features: width, X: make([]float64, len(texts)*width), Y: make([]float64, len(texts))}
	for i, t := range texts {
		out.Y[i] = float64(t.class)
		at := i * width
		for word := range knownWords(t.words, v.place) {
			if at == (i+1)*width {
				break
			}
			values, ok := v.known[word]
			if !ok {
				values = v.apply(nil, v.vector(word))
				v.known[word] = values
			}
			at += copy(out.X[at:], values)
		}
	}
	return out
}
