package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/bytepair"
)

func init() {
	data.Register(data.Kind{
		DataKind: config.DataKind{
			Name: "text", Method: "central", OwnTest: true,
			Keys:     []string{"source", "vocabulary", "context", "merges", "test_share", "train_limit", "not_public"},
			Settings: data.TextSettings,
			Settle:   data.SettleText,
		},
		Get: "nothing is built in but GPT-2's pairs, gpt2-bpe/vocab.bpe.gz: name your own text in data.source, and pairs in data.merges if you have some (docs/data.md)",
		Check: func(c *config.Checker, d config.Data) {
			data.CheckText(c, d)
			s := d.Source
			s.Path = ""
			c.Require(s == config.Source{}, "data.source", "has keys of tables; allowed for text: path")
			for i, key := range d.NotPublic {
				c.Require(strings.TrimSpace(key) != "", fmt.Sprintf("data.not_public.%d", i), "is empty; name a key of this file, for example data.merges")
			}
		},
		Shape: data.TextShape,
		Load: func(f *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
			read, err := data.Kept(f, readingKey(d), func() (*textRows, error) { return readTexts(f, d) })
			if err != nil {
				return nil, err
			}
			return data.TextFederation(d, seed, read.words, read.report, read.clients...)
		},
		Words: func(d config.Data) string {
			return fmt.Sprintf("Text of one's own, UTF-8 files of a client each, in rows of %d words out of %d", d.Context, d.Vocabulary)
		},
	})
}

// textEndings are those of the files of a folder that are read.
var textEndings = []string{".txt", ".txt.gz"}

// TextFile is a client's text.
type TextFile struct{ Client, Path string }

// TextFiles are those that a path names: a file is one client, and of a folder every .txt
// and .txt.gz file is. What else lies there is left alone.
func TextFiles(path string) ([]TextFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the text: %w", err)
	}
	if !info.IsDir() {
		name, _ := textClient(path)
		return []TextFile{{name, path}}, nil
	}
	inside, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read the text: %w", err)
	}
	var files []TextFile
	names := map[string]string{}
	for _, f := range inside {
		name, ok := textClient(f.Name())
		if !ok || f.IsDir() || hidden(f.Name()) {
			continue
		}
		if other, twice := names[name]; twice {
			return nil, fmt.Errorf("%s: %s and %s are both of the client %q; keep one of them, or rename it", path, other, f.Name(), name)
		}
		names[name] = f.Name()
		files = append(files, TextFile{name, filepath.Join(path, f.Name())})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s is a folder without a file that ends in %s; put a client's text into each", path, strings.Join(textEndings, " or "))
	}
	return files, nil
}

// textClient is whose file it is; ok says that it ends as text does.
func textClient(file string) (name string, ok bool) {
	name = filepath.Base(file)
	for _, ending := range textEndings {
		if cut, ok := strings.CutSuffix(name, ending); ok && cut != "" {
			return cut, true
		}
	}
	return name, false
}

// textRows is all clients' text, cut into rows of words.
type textRows struct {
	clients []data.Client
	words   *bytepair.Encoding
	report  data.LoadReport
}

// readTexts reads every client's text, and finds all that is wrong with it at once.
func readTexts(f *data.Folder, d config.Data) (*textRows, error) {
	if d.Source.Path == "" {
		return nil, fmt.Errorf("data.source.path is missing: name a file of text, or a folder that has a .txt or .txt.gz file a client")
	}
	files, err := TextFiles(d.Source.Path)
	if err != nil {
		return nil, err
	}
	e, err := f.Encoding(d)
	if err != nil {
		return nil, err
	}
	out := &textRows{words: e, report: data.LoadReport{Source: "text"}}
	var wrong []error
	for _, file := range files {
		rows, err := TextRows(e, d.Context, file.Path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		out.clients = append(out.clients, data.Client{Name: file.Client, Rows: rows})
		out.report.Rows += len(rows.Y)
	}
	out.report.Kept = out.report.Rows
	return out, errors.Join(wrong...)
}

// TextRows is a file of text, cut into rows of so many words.
func TextRows(e *bytepair.Encoding, context int, path string) (data.Rows, error) {
	text, err := data.ReadText(path)
	if err != nil {
		return data.Rows{}, err
	}
	if what := notText(text); what != "" {
		return data.Rows{}, fmt.Errorf("%s: %s; save it as UTF-8, or leave it out", path, what)
	}
	rows := data.WordRows(e, text, context)
	if len(rows.Y) == 0 {
		return data.Rows{}, fmt.Errorf("%s has %d words, which is less than one row of data.context %d; set a shorter context, or leave it out", path, len(e.Encode(nil, text)), context)
	}
	return rows, nil
}
