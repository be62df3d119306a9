package source

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/internal/pool"
)

// parquetCells is how many inputs are made at a time: rows that stay in a core's cache
// while column after column is written into them.
const parquetCells = 1 << 17

// openParquet opens a file. Whoever reads from it has to expect panics, see damaged.
func openParquet(path string) (file *os.File, f *parquet.File, err error) {
	if file, err = os.Open(path); err != nil {
		return nil, nil, fmt.Errorf("read the table: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	defer damaged(path, &err)
	info, err := file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the table: %w", err)
	}
	f, err = parquet.OpenFile(file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(1<<14))
	if err != nil {
		return nil, nil, fmt.Errorf("%s is no Parquet file that can be read: %w", path, err)
	}
	return file, f, nil
}

// readParquet reads a file row group by row group, some rows at a time, their columns on
// all cores.
func (r *Reading) readParquet(ctx context.Context, path string, c *collector) (err error) {
	file, f, err := openParquet(path)
	if err != nil {
		return err
	}
	defer file.Close()
	defer damaged(path, &err)
	columns := f.Root().Columns()
	var header []string
	for _, column := range columns {
		header = append(header, strings.TrimSpace(column.Name()))
	}
	head := &piece{}
	l := r.layout(path, 0, header, &head.faults)
	if l != nil {
		l.byRow = true
		if !l.readable(columns, &head.faults) {
			l = nil
		}
	}
	if err := c.take(head); err != nil || l == nil {
		return err
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	defer workers.Close()
	row := 1
	for _, group := range f.RowGroups() {
		g := l.openGroup(columns, group.ColumnChunks())
		n, err := g.read(ctx, row, int(group.NumRows()), workers, c)
		g.close()
		if err != nil {
			return fmt.Errorf("%s, from row %d: %w", path, row+n, err)
		}
		row += n
	}
	return nil
}

// damaged turns a panic about a file into an error: a broken file is no broken program.
func damaged(path string, err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("%s is damaged: %v", path, x)
	}
}

// readable finds fault with wanted columns that hold no single values.
func (l *layout) readable(columns []*parquet.Column, faults *Faults) bool {
	good := true
	for _, name := range l.reading.columnNames() {
		for _, c := range columns {
			if strings.TrimSpace(c.Name()) != name {
				continue
			}
			if what := unreadable(c); what != "" {
				faults.add(Fault{File: l.file, Column: name, What: what, Header: true})
				good = false
			}
		}
	}
	return good
}

// unreadable says why a column holds no single values; empty: it does.
func unreadable(c *parquet.Column) string {
	switch {
	case !c.Leaf() || c.Repeated():
		return "is a list or a group; allowed: one value a row"
	case c.Type().Kind() == parquet.Int96:
		return "has the type INT96, which is out of use; store it as a timestamp"
	}
	return ""
}
