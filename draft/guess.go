package draft

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/data"
)

// Column is what a column is taken for.
type Column struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`   // number, category or yes/no; empty: it is left out
	Range     []float64 `json:"range"`  // of numbers
	Values    []string  `json:"values"` // of categories, of classes, and of yes/no where they are not the usual words
	Missing   int       `json:"missing"`
	Sensitive bool      `json:"sensitive"`
	Why       string    `json:"why"` // it is left out, or should be looked at
	weights   []int     // of no and yes, where one of them is a rare outcome
}

// What a list of categories or classes may have.
const (
	mostValues  = 50
	mostClasses = 10 // of numbers that are taken for classes
)

// mostNumber is the largest number that a table takes for a measurement.
const mostNumber = 1e12

// guess says what a column is good for as a feature. What has as many values as a person
// has names would tell persons apart, and is left out.
func (t *tally) guess() Column {
	c := Column{Name: t.name, Missing: t.missing}
	leave := func(format string, args ...any) Column {
		c.Why = fmt.Sprintf(format, args...)
		return c
	}
	n, values := t.present(), len(t.distinct)
	named := hasWord(t.name, identifiers)
	switch {
	case n == 0:
		return leave("is empty")
	case values == 1:
		return leave("has one value only")
	case t.dates == n:
		return leave("looks like dates: make numbers of them that mean something, such as days since admission")
	case isSplit(t.values()):
		return leave("says which rows are for testing: to hold those out, put test: {column: %s, value: …} in test_share's place", quoted(t.name))
	case (named || t.coded == n) && !(values <= 10 && n >= 20*values):
		return leave("looks like an identifier")
	case t.numbers == n && t.integers == n && t.mostlyDistinct() && t.high-t.low < 2*float64(n):
		return leave("looks like an identifier: it numbers the rows")
	}
	if values <= mostValues && plainWords(t.values()) {
		c.Type = data.TaskYesNo
		return t.checked(c)
	}
	if pair, ok := otherWords(t.values()); ok {
		c.Type, c.Values = data.TaskYesNo, pair
		return t.checked(c)
	}
	if t.numbers == n && values > 2 && !hasWord(t.name, codes) {
		low, high := t.bulk()
		if max(-low, high) > mostNumber {
			return leave("has numbers beyond %.0e, which are no measurements", float64(mostNumber))
		}
		c.Type, c.Range = "number", friendly(low, high)
		if low > t.low || high < t.high {
			c.Why = "a few values lie far outside: they are moved to the range's end"
		}
		return t.checked(c)
	}
	few := values <= mostValues && 4*values <= n
	switch {
	case few:
		c.Type, c.Values = "category", t.values()
		return t.checked(c)
	case t.numbers*5 >= n*4 && t.numbers < n:
		return leave("is mostly numbers, but some of its cells are none: clean it up, then add it")
	case t.spaced*2 > n:
		return leave("looks like free text")
	case t.mostlyDistinct():
		return leave("looks like an identifier")
	case values > mostValues:
		return leave("has more than %d different values: group them, then add it", mostValues)
	}
	return leave("has too many different values for so few rows")
}

// checked adds whether the fairness audit should look at the column.
func (t *tally) checked(c Column) Column {
	c.Sensitive = c.Type != "number" && isSensitive(t.name)
	return c
}

// goal says what kind of prediction the target asks for.
func (t *tally) goal() (c Column, task string, err error) {
	c = Column{Name: t.name, Missing: t.missing}
	fail := func(format string, args ...any) (Column, string, error) {
		return c, "", fmt.Errorf("%w: --target %s %s", ErrRequest, t.name, fmt.Sprintf(format, args...))
	}
	n, values := t.present(), len(t.distinct)
	number := t.numbers == n
	switch {
	case n == 0:
		return fail("is empty in every row")
	case values == 1:
		return fail("has the same value in every row: there is nothing to predict")
	case t.dates == n && !number:
		return fail("holds dates; make numbers of them, such as days since admission")
	case values <= mostValues && plainWords(t.values()):
		c.weights = t.weights(plainWord)
		return c, data.TaskYesNo, nil
	}
	second := func(v string) (int, bool) { return slices.Index(c.Values, v), true }
	if pair, ok := otherWords(t.values()); ok {
		c.Values = pair
		c.weights = t.weights(second)
		return c, data.TaskYesNo, nil
	}
	switch {
	case values == 2:
		c.Values, c.Why = t.values(), "the second value is what is predicted as yes: turn them round if that is the wrong way"
		c.weights = t.weights(second)
		return c, data.TaskYesNo, nil
	case number && (values > mostClasses || t.integers < n || 10*values > n):
		low, high := t.bulk()
		if max(-low, high) > mostNumber {
			return fail("has numbers beyond %.0e; use a larger unit", float64(mostNumber))
		}
		c.Range = friendly(low, high)
		if low > t.low || high < t.high {
			c.Why = "a few values lie far outside: they are moved to the range's end"
		}
		return c, data.TaskNumber, nil
	case values > mostValues || 4*values > n:
		return fail("has %d different values in %d rows, which are neither numbers nor few enough for classes (at most %d, each with rows to learn from)", values, n, mostValues)
	}
	c.Values = t.values()
	if number {
		c.Why = "whole numbers, few of them: taken for classes; set task: number if they are amounts"
	}
	return c, data.TaskClasses, nil
}

// rareShare is the share of rows below which an outcome is rare.
const rareShare = 0.1

// weights let two outcomes count alike, about; nil: none of them is rare. They are told
// apart by their place.
func (t *tally) weights(place func(value string) (int, bool)) []int {
	var rows [2]int
	for v, n := range t.distinct {
		i, _ := place(v)
		rows[i] += n
	}
	rare := 0
	if rows[1] < rows[0] {
		rare = 1
	}
	if float64(rows[rare]) >= rareShare*float64(rows[0]+rows[1]) {
		return nil
	}
	weights := []int{1, 1}
	weights[rare] = min(roundDown(rows[1-rare]/rows[rare]), mostWeight)
	return weights
}

// mostWeight is the largest that a run file takes.
const mostWeight = 1_000_000
