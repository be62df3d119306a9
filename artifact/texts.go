package artifact

import (
	"context"

	"github.com/coterie-fl/coterie/data"
)

// Texts are new files of text, and whose they are.
type Texts struct {
	// Path is a file, or a folder of a .txt or .txt.gz file a client, as in training.
	Path   string
	Client string // all text is this client's; empty: files are clients by name
	// Cluster is the model that clients get which were not there; nil: the one that fits
	// the rest of their text best.
	Cluster *int
	// Merges is the file of pairs that the models were trained with, data.merges. Empty:
	// the one that the folder carries.
	Merges string
	Folder *data.Folder
}

// EvaluateTexts judges models of words by how well they foresee the next word of text. What
// is left behind the last whole row of a file is not judged.
func (m *Model) EvaluateTexts(ctx context.Context, t Texts) (Evaluation, error) {
	clients, err := m.TextClients(ctx, t)
	if err != nil {
		return Evaluation{}, err
	}
	e := &evaluating{m: m, cluster: t.Cluster, place: map[string]int{}}
	for i := range clients {
		a, err := e.client(clients[i].Name)
		if err != nil {
			return Evaluation{}, err
		}
		a.x, a.y = clients[i].X, clients[i].Y
	}
	if err := m.each(len(e.clients), func(w *worker, i int) error { return e.clients[i].answer(w) }); err != nil {
		return Evaluation{}, err
	}
	for _, a := range e.clients {
		a.targets = a.y
	}
	return e.figures()
}
