package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// rawRows is how many rows Raw hands over at once.
const rawRows = 1024

// Raw reads the files of a source as they are, before anybody has said what their
// columns mean: column names and trimmed cells, some rows at a time in the order of the
// files. Rows belong to the caller until each returns. A file without rows is handed
// over once, with its column names alone.
func Raw(ctx context.Context, src config.Source, each func(file string, header []string, rows [][]string) error) error {
	r := Reading{Source: src}
	files, _, err := r.files()
	if err != nil {
		return err
	}
	for _, path := range files {
		read := rawFile
		if r.formatOf(path) == formatParquet {
			read = rawParquet
		}
		if err := read(ctx, path, each); err != nil {
			return err
		}
	}
	return nil
}

func rawFile(ctx context.Context, path string, each func(string, []string, [][]string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	defer file.Close()
	rows, err := rawReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	header, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%s: no line of column names: %w", path, err)
	}
	header = slices.Clone(header)
	trimCells(header, false)
	batch := make([][]string, 0, rawRows)
	for handed := false; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		cells, err := rows.Read()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err == nil {
			trimCells(cells, rows.Comma == ';')
			batch = append(batch, cells)
			if len(batch) < rawRows {
				continue
			}
		}
		if len(batch) > 0 || !handed {
			if err := each(path, header, batch); err != nil {
				return err
			}
			handed, batch = true, batch[:0]
		}
		if err != nil {
			return nil
		}
	}
}

// rawReader undoes gzip, skips a byte-order mark and finds the separator.
func rawReader(file io.Reader) (*csv.Reader, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	if magic, err := in.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(z, 1<<16)
	}
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\ufeff")) {
		in.Discard(3)
	}
	rows := csv.NewReader(in)
	rows.TrimLeadingSpace = true
	start, err := in.Peek(1 << 15)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, other := range []struct{ start, what string }{
		{"PAR1", "is Parquet; let its name end in .parquet"}, {"PK\x03\x04", "is an archive or a workbook; save it as CSV in UTF-8"},
		{"\xff\xfe", "is UTF-16; save it as CSV in UTF-8"}, {"\xfe\xff", "is UTF-16; save it as CSV in UTF-8"},
	} {
		if bytes.HasPrefix(start, []byte(other.start)) {
			return nil, fmt.Errorf("the file %s", other.what)
		}
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	for _, c := range []rune{';', '\t'} {
		if bytes.Count(line, []byte(string(c))) > bytes.Count(line, []byte(string(rows.Comma))) {
			rows.Comma = c
		}
	}
	rows.TrimLeadingSpace = rows.Comma != '\t' // an empty cell between two tabs is one
	return rows, nil
}

// trimCells takes blanks away. Where semicolons part cells, a number's comma is its point.
func trimCells(cells []string, commas bool) {
	for i, c := range cells {
		c = strings.TrimSpace(c)
		if commas && strings.Count(c, ",") == 1 && !strings.Contains(c, ".") && strings.Trim(c, "+-0123456789,eE") == "" {
			c = strings.Replace(c, ",", ".", 1)
		}
		cells[i] = c
	}
}
