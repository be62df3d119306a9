package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// CellOutcome says what became of a cell.
type CellOutcome uint8

// The outcomes. All but CellFault are encoded; what was moved or unknown is counted for
// the owner of the data alone.
const (
	CellFine    CellOutcome = iota
	CellClipped             // a number outside its public range was moved to its end
	CellOther               // a category that the public list does not have
	CellMissing             // an empty cell that the column allows
	CellFault               // Explain says why
)

// CellEncoder makes the inputs of one column, cell by cell. It is safe for concurrent
// use: it only reads.
type CellEncoder struct {
	column       EncodedColumn
	numeric      bool
	category     bool
	width        int
	middle, half float64
	place        map[string]int
	constant     []float64
	target       bool
}

// Encoders are those of the encoding's columns, in order.
func (e *Encoding) Encoders() []*CellEncoder {
	var out []*CellEncoder
	for _, c := range e.Columns {
		out = append(out, newCellEncoder(c))
	}
	return out
}

// TargetEncoder makes the target, one value: a number as 0…1, a class as its place.
func (e *Encoding) TargetEncoder() *CellEncoder {
	c := EncodedColumn{Name: e.Target, Type: columnNumber, Range: e.TargetRange, Missing: missingRefuse}
	if e.Task == TaskNumber {
		t := newCellEncoder(c)
		t.target, t.middle, t.half = true, e.TargetRange[0], e.TargetRange[1]-e.TargetRange[0]
		return t
	}
	c.Type, c.Values = "class", e.Classes
	t := newCellEncoder(c)
	t.target = true
	if e.Task == TaskYesNo && (len(e.Classes) == 0 || slices.Equal(e.Classes, plainYesNo)) {
		t.place = yesNoWords()
	}
	return t
}

// plainYesNo stands for all words of yesNoWords.
var plainYesNo = []string{"no", "yes"}

// GroupPlaces are the places of a sensitive attribute's groups, by cell. Where they are no
// and yes, they are told however they are written, as with a feature of the type yes/no.
func GroupPlaces(values []string) map[string]int {
	if slices.Equal(values, plainYesNo) {
		return yesNoWords()
	}
	return indexOf(values)
}

func newCellEncoder(c EncodedColumn) *CellEncoder {
	e := &CellEncoder{column: c, width: c.Width(), numeric: c.Type == columnNumber, category: c.Type == columnCategory}
	switch c.Type {
	case columnNumber:
		e.middle, e.half = (c.Range[0]+c.Range[1])/2, (c.Range[1]-c.Range[0])/2
	case columnYesNo:
		e.place = indexOf(c.Values)
		if len(c.Values) == 0 {
			e.place = yesNoWords()
		}
	default:
		e.place = indexOf(c.Values)
	}
	if c.Missing == missingConstant {
		e.constant = make([]float64, e.width)
		plain := *e
		plain.column.Missing = missingRefuse
		plain.Text([]byte(c.Constant), e.constant)
	}
	return e
}

func indexOf(values []string) map[string]int {
	m := make(map[string]int, len(values))
	for i, v := range values {
		m[v] = i
	}
	return m
}

// yesNoWords are how no and yes are written where the run file does not say.
func yesNoWords() map[string]int {
	m := map[string]int{}
	for _, pair := range [][2]string{{"no", "yes"}, {"n", "y"}, {"false", "true"}, {"f", "t"}, {"0", "1"}, {"0.0", "1.0"}} {
		for i, w := range pair {
			m[w], m[strings.ToUpper(w)], m[strings.ToUpper(w[:1])+w[1:]] = i, i, i
		}
	}
	return m
}

// Width is how many inputs a cell makes.
func (e *CellEncoder) Width() int { return e.width }

// Name is the column's.
func (e *CellEncoder) Name() string { return e.column.Name }

// Numeric says that the column holds numbers.
func (e *CellEncoder) Numeric() bool { return e.numeric }

// Text encodes a trimmed cell into dst, which is Width long and is overwritten.
func (e *CellEncoder) Text(cell []byte, dst []float64) CellOutcome {
	if e.numeric {
		if v, ok := ParseNumber(cell); ok {
			return e.Number(v, dst)
		}
		return e.absent(cell, dst)
	}
	i, ok := e.place[unsafe.String(unsafe.SliceData(cell), len(cell))]
	if !ok {
		return e.absent(cell, dst)
	}
	clear(dst)
	if e.category {
		dst[i] = 1
	} else {
		dst[0] = float64(i)
	}
	return CellFine
}

// Number encodes a number of a number column.
func (e *CellEncoder) Number(v float64, dst []float64) CellOutcome {
	outcome := CellFine
	switch low, high := e.column.Range[0], e.column.Range[1]; {
	case v < low:
		v, outcome = low, CellClipped
	case v > high:
		v, outcome = high, CellClipped
	case v != v:
		return e.Missing(dst)
	}
	dst[0] = (v - e.middle) / e.half
	if len(dst) > 1 {
		dst[1] = 0
	}
	return outcome
}

// Numbers encodes numbers of a number column, that of row i into dst from
// place[i]*stride on, and tells of each that is not fine. A row with a negative place is
// passed over; infinity is a fault, for nobody measures it.
func (e *CellEncoder) Numbers(values []float64, place []int32, dst []float64, stride int, tell func(i int, o CellOutcome)) {
	low, high, middle, half, width := e.column.Range[0], e.column.Range[1], e.middle, e.half, e.width
	for i, v := range values {
		if place[i] < 0 {
			continue
		}
		to := int(place[i]) * stride
		if v >= low && v <= high && width == 1 {
			dst[to] = (v - middle) / half
			continue
		}
		o := CellFault
		if !math.IsInf(v, 0) {
			o = e.Number(v, dst[to:to+width])
		}
		if o != CellFine {
			tell(i, o)
		}
	}
}

// absent is a cell that is no value of the column.
func (e *CellEncoder) absent(cell []byte, dst []float64) CellOutcome {
	if IsMissing(cell) {
		return e.Missing(dst)
	}
	if !e.category {
		return CellFault
	}
	clear(dst)
	return CellOther
}

// Missing encodes a cell that is not there.
func (e *CellEncoder) Missing(dst []float64) CellOutcome {
	switch e.column.Missing {
	case missingConstant:
		copy(dst, e.constant)
	case missingIndicator:
		clear(dst)
		dst[len(dst)-1] = 1
	default:
		return CellFault
	}
	return CellMissing
}

// missingCells stand for nothing: a fixed public list.
var missingCells = []string{"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"}

// MissingCells are the trimmed cells that stand for nothing.
func MissingCells() []string { return slices.Clone(missingCells) }

// IsMissing says that a trimmed cell is one of those that stand for nothing.
func IsMissing(cell []byte) bool {
	return slices.Contains(missingCells, unsafe.String(unsafe.SliceData(cell), len(cell)))
}

// Explain says why a cell is a fault, and what would do.
func (e *CellEncoder) Explain(cell []byte) string {
	switch {
	case IsMissing(cell) && e.target:
		return "the target is missing: fill it in, or set data.target_missing to leave-out"
	case IsMissing(cell):
		return "the value is missing: set missing to constant or indicator for this column, or fill it in"
	case e.Numeric():
		return fmt.Sprintf("%s is not a number", shorten(string(cell)))
	case e.column.Type == columnYesNo && len(e.column.Values) == 0:
		return fmt.Sprintf("%s is neither yes nor no; write no/yes, n/y, false/true or 0/1, or say in values how they are written", shorten(string(cell)))
	}
	return fmt.Sprintf("%s is not in the public list; allowed: %s", shorten(string(cell)), strings.Join(e.column.Values, ", "))
}

// powers of ten that floats hold exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// ParseNumber reads a finite decimal number to the nearest float. The usual short ones
// are made of two exact floats by one operation (Clinger 1990); others go to strconv.
// Unlike strconv it takes no NaN, infinity, hexadecimal or underscore.
func ParseNumber(cell []byte) (float64, bool) {
	i, n := 0, len(cell)
	negative := false
	if n > 0 && (cell[0] == '-' || cell[0] == '+') {
		negative = cell[0] == '-'
		i++
	}
	var mantissa uint64
	digits, point := 0, -1
	for ; i < n; i++ {
		if c := cell[i] - '0'; c <= 9 {
			mantissa = mantissa*10 + uint64(c)
			digits++
		} else if cell[i] == '.' && point < 0 {
			point = digits
		} else {
			break
		}
	}
	if digits == 0 {
		return 0, false
	}
	if i < n || digits > 19 || mantissa > 1<<53 {
		return parseSlowly(cell)
	}
	v := float64(mantissa)
	if point >= 0 {
		if digits-point > 22 {
			return parseSlowly(cell)
		}
		v /= powers[digits-point]
	}
	if negative {
		v = -v
	}
	return v, true
}

func parseSlowly(cell []byte) (float64, bool) {
	for _, c := range cell {
		switch {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(cell), len(cell)), 64)
	return v, err == nil && !math.IsInf(v, 0)
}
