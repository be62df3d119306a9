package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// rawParquet is rawFile of a Parquet file: its values as texts. Columns that hold no
// single values are not among them.
func rawParquet(ctx context.Context, path string, each func(RawRows) error) error {
	file, f, err := openParquet(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var header []string
	var columns []*parquet.Column
	for _, c := range f.Root().Columns() {
		if unreadable(c) == "" {
			header, columns = append(header, strings.TrimSpace(c.Name())), append(columns, c)
		}
	}
	handed := false
	for _, group := range f.RowGroups() {
		err := rawGroup(ctx, path, columns, group, func(rows [][]string) error {
			handed = true
			return each(RawRows{File: path, Columns: header, Rows: rows})
		})
		if err != nil {
			return err
		}
	}
	if !handed {
		return each(RawRows{File: path, Columns: header})
	}
	return nil
}

// rawGroup hands over a row group, some rows at a time.
func rawGroup(ctx context.Context, path string, columns []*parquet.Column, group parquet.RowGroup, each func([][]string) error) error {
	open, err := openColumns(path, columns, group)
	for _, c := range open {
		defer c.close()
	}
	for rest := int(group.NumRows()); err == nil && rest > 0; rest -= rawRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := rawPiece(path, open, min(rawRows, rest))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := each(rows); err != nil {
			return err
		}
	}
	return err
}

func openColumns(path string, columns []*parquet.Column, group parquet.RowGroup) (open []*parquetColumn, err error) {
	defer damaged(path, &err)
	chunks := group.ColumnChunks()
	for _, c := range columns {
		open = append(open, openColumn(c, chunks[c.Index()]))
	}
	return open, nil
}

// rawPiece is the columns' next rows.
func rawPiece(path string, columns []*parquetColumn, n int) (rows [][]string, err error) {
	defer damaged(path, &err)
	rows = make([][]string, n)
	for i := range rows {
		rows[i] = make([]string, len(columns))
	}
	for j, c := range columns {
		if err := c.texts(n, func(i int, cell []byte) { rows[i][j] = string(trim(cell)) }); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
