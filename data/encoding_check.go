package data

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
)

// CheckTable lists what is wrong with the block of a table, wherever it lies.
func CheckTable(c *config.Checker, d config.Data) {
	checkEncoding(c, d)
	for i, a := range d.Sensitive {
		path := fmt.Sprintf("data.sensitive.%d", i)
		c.Require(a.Name != "", path+".name", "is empty")
		c.Require(len(a.Values) >= 2, path+".values", "of %q are %d; allowed: 2 or more, its public groups", a.Name, len(a.Values))
		c.Require(a.Type == "" && len(a.Range) == 0 && a.Missing == "" && a.Constant == "", path, "%q has more than a name and values; remove the rest", a.Name)
		checkDistinct(c, path+".values", a.Values)
	}
	CheckTestPart(c, d)
}

// CheckTestPart lists what is wrong with how examples are held out.
func CheckTestPart(c *config.Checker, d config.Data) {
	t := d.Test
	c.Require((t.Column == "") == (t.Value == ""), "data.test", "column and value go together")
	c.Require(t.Column == "" || t.Path == "", "data.test", "has a column and a path; allowed: one of them")
	c.Require(t == (config.TestPart{}) || d.TestShare == 0, "data.test_share", "is %v, but data.test says which examples are held out; allowed: one of them", d.TestShare)
}

// checkEncoding lists what is wrong with a table's public statements.
func checkEncoding(c *config.Checker, d config.Data) {
	c.Require(d.Target != "", "data.target", "names no column: which one is to be predicted?")
	c.Require(d.Task != "", "data.task", "is missing; allowed: number, yes/no, classes")
	switch d.Task {
	case TaskNumber:
		c.Require(len(d.Classes) == 0, "data.classes", "are given, but data.task is number; remove them, or set data.task to classes")
		checkRange(c, "data.target_range", d.TargetRange)
	case TaskYesNo:
		c.Require(len(d.Classes) == 0 || len(d.Classes) == 2, "data.classes", "are %d, but data.task is yes/no; allowed: how no and yes are written, or none", len(d.Classes))
	case TaskClasses:
		c.Require(len(d.Classes) >= 2, "data.classes", "are %d; allowed: 2 or more, the public list of the target's values", len(d.Classes))
	case TaskReconstruct:
		c.Require(false, "data.task", "is %s, but a table has a target; allowed: number, yes/no, classes", d.Task)
	}
	c.Require(len(d.TargetRange) == 0 || d.Task == TaskNumber, "data.target_range", "is given, but data.task is %s; remove it", d.Task)
	checkDistinct(c, "data.classes", d.Classes)
	c.Require(len(d.Features) > 0, "data.features", "names no column: what is %s predicted from?", d.Target)
	seen := map[string]bool{d.Target: d.Target != ""}
	for i, f := range d.Features {
		path := fmt.Sprintf("data.features.%d", i)
		c.Require(f.Name != "", path+".name", "is empty")
		c.Require(!seen[f.Name] || f.Name == "", path+".name", "%q is a feature or the target already", f.Name)
		seen[f.Name] = true
		checkColumn(c, path, f)
	}
}

func checkColumn(c *config.Checker, path string, f config.Column) {
	c.Require(f.Type != "", path+".type", "of %q is missing; allowed: number, category, yes/no", f.Name)
	c.Require(len(f.Range) == 0 || f.Type == columnNumber, path+".range", "of %q is given, but its type is %s; remove it", f.Name, f.Type)
	c.Require(len(f.Values) == 0 || f.Type != columnNumber, path+".values", "of %q are given, but its type is number; remove them", f.Name)
	switch f.Type {
	case columnNumber:
		checkRange(c, path+".range", f.Range)
	case columnCategory:
		c.Require(len(f.Values) > 0, path+".values", "of %q are missing: the public list of its categories", f.Name)
	case columnYesNo:
		c.Require(len(f.Values) == 0 || len(f.Values) == 2, path+".values", "of %q are %d; allowed: how no and yes are written, or none", f.Name, len(f.Values))
	}
	checkDistinct(c, path+".values", f.Values)
	c.Require((f.Constant != "") == (f.Missing == missingConstant), path+".constant", "of %q goes with missing: constant, and with nothing else", f.Name)
	if f.Missing == missingConstant && f.Constant != "" && f.Type != "" {
		probe := encodedColumn(f)
		probe.Missing, probe.Constant = missingRefuse, ""
		var dst [1]float64
		out := make([]float64, max(1, probe.Width()))
		if f.Type != columnCategory {
			out = dst[:]
		}
		if len(f.Range) == 2 || f.Type != columnNumber {
			outcome := newCellEncoder(probe).Text([]byte(f.Constant), out)
			c.Require(outcome == CellFine, path+".constant", "of %q is %q, which is not one of its own public values", f.Name, f.Constant)
		}
	}
}

func checkRange(c *config.Checker, path string, r []float64) {
	c.Require(len(r) == 2, path, "is missing: give the lowest and the highest public value, as [0, 120]")
	if len(r) == 2 {
		c.Require(r[0] < r[1] && math.Abs(r[0]) <= maxFeature && math.Abs(r[1]) <= maxFeature, path, "is [%v, %v]; allowed: the lower value first, both within ±%v", r[0], r[1], maxFeature)
	}
}

func checkDistinct(c *config.Checker, path string, values []config.Cell) {
	seen := map[config.Cell]bool{}
	for _, v := range values {
		c.Require(v != "", path, "has an empty value")
		c.Require(!seen[v], path, "has %q twice", v)
		seen[v] = true
	}
}
