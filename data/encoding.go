package data

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// Encoding says how the columns of a table become a row's inputs and its target. All of
// it is public: ranges and lists are statements of the user, and no value depends on
// another row. Models carry it, so that new rows are encoded as those that trained.
type Encoding struct {
	Target      string          `json:"target"`
	Task        string          `json:"task"`         // number, yes/no or classes
	Classes     []string        `json:"classes"`      // of labels 0, 1, …; null for numbers
	TargetRange []float64       `json:"target_range"` // of numbers, which are trained as 0…1
	Columns     []EncodedColumn `json:"columns"`
	Inputs      []string        `json:"inputs"` // names: "age", "ward=A", "bmi missing"
	// Projection is what the columns' inputs are taken to before they reach a model; absent:
	// nothing.
	Projection *Projection `json:"projection,omitempty"`
}

// EncodedColumn is a column that inputs are made of.
type EncodedColumn struct {
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Range    []float64 `json:"range,omitempty"`
	Values   []string  `json:"values,omitempty"`
	Missing  string    `json:"missing"`
	Constant string    `json:"constant,omitempty"`
}

// The tasks of a table, and the types of its columns.
const (
	TaskNumber  = "number"
	TaskYesNo   = "yes/no"
	TaskClasses = "classes"
	// TaskWords is of words, each the target of those before it.
	TaskWords = "words"
	// TaskReconstruct is of pictures that are their own targets.
	TaskReconstruct = "reconstruct"

	columnNumber   = "number"
	columnCategory = "category"
	columnYesNo    = "yes/no"

	missingRefuse    = "refuse"
	missingConstant  = "constant"
	missingIndicator = "indicator"
)

// NewEncoding is that of a checked data block.
func NewEncoding(d config.Data) (*Encoding, error) {
	var c config.Checker
	checkEncoding(&c, d)
	if faults := c.Faults(); len(faults) > 0 {
		return nil, faults
	}
	e := &Encoding{Target: d.Target, Task: d.Task}
	switch d.Task {
	case TaskNumber:
		e.TargetRange = slices.Clone(d.TargetRange)
	default:
		e.Classes = texts(d.Classes)
		if len(e.Classes) == 0 {
			e.Classes = []string{"no", "yes"}
		}
	}
	for _, f := range d.Features {
		e.Columns = append(e.Columns, encodedColumn(f))
	}
	e.nameInputs()
	return e, nil
}

func encodedColumn(f config.Column) EncodedColumn {
	missing := f.Missing
	if missing == "" {
		missing = missingRefuse
	}
	return EncodedColumn{Name: f.Name, Type: f.Type, Range: slices.Clone(f.Range), Values: texts(f.Values), Missing: missing, Constant: string(f.Constant)}
}

func texts(cells []config.Cell) []string {
	var out []string
	for _, c := range cells {
		out = append(out, string(c))
	}
	return out
}

// Width is how many inputs the column makes.
func (c *EncodedColumn) Width() int {
	n := 1
	if c.Type == columnCategory {
		n = len(c.Values)
	}
	if c.Missing == missingIndicator {
		n++
	}
	return n
}

func (e *Encoding) nameInputs() {
	e.Inputs = nil
	for _, c := range e.Columns {
		switch c.Type {
		case columnCategory:
			for _, v := range c.Values {
				e.Inputs = append(e.Inputs, c.Name+"="+v)
			}
		default:
			e.Inputs = append(e.Inputs, c.Name)
		}
		if c.Missing == missingIndicator {
			e.Inputs = append(e.Inputs, c.Name+" missing")
		}
	}
}

// Shape is what a model must know of the rows.
func (e *Encoding) Shape() Shape { return Shape{Features: len(e.Inputs), Classes: len(e.Classes)} }

// Unit is the lowest and the highest target in its own unit; zeros for classes.
func (e *Encoding) Unit() (unit [2]float64) {
	copy(unit[:], e.TargetRange)
	return unit
}

// UnitOf is the lowest and the highest target of a data block in its own unit, where
// targets are trained as 0…1; zeros: they are as they are.
func UnitOf(d config.Data) (unit [2]float64) {
	copy(unit[:], d.TargetRange)
	return unit
}

// Ranges are the middle of every input's public range, and half its width.
func (e *Encoding) Ranges() (centre, scale []float64) {
	for _, c := range e.Columns {
		for i := range c.Width() {
			if c.Type == columnNumber && i == 0 {
				centre, scale = append(centre, 0), append(scale, 1)
			} else {
				centre, scale = append(centre, 0.5), append(scale, 0.5)
			}
		}
	}
	if e.Projection != nil {
		return e.Projection.ranges(centre, scale)
	}
	return centre, scale
}

// Check says what is wrong with an encoding that was read from a file.
func (e *Encoding) Check() error {
	d := config.Data{Target: e.Target, Task: e.Task, TargetRange: e.TargetRange}
	for _, c := range e.Classes {
		d.Classes = append(d.Classes, config.Cell(c))
	}
	for _, c := range e.Columns {
		f := config.Column{Name: c.Name, Type: c.Type, Range: c.Range, Missing: c.Missing, Constant: config.Cell(c.Constant)}
		for _, v := range c.Values {
			f.Values = append(f.Values, config.Cell(v))
		}
		d.Features = append(d.Features, f)
	}
	again, err := NewEncoding(d)
	if err != nil {
		return fmt.Errorf("the encoding is wrong: %w", err)
	}
	if e.Projection != nil {
		if err := again.Project(e.Projection); err != nil {
			return fmt.Errorf("the encoding is wrong: %w", err)
		}
	}
	if !slices.Equal(again.Inputs, e.Inputs) {
		return fmt.Errorf("the encoding's columns make the inputs %s, but it lists %s", shorten(strings.Join(again.Inputs, ", ")), shorten(strings.Join(e.Inputs, ", ")))
	}
	return nil
}
