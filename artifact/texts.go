package artifact

import (
	"context"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/source"
)

// Texts are new files of text, and whose they are.
type Texts struct {
	// Path is a file, or a folder of a .txt or .txt.gz file a client, as in training.
	Path   string
	Client string // all text is this client's; empty: files are clients by name
	// Cluster is the model that clients get which were not there; nil: the one that fits
	// the rest of their text best.
	Cluster *int
	// Merges is the file of pairs that the models were trained with: data.merges. Empty:
	// GPT-2's, in the folder of real data.
	Merges string
	Folder *data.Folder
}

// EvaluateTexts judges models of words by how well they foresee the next word of text. What
// is left behind the last whole row of a file is not judged.
func (m *Model) EvaluateTexts(ctx context.Context, t Texts) (Evaluation, error) {
	if m.Shape.Vocabulary == 0 {
		return Evaluation{}, fmt.Errorf("%s: its models are of %s, and take no text", m.Path, m.Examples())
	}
	files, err := source.TextFiles(t.Path)
	if err != nil {
		return Evaluation{}, err
	}
	e := &evaluating{m: m, cluster: t.Cluster, place: map[string]int{}}
	d := config.Data{Vocabulary: m.Shape.Vocabulary, Context: m.Shape.Features, Merges: t.Merges}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return Evaluation{}, err
		}
		rows, err := source.TextRows(t.Folder, d, file.Path)
		if err != nil {
			return Evaluation{}, err
		}
		name := file.Client
		if t.Client != "" {
			name = t.Client
		}
		a, err := e.client(name)
		if err != nil {
			return Evaluation{}, err
		}
		a.x, a.y = append(a.x, rows.X...), append(a.y, rows.Y...)
	}
	if err := m.each(len(e.clients), func(w *worker, i int) error { return e.clients[i].answer(w) }); err != nil {
		return Evaluation{}, err
	}
	for _, a := range e.clients {
		a.targets = a.y
	}
	return e.figures()
}
