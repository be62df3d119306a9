package data

import (
	"fmt"
	"io"
	"math"
)

// siloLayout is a table of silos: a column that names the silo, features f00,
// f01, …, and a target.
type siloLayout struct {
	silo     string
	features int
	target   string
	classes  int
	// value reads the target's cell.
	value func(r row, column int) (float64, error)
}

// maxFeature bounds a feature: what is larger is no measurement.
const maxFeature = 1e12

// read reads a table. A malformed row is an error: leaving rows out would
// change a silo's size, which its noise depends on.
func (l siloLayout) read(name string, r io.Reader) (*Silos, error) {
	names := []string{l.silo, l.target}
	for j := range l.features {
		names = append(names, fmt.Sprintf("f%02d", j))
	}
	t, columns, err := openTable(name, r, names...)
	if err != nil {
		return nil, err
	}
	s := &Silos{Features: l.features, Classes: l.classes, Report: LoadReport{Source: name}}
	place := map[int]int{}
	for row, err := range t.rows() {
		if err != nil {
			return nil, err
		}
		if err := s.take(row, columns, l, place); err != nil {
			return nil, err
		}
	}
	if len(s.All) == 0 {
		return nil, fmt.Errorf("%s: no rows after the header", name)
	}
	s.Report.Kept = s.Report.Rows
	return s, nil
}

// take adds one row to its silo.
func (s *Silos) take(r row, columns []int, l siloLayout, place map[int]int) error {
	id, err := r.integer(columns[0], 0, math.MaxInt32)
	if err != nil {
		return err
	}
	y, err := l.value(r, columns[1])
	if err != nil {
		return err
	}
	k, known := place[id]
	if !known {
		k = len(s.All)
		place[id] = k
		s.All = append(s.All, Client{Name: fmt.Sprintf("%s %d", l.silo, id), Rows: Rows{Features: l.features}})
	}
	rows := &s.All[k].Rows
	for _, column := range columns[2:] {
		v, err := r.number(column, -maxFeature, maxFeature)
		if err != nil {
			return err
		}
		rows.X = append(rows.X, v)
	}
	rows.Y = append(rows.Y, y)
	s.Report.Rows++
	return nil
}
