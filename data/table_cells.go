package data

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is one line of a table. Its cells are good until the next line is read.
type row struct {
	t     *table
	cells []string
}

// faultf is about one cell.
func (r row) faultf(column int, format string, args ...any) error {
	return r.t.faultf(r.t.header[column], format, args...)
}

// number is a cell between low and high.
func (r row) number(column int, low, high float64) (float64, error) {
	v, ok := parseDecimal(r.cells[column])
	if !ok {
		return 0, r.faultf(column, "%s is not a number", shorten(r.cells[column]))
	}
	if v < low || v > high {
		return 0, r.faultf(column, "%v is out of range; allowed: %v to %v", v, low, high)
	}
	return v, nil
}

// integer is a whole cell between low and high.
func (r row) integer(column, low, high int) (int, error) {
	v, err := strconv.Atoi(r.cells[column])
	if err != nil {
		return 0, r.faultf(column, "%s is not a whole number", shorten(r.cells[column]))
	}
	if v < low || v > high {
		return 0, r.faultf(column, "%d is out of range; allowed: %d to %d", v, low, high)
	}
	return v, nil
}

// choice is a cell's place in a public list.
func (r row) choice(column int, values []string) (int, error) {
	i := slices.Index(values, r.cells[column])
	if i < 0 {
		return 0, r.faultf(column, "%s is not in the data dictionary; allowed: %s",
			shorten(r.cells[column]), strings.Join(values, ", "))
	}
	return i, nil
}

// parseDecimal reads a finite decimal number; unlike strconv it takes no NaN,
// infinity, hexadecimal or underscore.
func parseDecimal(text string) (float64, bool) {
	if strings.ContainsAny(text, "_xXpPiInN") {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsInf(v, 0)
}

// parseDollars reads an amount as CMS writes it: "$32,963.07", "5777.24".
func parseDollars(text string) (float64, bool) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "$"))
	whole, _, _ := strings.Cut(text, ".")
	if groups := strings.Split(whole, ","); len(groups) > 1 {
		for i, g := range groups {
			if i == 0 && (len(g) < 1 || len(g) > 3) || i > 0 && len(g) != 3 {
				return 0, false // a comma that does not part thousands
			}
		}
		text = strings.ReplaceAll(whole, ",", "") + text[len(whole):]
	}
	return parseDecimal(text)
}

// allDigits tells whether text is of 1 or more decimal digits.
func allDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
