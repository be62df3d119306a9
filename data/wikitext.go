package data

import (
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/bytepair"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	Register(Kind{
		DataKind: config.DataKind{
			Name: "wikitext", Method: "central", OwnTest: true, Keys: []string{"vocabulary", "context", "merges", "samples", "test_share"},
			Settings: func(r *config.Run) {
				r.Data.Samples = 4000
				TextSettings(r)
				if r.Algorithm.Mode == "sound" {
					r.Privacy.PublicSize = wikiSize(r.Data)
				}
			},
			Settle: func(r *config.Run, given func(path string) bool) {
				SettleText(r, given)
				if r.Algorithm.Mode == "sound" && r.Privacy.Protects == "example" && !given("privacy.public_size") {
					r.Privacy.PublicSize = wikiSize(r.Data)
				}
			},
		},
		Get:   "WikiText-2's validation and test parts and GPT-2's pairs: wikitext2/wiki.{valid,test}.tokens.gz, gpt2-bpe/vocab.bpe.gz",
		Check: CheckText,
		Shape: TextShape,
		Load:  loadWiki,
		Words: func(d config.Data) string {
			return fmt.Sprintf("WikiText-2, articles of Wikipedia in rows of %d words out of %d, all with one client", d.Context, d.Vocabulary)
		},
	})
}

// wikiSize is how many rows to train on are counted with: a little fewer than the share
// of all that is not held out. It follows from the file alone.
func wikiSize(d config.Data) int { return int(0.97 * (1 - d.TestShare) * float64(d.Samples)) }

// wikiText is both parts, one after another.
type wikiText struct{ text string }

// loadWiki is the federation of one client that holds some rows of WikiText-2, drawn by
// the seed, and holds some of them out.
func loadWiki(f *Folder, d config.Data, seed uint64) (*Federation, error) {
	all, err := once(f, "wikitext", []string{"wikitext2"}, func(folder string) (*wikiText, error) {
		valid, err := ReadText(filepath.Join(folder, "wikitext2", "wiki.valid.tokens.gz"))
		if err != nil {
			return nil, err
		}
		test, err := ReadText(filepath.Join(folder, "wikitext2", "wiki.test.tokens.gz"))
		return &wikiText{valid + test}, err
	})
	if err != nil {
		return nil, err
	}
	e, err := f.Encoding(d)
	if err != nil {
		return nil, err
	}
	rows := WordRows(e, all.text, d.Context)
	report := LoadReport{Source: "wikitext", Rows: len(rows.Y)}
	rows = someRows(rows, d.Samples, seed)
	return TextFederation(d, seed, e, report, Client{Name: everybody, Rows: rows})
}

// someRows are so many, drawn by the seed, in an order that it draws.
func someRows(rows Rows, most int, seed uint64) Rows {
	order := places(len(rows.Y))
	family := rng.NewFamily(seed, "rows of text")
	family.Stream(0, 0).Shuffle(order)
	if most > 0 {
		order = order[:min(most, len(order))]
	}
	out := Rows{Features: rows.Features, X: make([]float64, 0, len(order)*rows.Features), Y: make([]float64, len(order))}
	for _, i := range order {
		out.X = append(out.X, rows.X[i*rows.Features:(i+1)*rows.Features]...)
	}
	return out
}

// TextFederation holds a share of every client's rows of words out.
func TextFederation(d config.Data, seed uint64, words *bytepair.Encoding, report LoadReport, clients ...Client) (*Federation, error) {
	silos := Silos{All: clients, Features: d.Context, Report: report, NotCovered: d.TakenFromData()}
	f, err := silos.Federation(SiloOptions{Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: Unscaled})
	if err != nil {
		return nil, err
	}
	f.Vocabulary, f.Words = d.Vocabulary, words
	f.Report.Kept = 0
	for i := range f.Train {
		f.Report.Kept += f.Train[i].Len() + f.Train[i].Held.Len()
	}
	return f, nil
}
