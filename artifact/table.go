package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/source"
)

// Table is new rows, and whose they are.
type Table struct {
	Source config.Source // its client column, if it names one, says whose every row is
	Files  bool          // without that column every file is the client of its name
	Client string        // all rows are this client's; empty: a newcomer's
	// Cluster is the model that clients get which were not there; nil: the one that fits
	// their labelled rows best.
	Cluster *int
	Keep    []string // columns that predictions repeat; none: they have the row's number
}

// several says that rows may be of several clients.
func (t *Table) several() bool { return t.Source.Client != "" || t.Files }

// Used is a model that a client's rows were given to.
type Used struct {
	Client string `json:"client"` // empty: nobody is named
	Model  string `json:"model"`
	Why    string `json:"why"`
	Rows   int    `json:"rows"`
}

// Predictions are what PredictTable has written.
type Predictions struct {
	Rows   int    `json:"rows"`
	Models []Used `json:"models"`
}

// chooser finds the models of a table's rows.
type chooser struct {
	m       *Model
	t       *Table
	fitted  map[string]*fitting // of clients that were not there
	place   map[string]int      // in choices and used
	choices []Choice
	used    []Used
}

// fitting is what the labelled rows of a newcomer say about the clusters.
type fitting struct {
	losses []float64
	rows   int
}

// choose is the place of the model for a client's rows.
func (c *chooser) choose(client string) (int, error) {
	if at, ok := c.place[client]; ok {
		return at, nil
	}
	choice, err := c.m.Choose(client)
	if errors.Is(err, ErrNeedsLabels) {
		switch fit := c.fitted[client]; {
		case c.t.Cluster != nil:
			choice, err = c.m.Cluster(*c.t.Cluster)
		case fit != nil:
			choice, err = c.m.fitting(fit.losses, fit.rows)
		}
	}
	if err != nil {
		return 0, err
	}
	at := len(c.choices)
	c.place[client] = at
	c.choices, c.used = append(c.choices, choice), append(c.used, Used{Client: client, Model: choice.String(), Why: choice.Why})
	return at, nil
}

// newChooser looks first at labelled rows where clients which were not there choose by
// them. A table without the target is no fault yet: perhaps nobody needs it.
func (m *Model) newChooser(ctx context.Context, t *Table) (*chooser, error) {
	c := &chooser{m: m, t: t, fitted: map[string]*fitting{}, place: map[string]int{}}
	_, known := m.clients[t.Client]
	if m.Newcomer != RoleCluster || t.Cluster != nil || !t.several() && (known || t.Client == "" && len(m.clients) == 1) {
		return c, nil
	}
	r := m.reading(t)
	r.NoTarget, r.LeaveOut, r.Keep = false, true, nil
	features := m.Shape.Features
	var x, y []float64
	_, err := r.Each(ctx, func(b *source.Batch) error {
		for from := 0; from < b.Rows; {
			name, to := c.t.client(b, from), from+1
			for to < b.Rows && c.t.client(b, to) == name {
				to++
			}
			if _, known := m.clients[name]; !known {
				x, y = append(x[:0], b.X[from*features:to*features]...), append(y[:0], b.Y[from:to]...)
				fit := c.fitted[name]
				if fit == nil {
					fit = &fitting{}
					c.fitted[name] = fit
				}
				var err error
				if fit.losses, err = m.addLosses(fit.losses, x, y); err != nil {
					return err
				}
				fit.rows += to - from
			}
			from = to
		}
		return nil
	})
	var faults *source.Faults
	if errors.As(err, &faults) && slices.ContainsFunc(faults.First, func(f source.Fault) bool { return f.Header && f.Column == m.Encoding.Target }) {
		c.fitted = nil
		return c, nil
	}
	return c, err
}

// client is whose a batch's row is.
func (t *Table) client(b *source.Batch, row int) string {
	if t.several() {
		return b.Clients[row]
	}
	return t.Client
}

func (m *Model) reading(t *Table) source.Reading {
	return source.Reading{Source: t.Source, Key: "--data", Encoding: m.Encoding, NoTarget: true, Keep: t.Keep, Client: t.Client}
}

// PredictTable answers every row of a table and writes the answers as CSV: the columns
// that are kept, every class's probability and the chosen class, or the number; and the
// model, where rows are of several clients. After an error what was written is of no use.
func (m *Model) PredictTable(ctx context.Context, w io.Writer, t Table) (Predictions, error) {
	if err := m.reads(&t); err != nil {
		return Predictions{}, err
	}
	c, err := m.newChooser(ctx, &t)
	if err != nil {
		return Predictions{}, err
	}
	p := &predicting{chooser: c, w: w}
	if err := p.header(); err != nil {
		return Predictions{}, err
	}
	r := m.reading(&t)
	if _, err := r.Each(ctx, p.take); err != nil {
		return Predictions{}, err
	}
	return Predictions{Rows: p.rows, Models: c.used}, nil
}

// predicting writes predictions, batch after batch.
type predicting struct {
	*chooser
	w       io.Writer
	rows    int
	classes [][]byte // as cells
	models  [][]byte // as cells, by choice
	at      []int    // of every row of a batch: its choice
	texts   [][]byte // of every chunk of a batch
}

// header writes the first line.
func (p *predicting) header() error {
	names := slices.Clone(p.t.Keep)
	if len(names) == 0 {
		names = []string{"row"}
	}
	kept := len(names)
	p.classes = p.m.classCells()
	names = append(names, p.m.answerNames()...)
	if p.t.several() {
		names = append(names, "model")
	}
	for _, name := range names[:kept] {
		if slices.Contains(names[kept:], name) {
			return fmt.Errorf("the column %q cannot be kept: predictions have one of that name", name)
		}
	}
	_, err := p.w.Write(headerLine(names))
	return err
}

// take answers a batch: models are chosen row by row, then chunks of rows are answered
// and put into words on all cores, and written in their order.
func (p *predicting) take(b *source.Batch) error {
	p.at = p.at[:0]
	last := -1
	for i := range b.Rows {
		name := p.t.client(b, i)
		if last < 0 || p.used[last].Client != name {
			at, err := p.choose(name)
			if err != nil {
				return err
			}
			last = at
			for len(p.models) < len(p.choices) {
				p.models = append(p.models, appendCell(nil, p.choices[len(p.models)].String()))
			}
		}
		p.used[last].Rows++
		p.at = append(p.at, last)
	}
	chunks := (b.Rows + chunkRows - 1) / chunkRows
	for len(p.texts) < chunks {
		p.texts = append(p.texts, nil)
	}
	err := p.m.each(chunks, func(w *worker, i int) (err error) {
		from, to := i*chunkRows, min((i+1)*chunkRows, b.Rows)
		p.texts[i], err = p.words(p.texts[i][:0], w, b, from, to)
		return err
	})
	if err != nil {
		return err
	}
	for _, text := range p.texts[:chunks] {
		if _, err := p.w.Write(text); err != nil {
			return fmt.Errorf("write the predictions: %w", err)
		}
	}
	p.rows += b.Rows
	return nil
}

// words appends the lines of some of a batch's rows.
func (p *predicting) words(line []byte, w *worker, b *source.Batch, from, to int) ([]byte, error) {
	each := p.m.Outputs()
	answers, err := w.mixed(b.X[from*p.m.Shape.Features:to*p.m.Shape.Features], p.choices, p.at[from:to])
	if err != nil {
		return line, err
	}
	for i := from; i < to; i++ {
		if len(p.t.Keep) == 0 {
			line = strconv.AppendInt(line, int64(p.rows+i+1), 10)
		}
		for k, cell := range keptOf(b, i) {
			if k > 0 {
				line = append(line, ',')
			}
			line = appendCell(line, cell)
		}
		line = appendAnswers(line, answers[(i-from)*each:(i-from+1)*each], p.classes)
		if p.t.several() {
			line = append(append(line, ','), p.models[p.at[i]]...)
		}
		line = append(line, '\n')
	}
	return line, nil
}

// keptOf are the kept cells of a row.
func keptOf(b *source.Batch, row int) []string {
	if b.Kept == nil {
		return nil
	}
	return b.Kept[row]
}

// mixed are the answers for rows of several models, by their places in choices; valid
// until the next call.
func (w *worker) mixed(x []float64, choices []Choice, at []int) ([]float64, error) {
	each, features := w.m.Outputs(), w.m.Shape.Features
	w.answers = slices.Grow(w.answers[:0], len(at)*each)[:len(at)*each]
	same := func(k int) bool { return k == at[0] }
	if !slices.ContainsFunc(at, func(k int) bool { return !same(k) }) {
		return w.answers, w.predict(w.answers, x, &choices[at[0]])
	}
	done := make([]bool, len(choices))
	for i, k := range at {
		if done[k] {
			continue
		}
		done[k] = true
		w.gathered = w.gathered[:0]
		n := 0
		for j := i; j < len(at); j++ {
			if at[j] == k {
				w.gathered = append(w.gathered, x[j*features:(j+1)*features]...)
				n++
			}
		}
		w.loose = slices.Grow(w.loose[:0], n*each)[:n*each]
		if err := w.predict(w.loose, w.gathered, &choices[k]); err != nil {
			return nil, err
		}
		n = 0
		for j := i; j < len(at); j++ {
			if at[j] == k {
				copy(w.answers[j*each:(j+1)*each], w.loose[n*each:(n+1)*each])
				n++
			}
		}
	}
	return w.answers, nil
}
