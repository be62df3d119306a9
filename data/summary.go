package data

import (
	"math"
	"strconv"

	"github.com/coterie-fl/coterie/config"
)

// Summary is what a federation's data look like. It tells of private examples: it is for
// whoever holds them, in simulation or at home.
type Summary struct {
	Kind    string          `json:"kind"`
	Clients []ClientSummary `json:"clients"`
	Columns []MovedCells    `json:"columns"`
	Report  *LoadReport     `json:"read"`
}

// ClientSummary is one client's.
type ClientSummary struct {
	Name string `json:"name"`
	// Trains is false for clients that only validate.
	Trains  bool `json:"trains"`
	Rows    int  `json:"rows"`     // all examples
	HeldOut int  `json:"held_out"` // of them
	// Missing counts cells of a table; nil: the data are none.
	Missing *int `json:"missing"`
	// Classes counts examples by class; nil: targets are values.
	Classes []ClassCount `json:"classes"`
	// Mean and SD are those of the targets in their own unit; nil: they are classes, or the
	// examples themselves.
	Mean *float64 `json:"mean"`
	SD   *float64 `json:"sd"`
}

// ClassCount is how many examples have a class.
type ClassCount struct {
	Class string `json:"class"`
	Rows  int    `json:"rows"`
}

// Summary counts what every client holds, of the data that a block describes.
func (f *Federation) Summary(d config.Data) Summary {
	names := make([]string, f.Classes)
	for k := range names {
		names[k] = strconv.Itoa(k)
	}
	if f.Encoding != nil {
		names = f.Encoding.Classes
	} else if len(d.Classes) == f.Classes {
		for k, name := range d.Classes {
			names[k] = string(name)
		}
	}
	s := Summary{Kind: d.Kind, Report: f.Report, Columns: []MovedCells{}}
	if f.Report != nil {
		s.Columns = append(s.Columns, f.Report.Columns...)
	}
	for i := range f.Train {
		s.Clients = append(s.Clients, f.summarise(&f.Train[i], true, names))
	}
	for i := range f.Validation {
		s.Clients = append(s.Clients, f.summarise(&f.Validation[i], false, names))
	}
	return s
}

func (f *Federation) summarise(c *Client, trains bool, classes []string) ClientSummary {
	s := ClientSummary{Name: c.Name, Trains: trains, Rows: c.Len()}
	apart := c.Held != nil && c.People == nil // people are judged by their own later days
	if apart {
		s.HeldOut = c.Held.Len()
		s.Rows += s.HeldOut
	}
	if f.Report != nil && f.Report.Missing != nil {
		missing := f.Report.Missing[c.Name]
		s.Missing = &missing
	}
	if f.Reconstruct || f.Vocabulary > 0 {
		return s
	}
	targets := c.targets(nil)
	if apart {
		targets = c.Held.targets(targets)
	}
	if f.Classes == 0 {
		mean, sd := f.momentsOf(targets)
		s.Mean, s.SD = &mean, &sd
		return s
	}
	s.Classes = make([]ClassCount, f.Classes)
	for k := range s.Classes {
		s.Classes[k].Class = classes[k]
	}
	for _, y := range targets {
		if k := int(y); k >= 0 && k < len(s.Classes) {
			s.Classes[k].Rows++
		}
	}
	return s
}

// targets adds the examples' labels or values.
func (c *Client) targets(out []float64) []float64 {
	if c.People != nil { // what is to be foretold, where it is known
		if held := c.Held; held != nil && len(held.Y) == c.Len() {
			return append(out, held.Y...)
		}
		return append(out, c.Y...)
	}
	if c.Images == nil {
		return append(out, c.Y...)
	}
	for _, i := range c.Index {
		if len(c.Images.Labels) > 0 {
			out = append(out, float64(c.Images.Labels[i]))
		} else {
			out = append(out, c.Images.Targets[i])
		}
	}
	return out
}

// momentsOf are mean and standard deviation in the target's own unit; 0 of no values.
func (f *Federation) momentsOf(values []float64) (mean, sd float64) {
	low, width := 0.0, 1.0
	if f.Encoding != nil {
		unit := f.Encoding.Unit()
		low, width = unit[0], unit[1]-unit[0]
	}
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean*width + low, math.Sqrt(sd) * width
}
