package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// files are those that the source's path names.
func (r *Reading) files() ([]string, error) {
	path := r.Source.Path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "*")
	}
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("data.source.path %q is no pattern: %w", path, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("data.source.path %q names no file", path)
	}
	slices.Sort(found)
	return found, nil
}

func (r *Reading) readCSV(ctx context.Context, path string, t *Tally, faults *Faults, each func(*Batch) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	defer file.Close()
	in := bufio.NewReader(file)
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\ufeff")) {
		in.Discard(3)
	}
	rows := csv.NewReader(in)
	rows.ReuseRecord, rows.TrimLeadingSpace = true, true
	header, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%s: no line of column names: %w", path, err)
	}
	header = slices.Clone(header)
	at := map[string]int{}
	for i, h := range header {
		at[strings.TrimSpace(h)] = i
	}
	missing := false
	for _, name := range r.columnNames() {
		if _, ok := at[name]; !ok {
			faults.add(Fault{File: path, Line: 1, Column: name, What: "is not in the header, which has " + strings.Join(header, ", ")})
			missing = true
		}
	}
	if missing {
		return nil
	}
	b := &Batch{File: path, First: 2, Groups: make([][]int32, len(r.Sensitive))}
	encoders, target := r.Encoding.Encoders(), r.Encoding.TargetEncoder()
	width := r.Encoding.Shape().Features
	x, y := make([]float64, width), make([]float64, 1)
	name := r.Client
	if name == "" {
		name, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	for ctx.Err() == nil {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		line, _ := rows.FieldPos(0)
		t.Rows++
		cell := func(name string) []byte { return []byte(strings.TrimSpace(cells[at[name]])) }
		if !r.NoTarget {
			c := cell(r.Encoding.Target)
			switch o := target.Text(c, y); {
			case o == data.CellFault && r.LeaveOut && data.IsMissing(c):
				t.LeftOut++
				continue
			case o == data.CellFault:
				faults.add(Fault{path, line, r.Encoding.Target, target.Explain(c)})
			default:
				t.count(r.Encoding.Target, o)
			}
			b.Y = append(b.Y, y[0])
		}
		from := 0
		for _, e := range encoders {
			c := cell(e.Name())
			o := e.Text(c, x[from:from+e.Width()])
			if o == data.CellFault {
				faults.add(Fault{path, line, e.Name(), e.Explain(c)})
			}
			t.count(e.Name(), o)
			from += e.Width()
		}
		b.X = append(b.X, x...)
		b.Rows++
		if r.Source.Client != "" {
			b.Clients = append(b.Clients, string(cell(r.Source.Client)))
		} else {
			b.Clients = append(b.Clients, name)
		}
		if r.Test.Column != "" {
			b.Held = append(b.Held, string(cell(r.Test.Column)) == string(r.Test.Value))
		}
		for i, s := range r.Sensitive {
			g := slices.IndexFunc(s.Values, func(v config.Cell) bool { return string(v) == string(cell(s.Name)) })
			b.Groups[i] = append(b.Groups[i], int32(g))
		}
		if len(r.Keep) > 0 {
			var kept []string
			for _, k := range r.Keep {
				kept = append(kept, string(cell(k)))
			}
			b.Kept = append(b.Kept, kept)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.Files++
	if faults.Count > 0 {
		return nil
	}
	return each(b)
}
