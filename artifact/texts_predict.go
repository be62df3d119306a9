package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/coterie-fl/coterie/data"
)

// mostScores is how many scores of words a worker holds at a time.
const mostScores = 1 << 22

// PredictTexts writes, as CSV, how every row of text is foreseen: whose it is, its number,
// the mean of -log p over its words and e to that, and the likeliest word behind its end
// with that word's probability. What is left behind the last whole row of a file has no
// line. After an error what was written is of no use.
func (m *Model) PredictTexts(ctx context.Context, w io.Writer, t Texts) (Predictions, error) {
	clients, err := m.TextClients(ctx, t)
	if err != nil {
		return Predictions{}, err
	}
	words, err := m.words(t.Merges, t.Folder)
	if err != nil {
		return Predictions{}, err
	}
	if _, err := w.Write(headerLine([]string{"client", "row", "log loss", "perplexity", "next", "probability"})); err != nil {
		return Predictions{}, fmt.Errorf("write the predictions: %w", err)
	}
	var made Predictions
	for i := range clients {
		if err := ctx.Err(); err != nil {
			return Predictions{}, err
		}
		client := &clients[i]
		c, err := m.chooseTexts(client, t.Cluster)
		if err != nil {
			return Predictions{}, err
		}
		n := client.Len()
		foreseen := make([]foreseen, n)
		if err := m.eachText(client, func(w *worker, from, to int) error { return w.foresee(foreseen[from:to], &c) }); err != nil {
			return Predictions{}, err
		}
		var lines []byte
		for row, f := range foreseen {
			lines = appendCell(lines, client.Name)
			lines = strconv.AppendInt(append(lines, ','), int64(row+1), 10)
			for _, v := range []float64{f.loss, math.Exp(f.loss)} {
				lines = strconv.AppendFloat(append(lines, ','), v, 'g', 9, 64)
			}
			lines = appendCell(append(lines, ','), words.Decode([]int32{f.next}))
			lines = append(strconv.AppendFloat(append(lines, ','), f.probability, 'g', 9, 64), '\n')
		}
		if _, err := w.Write(lines); err != nil {
			return Predictions{}, fmt.Errorf("write the predictions: %w", err)
		}
		made.Rows += n
		made.Models = append(made.Models, Used{Client: client.Name, Rows: n, Model: c.String(), Why: c.Why})
	}
	return made, nil
}

// chooseTexts is the model for a client's text. The next words are its labels: of clusters
// it is the one that fits them.
func (m *Model) chooseTexts(client *data.Client, cluster *int) (Choice, error) {
	c, needs := m.Choose(client.Name)
	if !errors.Is(needs, ErrNeedsLabels) {
		return c, needs
	}
	if cluster != nil {
		return m.Cluster(*cluster)
	}
	sums, each := make([]float64, m.Clusters()), make([]float64, client.Len())
	for k := range sums {
		c, err := m.Cluster(k)
		if err != nil {
			return c, err
		}
		if err := m.eachText(client, func(w *worker, from, to int) error { return w.losses(each[from:to], &c) }); err != nil {
			return c, err
		}
		for _, loss := range each {
			sums[k] += loss
		}
	}
	return m.fitting(sums, client.Len())
}

// eachText lays a client's rows of text before workers, on all cores.
func (m *Model) eachText(client *data.Client, do func(w *worker, from, to int) error) error {
	n, context := client.Len(), m.Shape.Features
	chunk := max(1, min(chunkRows, mostScores/(context*m.Shape.Vocabulary)))
	return m.each((n+chunk-1)/chunk, func(w *worker, i int) error {
		from, to := i*chunk, min((i+1)*chunk, n)
		w.client = data.Client{Rows: data.Rows{X: client.X[from*context : to*context], Y: client.Y[from:to], Features: context}}
		return do(w, from, to)
	})
}

// foreseen is what a model says of a row of text.
type foreseen struct {
	loss        float64
	next        int32 // the likeliest word behind the row
	probability float64
}

// foresee sets dst to what a model says of the rows that were laid.
func (w *worker) foresee(dst []foreseen, c *Choice) error {
	losses := make([]float64, len(dst))
	if err := w.losses(losses, c); err != nil {
		return err
	}
	scores, each, err := w.raw(c)
	if err != nil {
		return err
	}
	vocabulary := w.m.Shape.Vocabulary
	for i := range dst {
		last := scores[(i+1)*each-vocabulary : (i+1)*each]
		next := largestAt(last)
		sum := 0.0
		for _, v := range last {
			sum += math.Exp(v - last[next])
		}
		dst[i] = foreseen{losses[i], int32(next), 1 / sum}
	}
	return nil
}
