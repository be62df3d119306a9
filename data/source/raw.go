package source

import (
	"context"
	"errors"
	"io"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// rawRows is how many rows Raw hands over at once.
const rawRows = 1024

// RawRows are some rows of a file as they are: trimmed cells.
type RawRows struct {
	File    string
	Columns []string
	Rows    [][]string
	// DecimalComma takes 3,14 for a number.
	DecimalComma bool
}

// ParseNumber reads a number as whoever trains on the table will.
func (r RawRows) ParseNumber(cell string) (float64, bool) {
	text := []byte(cell)
	if at := decimalComma(text); r.DecimalComma && at >= 0 {
		text[at] = '.'
	}
	return data.ParseNumber(text)
}

// Raw reads the files of a source as they are, before anybody has said what their
// columns mean, some rows at a time in the order of the files. Rows belong to the caller
// until each returns. A file without rows is handed over once, with its column names alone.
// All faults are found before it returns them; each is not called after the first one.
func Raw(ctx context.Context, src config.Source, each func(RawRows) error) error {
	r := Reading{Source: src, Key: "the path"}
	files, _, err := r.files()
	if err != nil {
		return err
	}
	var faults Faults
	for _, path := range files {
		if r.formatOf(path) == formatParquet {
			err = rawParquet(ctx, path, func(p RawRows) error {
				if faults.Count > 0 {
					return nil
				}
				return each(p)
			})
		} else {
			err = rawFile(ctx, path, &faults, each)
		}
		if err != nil {
			return err
		}
	}
	if faults.Count > 0 {
		return &faults
	}
	return nil
}

// rawFile splits a file just as readCSV does, so that both take the same files.
func rawFile(ctx context.Context, path string, faults *Faults, each func(RawRows) error) error {
	file, blocks, err := openCSV(path)
	if err != nil {
		return err
	}
	defer file.Close()
	t, err := blocks.header(faults)
	if err != nil || t == nil {
		return err
	}
	batch := RawRows{File: path, Columns: t.columns, DecimalComma: t.decimalComma()}
	handed := false
	hand := func() {
		if err == nil && faults.Count == 0 {
			if err = ctx.Err(); err == nil {
				err = each(batch)
			}
		}
		handed, batch.Rows = true, batch.Rows[:0]
	}
	for err == nil {
		b, failed := blocks.next()
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return failed
		}
		t.raw(b, faults, func(cells []string) {
			if batch.Rows = append(batch.Rows, cells); len(batch.Rows) == rawRows {
				hand()
			}
		})
	}
	if len(batch.Rows) > 0 || !handed {
		hand()
	}
	return err
}

// raw hands over a block's rows as texts of their own.
func (t *csvTable) raw(b *block, faults *Faults, row func(cells []string)) {
	defer b.release()
	if b.fault != nil {
		faults.add(*b.fault)
		return
	}
	t.rows(b, faults, func(_ int, cells [][]byte) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = string(trim(c))
		}
		row(texts)
	})
}
