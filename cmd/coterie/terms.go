package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// No epsilon is printed without its terms: what it claims, for whom, between which
// neighbours, and at which delta or radius.

// inTerms is all that a number depends on, in a few words.
func inTerms(s event.Statement) string {
	words := account.Terms{Unit: s.Unit, Relation: s.Relation, Claim: s.Claim}.String()
	if s.Radius != nil {
		words += fmt.Sprintf(", radius %.6g", float64(*s.Radius))
	}
	if s.Relation != event.Metric {
		words += fmt.Sprintf(", delta %.6g", float64(s.Delta))
	}
	return words
}

// told is an account's epsilon with its terms.
func told(g account.Guarantee) string {
	return fmt.Sprintf("epsilon %s (%s)", upTo(event.Number(g.Epsilon), 6), inTerms(g.Statement()))
}

// upTo writes so many digits, rounded up: a cost must not look smaller than it is.
func upTo(n event.Number, digits int) string {
	x := float64(n)
	if !(x > 0) || math.IsInf(x, 1) {
		return strconv.FormatFloat(x, 'g', digits, 64)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))+1-float64(digits))
	return strconv.FormatFloat(math.Ceil(x/unit-1e-6)*unit, 'g', digits, 64)
}
