package data

import (
	"fmt"
	"math"
)

// cellLayout is how paper 002's MATLAB files hold silos: the cell arrays X and Y,
// one cell a silo, of rows by features and of rows by 1.
type cellLayout struct {
	silo     string
	features int
	classes  int
	// value reads a target.
	value func(v float64) (float64, error)
}

// loadCells reads a MATLAB file of silos.
func loadCells(path string, l cellLayout) (*Silos, error) {
	arrays, err := readMAT(path)
	if err != nil {
		return nil, err
	}
	x, y := arrays["X"], arrays["Y"]
	if len(x.cells) == 0 || len(x.cells) != len(y.cells) {
		return nil, fmt.Errorf("%s: %d cells in X and %d in Y; one of each for every silo is wanted", path, len(x.cells), len(y.cells))
	}
	s := &Silos{Features: l.features, Classes: l.classes, Report: LoadReport{Source: path}}
	for k := range x.cells {
		rows, err := l.rows(x.cells[k], y.cells[k])
		if err != nil {
			return nil, fmt.Errorf("%s, cell %d: %w", path, k+1, err)
		}
		s.Report.Rows += rows.Len()
		s.All = append(s.All, Client{Name: fmt.Sprintf("%s %d", l.silo, k), Rows: rows})
	}
	s.Report.Kept = s.Report.Rows
	return s, nil
}

// rows turns one silo's cells, which lie column by column, into rows.
func (l cellLayout) rows(x, y matrix) (Rows, error) {
	n := len(y.values)
	if x.rows != n || x.cols != l.features || y.rows != 1 && y.cols != 1 && n > 0 {
		return Rows{}, fmt.Errorf("array X is %d by %d, array Y is %d by %d; wanted: rows by %d, and one target a row", x.rows, x.cols, y.rows, y.cols, l.features)
	}
	if n == 0 {
		return Rows{}, fmt.Errorf("the silo is empty; remove its cell from X and from Y")
	}
	out := Rows{Features: l.features, X: make([]float64, n*l.features), Y: make([]float64, n)}
	for i := range n {
		for j := range l.features {
			v := x.values[j*n+i]
			if !(math.Abs(v) <= maxFeature) {
				return Rows{}, fmt.Errorf("row %d, feature %d: %v is not a measurement", i+1, j, v)
			}
			out.X[i*l.features+j] = v
		}
		value, err := l.value(y.values[i])
		if err != nil {
			return Rows{}, fmt.Errorf("row %d: %w", i+1, err)
		}
		out.Y[i] = value
	}
	return out, nil
}

// signValue turns labels -1 and 1 into the classes 0 and 1.
func signValue(v float64) (float64, error) {
	if v != -1 && v != 1 {
		return 0, fmt.Errorf("label %v; allowed: -1 and 1", v)
	}
	return (v + 1) / 2, nil
}
