package source

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// rowGroup reads the wanted columns of a row group side by side.
type rowGroup struct {
	*layout
	// work is what is done with each column. The target's comes first: it says which
	// rows are left out.
	work    []func(p *parquetPiece, faults *Faults) error
	columns []*parquetColumn
}

// parquetPiece is a piece whose columns are filled at the same time.
type parquetPiece struct {
	*piece
	first int     // number of its first row
	place []int32 // of each row in the batch; -1: it is left out
}

// openGroup says what is done with each column.
func (l *layout) openGroup(columns []*parquet.Column, chunks []parquet.ColumnChunk) *rowGroup {
	g := &rowGroup{layout: l}
	open := func(at int) *parquetColumn {
		c := openColumn(columns[at], chunks[columns[at].Index()])
		g.columns = append(g.columns, c)
		return c
	}
	features := len(l.encoders)
	if !l.reading.NoTarget {
		features--
		g.addTarget(open(l.at[features]), features)
	}
	from := 0
	for i, e := range l.encoders[:features] {
		g.addFeature(open(l.at[i]), i, from)
		from += e.Width()
	}
	if l.clientAt >= 0 {
		names := rowReader{layout: l}
		g.addText(open(l.clientAt), func(p *parquetPiece, faults *Faults, i int, cell []byte) {
			p.batch.Clients[p.place[i]] = names.clientName(faults, p.first+i, cell)
		})
	}
	if l.testAt >= 0 {
		g.addText(open(l.testAt), func(p *parquetPiece, _ *Faults, i int, cell []byte) {
			p.batch.Held[p.place[i]] = string(cell) == string(l.reading.Test.Value)
		})
	}
	for a, at := range l.sensitiveAt {
		g.addText(open(at), func(p *parquetPiece, _ *Faults, i int, cell []byte) {
			p.batch.Groups[a][p.place[i]] = groupOf(l.groups[a], cell)
		})
	}
	for k, at := range l.keepAt {
		g.addText(open(at), func(p *parquetPiece, _ *Faults, i int, cell []byte) { p.batch.Kept[p.place[i]][k] = string(cell) })
	}
	return g
}

func (g *rowGroup) close() {
	for _, c := range g.columns {
		c.close()
	}
}

// encodeAll makes inputs of a column's next cells, those of row i in x from
// place[i]*stride+from, and tells of each that is not fine.
func encodeAll(column *parquetColumn, e *data.CellEncoder, place []int32, x []float64, stride, from int, tell func(i int, o data.CellOutcome, cell []byte)) error {
	width := e.Width()
	if !e.Numeric() || !column.numeric {
		return column.texts(len(place), func(i int, cell []byte) {
			if place[i] < 0 {
				return
			}
			to := int(place[i])*stride + from
			cell = trim(cell)
			if o := e.Text(cell, x[to:to+width]); o != data.CellFine {
				tell(i, o, cell)
			}
		})
	}
	numbers, err := column.numbers(len(place))
	if err != nil || len(x) == 0 { // all rows are left out
		return err
	}
	e.Numbers(numbers, place, x[from:], stride, func(i int, o data.CellOutcome) {
		var cell []byte
		if math.IsInf(numbers[i], 0) {
			cell = strconv.AppendFloat(nil, numbers[i], 'g', -1, 64)
		}
		tell(i, o, cell)
	})
	return nil
}

// addTarget encodes targets, and leaves out rows without one where that is asked for.
func (g *rowGroup) addTarget(column *parquetColumn, encoder int) {
	g.work = append(g.work, func(p *parquetPiece, faults *Faults) error {
		b := p.batch
		b.Y = b.Y[:len(p.place)]
		err := encodeAll(column, g.encoders[encoder], p.place, b.Y, 1, 0, func(i int, o data.CellOutcome, cell []byte) {
			if o == data.CellFault && g.reading.LeaveOut && data.IsMissing(cell) {
				p.place[i] = -1
				return
			}
			g.note(p.moved, faults, p.first+i, encoder, o, cell)
		})
		b.Rows = 0
		for i, at := range p.place {
			if at >= 0 {
				b.Y[b.Rows] = b.Y[i]
				p.place[i] = int32(b.Rows)
				b.Rows++
			}
		}
		b.Y = b.Y[:b.Rows]
		return err
	})
}

// addFeature encodes a column into inputs from a place on.
func (g *rowGroup) addFeature(column *parquetColumn, encoder, from int) {
	g.work = append(g.work, func(p *parquetPiece, faults *Faults) error {
		return encodeAll(column, g.encoders[encoder], p.place, p.batch.X, g.width, from, func(i int, o data.CellOutcome, cell []byte) {
			g.note(p.moved, faults, p.first+i, encoder, o, cell)
			if o == data.CellMissing {
				atomic.AddInt32(&p.batch.Missing[p.place[i]], 1)
			}
		})
	})
}

// addText does something with the text of every row that is not left out.
func (g *rowGroup) addText(column *parquetColumn, do func(p *parquetPiece, faults *Faults, i int, cell []byte)) {
	g.work = append(g.work, func(p *parquetPiece, faults *Faults) error {
		return column.texts(len(p.place), func(i int, cell []byte) {
			if p.place[i] >= 0 {
				do(p, faults, i, trim(cell))
			}
		})
	})
}

// read reads the group's rows, of which the first has a number, and says how many it has
// handed on.
func (g *rowGroup) read(ctx context.Context, first, rows int, workers *pool.Pool, c *collector) (done int, err error) {
	for done < rows {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		n := min(rows-done, max(1, parquetCells/max(1, g.width)))
		p, err := g.next(first+done, n, workers, c)
		if err != nil {
			return done, err
		}
		if err := c.take(p); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// next reads some rows, their columns at the same time.
func (g *rowGroup) next(first, n int, workers *pool.Pool, c *collector) (*piece, error) {
	p := &parquetPiece{piece: g.piece(c, first, n), first: first, place: make([]int32, n)}
	p.rows, p.batch.Rows = n, n
	for i := range p.place {
		p.place[i] = int32(i)
	}
	faults, failed := make([]Faults, len(g.work)), make([]error, len(g.work))
	do := func(_, i int) {
		defer damaged(g.file, &failed[i])
		failed[i] = g.work[i](p, &faults[i])
	}
	start := 0
	if !g.reading.NoTarget {
		do(0, 0)
		start = 1
	}
	b := p.batch
	b.X, b.Missing = b.X[:b.Rows*g.width], slices.Grow(b.Missing, b.Rows)[:b.Rows]
	clear(b.Missing)
	b.Clients = slices.Grow(b.Clients, b.Rows)[:b.Rows]
	for i := range b.Clients {
		b.Clients[i] = g.client
	}
	if g.testAt >= 0 {
		b.Held = slices.Grow(b.Held, b.Rows)[:b.Rows]
	}
	for a := range b.Groups {
		b.Groups[a] = slices.Grow(b.Groups[a], b.Rows)[:b.Rows]
	}
	if len(g.keepAt) > 0 {
		b.Kept = make([][]string, b.Rows)
		for i := range b.Kept {
			b.Kept[i] = make([]string, len(g.keepAt))
		}
	}
	workers.Each(len(g.work)-start, func(worker, i int) { do(worker, start+i) })
	if err := cmp.Or(failed...); err != nil {
		return nil, err
	}
	for _, f := range faults {
		p.faults.Count += f.Count
		p.faults.First = append(p.faults.First, f.First...)
	}
	slices.SortStableFunc(p.faults.First, func(a, b Fault) int { return cmp.Compare(a.Row, b.Row) })
	p.faults.First = p.faults.First[:min(len(p.faults.First), mostFaults)]
	return p.piece, nil
}
