package artifact

import (
	"context"
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/source"
)

// gathered are labelled examples by client, in the order in which clients appear.
type gathered struct {
	place   map[string]int
	clients []data.Client
}

// client is the one of a name, new if it is not there. It is valid until the next call.
func (g *gathered) client(name string) *data.Client {
	at, ok := g.place[name]
	if !ok {
		if g.place == nil {
			g.place = map[string]int{}
		}
		at = len(g.clients)
		g.place[name] = at
		g.clients = append(g.clients, data.Client{Name: name})
	}
	return &g.clients[at]
}

// TableClients are a table's rows that have the target, as the models read them but for
// constants that a client's inputs are scaled by.
func (m *Model) TableClients(ctx context.Context, t Table) ([]data.Client, error) {
	if err := m.reads(&t); err != nil {
		return nil, err
	}
	var g gathered
	features := m.Shape.Features
	t.Keep = nil
	r := m.reading(&t)
	r.NoTarget, r.LeaveOut = false, true
	_, err := r.Each(ctx, func(b *source.Batch) error {
		for i := range b.Rows {
			c := g.client(t.client(b, i))
			c.Features = features
			c.X, c.Y = append(c.X, b.X[i*features:(i+1)*features]...), append(c.Y, b.Y[i])
		}
		return nil
	})
	if err == nil && len(g.clients) == 0 {
		err = fmt.Errorf("%s: no row has a target in the column %s", t.Source.Path, m.Encoding.Target)
	}
	return g.clients, err
}

// PictureClients are labelled pictures.
func (m *Model) PictureClients(ctx context.Context, p Pictures) ([]data.Client, error) {
	if err := m.looksAt(&p); err != nil {
		return nil, err
	}
	var g gathered
	r := m.pictureReading(&p, true)
	r.Several = true
	err := r.Each(ctx, func(b *source.PictureBatch) error {
		c := g.client(b.Client)
		if c.Images == nil {
			c.Images = &data.Images{Height: m.Shape.Height, Width: m.Shape.Width, Channels: m.Shape.Channels}
		}
		for range b.Images.Labels {
			c.Index = append(c.Index, len(c.Index))
		}
		c.Images.Pixels, c.Images.Labels = append(c.Images.Pixels, b.Images.Pixels...), append(c.Images.Labels, b.Images.Labels...)
		return nil
	})
	return g.clients, err
}

// TextClients are texts, cut into rows of words. What is left behind the last whole row of
// a file is in none.
func (m *Model) TextClients(ctx context.Context, t Texts) ([]data.Client, error) {
	if m.Shape.Vocabulary == 0 {
		return nil, fmt.Errorf("%s: its models are of %s, and take no text", m.Path, m.Examples())
	}
	words, err := m.words(t.Merges, t.Folder)
	if err != nil {
		return nil, err
	}
	files, err := source.TextFiles(t.Path)
	if err != nil {
		return nil, err
	}
	var g gathered
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := source.TextRows(words, m.Shape.Features, file.Path)
		if err != nil {
			return nil, err
		}
		name := file.Client
		if t.Client != "" {
			name = t.Client
		}
		c := g.client(name)
		c.Features = rows.Features
		c.X, c.Y = append(c.X, rows.X...), append(c.Y, rows.Y...)
	}
	return g.clients, nil
}
