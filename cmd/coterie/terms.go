package main

import (
	"math"
	"strconv"

	"github.com/coterie-fl/coterie/dp/event"
)

// upTo writes so many digits, rounded up: a cost must not look smaller than it is.
func upTo(n event.Number, digits int) string {
	x := float64(n)
	if !(x > 0) || math.IsInf(x, 1) {
		return strconv.FormatFloat(x, 'g', digits, 64)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))+1-float64(digits))
	return strconv.FormatFloat(math.Ceil(x/unit-1e-6)*unit, 'g', digits, 64)
}
