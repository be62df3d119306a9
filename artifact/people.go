package artifact

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// People are persons whose risks are asked for, by who holds them.
type People struct {
	// Clients are the holders: the days up to now of their people, and labels, if these are
	// Known, of the week after.
	Clients []*data.Client
	Known   bool
	// Client is whose model all of them get; empty: everybody gets its holder's, or else what
	// the method gives somebody who was not there.
	Client string
}

// ForPeople says that the models foretell persons' risks.
func (m *Model) ForPeople() bool { return m.Shape.Windows > 0 }

// PredictPeople writes everybody's risk as CSV: its number, its holder if there are
// several, the risk, and whether it falls ill where that is known. Lines are written as they
// come. After an error what was written is of no use.
func (m *Model) PredictPeople(ctx context.Context, w io.Writer, p People) (Predictions, error) {
	if !m.ForPeople() {
		return Predictions{}, fmt.Errorf("%s: its models are no models of people, and foretell no risks", m.Path)
	}
	names := []string{"pid"}
	if len(p.Clients) > 1 {
		names = append(names, "client")
	}
	if names = append(names, "risk"); p.Known {
		names = append(names, "infected")
	}
	if _, err := w.Write(headerLine(names)); err != nil {
		return Predictions{}, fmt.Errorf("write the predictions: %w", err)
	}
	var made Predictions
	for _, c := range p.Clients {
		name := p.Client
		if _, own := m.clients[c.Name]; name == "" && (own || len(p.Clients) > 1) {
			name = c.Name
		}
		choice, err := m.Choose(name)
		if err != nil {
			return Predictions{}, err
		}
		if c.People == nil || c.People.Inputs() != m.Shape.Features || p.Known && len(c.Y) != c.Len() {
			return Predictions{}, fmt.Errorf("%s: %s holds no people of %d inputs that this model could read; use the data that it was trained on, or a folder of the same files", m.Path, c.Name, m.Shape.Features)
		}
		if err := m.writeRisks(ctx, w, c, &choice, p); err != nil {
			return Predictions{}, err
		}
		made.Rows += c.Len()
		made.Models = append(made.Models, Used{Client: c.Name, Rows: c.Len(), Model: choice.String(), Why: choice.Why})
	}
	return made, nil
}

// batchChunks is how many chunks of persons are answered before they are written.
const batchChunks = 64

// writeRisks writes a holder's people, chunks of them answered on all cores.
func (m *Model) writeRisks(ctx context.Context, w io.Writer, c *data.Client, choice *Choice, p People) error {
	var holder []byte
	if len(p.Clients) > 1 {
		holder = append(appendCell(nil, c.Name), ',')
	}
	texts := make([][]byte, batchChunks)
	for from := 0; from < c.Len(); from += batchChunks * chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunks := (min(c.Len()-from, batchChunks*chunkRows) + chunkRows - 1) / chunkRows
		err := m.each(chunks, func(worker *worker, i int) error {
			first := from + i*chunkRows
			worker.meet(c, first, min(first+chunkRows, c.Len()))
			outputs, _, err := worker.raw(choice)
			if err != nil {
				return err
			}
			line := texts[i][:0]
			for k, out := range outputs {
				line = append(strconv.AppendInt(line, c.People.ID(first+k), 10), ',')
				line = append(line, holder...)
				_, risk := m.probabilities(out)
				if out == model.BeyondDoubt {
					risk = 0
				}
				line = strconv.AppendFloat(line, risk, 'g', 6, 64)
				if p.Known {
					line = strconv.AppendInt(append(line, ','), int64(c.Y[first+k]), 10)
				}
				line = append(line, '\n')
			}
			texts[i] = line
			return nil
		})
		if err != nil {
			return err
		}
		for _, text := range texts[:chunks] {
			if _, err := w.Write(text); err != nil {
				return fmt.Errorf("write the predictions: %w", err)
			}
		}
	}
	return nil
}

// meet readies some of a holder's people for the learner.
func (w *worker) meet(c *data.Client, from, to int) {
	w.places = w.places[:0]
	for i := from; i < to; i++ {
		w.places = append(w.places, i)
	}
	bare := data.Client{Rows: data.Rows{Features: c.Features}, People: c.People}
	w.client = bare.Pick(w.places)
}
