package data

import (
	"math"

	"github.com/coterie-fl/coterie/config"
)

// Check lists what is wrong with the data block.
func Check(run config.Run) config.Faults {
	if run.Data.OfSilos() {
		return checkSilos(run.Data)
	}
	return CheckSynthetic(run)
}

func checkSilos(d config.Data) config.Faults {
	var c config.Checker
	if _, _, _, _, pictures := Pictured(d); pictures {
		c.Require(d.Standardise != string(ByPaid), "data.standardise", "is paid, but %s has pictures, which are not standardised; leave it out", d.Kind)
	}
	switch d.Kind {
	case "rotated-mnist":
		c.Require(d.Silos%rotations == 0, "data.silos", "is %d; allowed: a multiple of %d, the number of rotations", d.Silos, rotations)
	case "cifar10-silos":
		c.Require(d.Silos*d.SiloClasses%cifarClasses == 0, "data.silos", "is %d with %d classes each; allowed: silos*classes a multiple of %d, so that every class has as many silos", d.Silos, d.SiloClasses, cifarClasses)
	case "school", "vehicle", "gleam":
		checkConstants(&c, d)
	}
	return c.Faults()
}

func checkConstants(c *config.Checker, d config.Data) {
	features := Features(d)
	if d.Standardise != string(ByPublic) && d.Standardise != string(ByPaid) {
		c.Require(len(d.Centre) == 0 && len(d.Scale) == 0, "data.standardise", "is %q, but public constants are given; allowed with them: public, paid", d.Standardise)
		return
	}
	if d.Kind == "school" && len(d.Centre) == 0 && len(d.Scale) == 0 {
		return // its documented ranges
	}
	for _, k := range []struct {
		path   string
		values []float64
		least  float64
	}{{"data.centre", d.Centre, math.Inf(-1)}, {"data.scale", d.Scale, 0}} {
		c.Require(len(k.values) == features, k.path, "has %d values for %d features: standardise %s needs a constant for each, or choose silo or none", len(k.values), features, d.Standardise)
		for j, v := range k.values {
			c.Require(v > k.least && !math.IsInf(v, 0), k.path, "value %d is %v; allowed: finite, above %v", j, v, k.least)
		}
	}
}

// Pictured is the shape of the pictures of a kind of data, and how many classes
// they have (0: values). It says false for rows, and where files decide.
func Pictured(d config.Data) (height, width, channels, classes int, ok bool) {
	switch d.Kind {
	case "rotated-mnist":
		return 28, 28, 1, digitClasses, true
	case "cifar10-silos":
		return cifarSide, cifarSide, 3, cifarClasses, true
	case "adni":
		return adniSide, adniSide, 1, 0, true
	}
	return 0, 0, 0, 0, false
}
