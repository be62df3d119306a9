// Package data holds datasets, generators and partitioners.
package data

// Rows are examples: Features values of X for every Y.
type Rows struct {
	X        []float64
	Y        []float64
	Features int
}

// Len is the number of rows.
func (r Rows) Len() int { return len(r.Y) }

// Pictures are some of a store of images.
type Pictures struct {
	Images *Images
	Index  []int
}

// Client is what one participant holds: rows, or pictures.
type Client struct {
	Rows
	Pictures
	Group int // the group that it truly belongs to; known in simulation only
}

// Len is the number of examples.
func (c *Client) Len() int {
	if c.Images != nil {
		return len(c.Index)
	}
	return c.Rows.Len()
}

// Federation is a whole population.
type Federation struct {
	Features   int
	Train      []Client
	Validation []Client
	// Truth is every group's parameters, for generated data.
	Truth [][]float64
	// Classes is how many labels pictures or rows can have; 0: targets are values.
	Classes int

	// Sensitive are the sensitive attributes of the validation clients' rows, if the
	// data have any.
	Sensitive []SensitiveColumn

	// Test is what every training client holds out of its own examples, in the same
	// order. Only federations of silos have it.
	Test []Client
	// Names are those of the training clients, if they have any.
	Names []string
	// NotCovered lists uses of the silos' examples that no privacy accounting covers.
	NotCovered []string
	// Report is what the loader read and left out; nil if nothing was read.
	Report *LoadReport
}

// SmallerThan names the training clients that hold fewer than n examples: too few
// for one batch of that size.
func (f *Federation) SmallerThan(n int) []string {
	var names []string
	for i := range f.Train {
		if f.Train[i].Len() < n {
			names = append(names, f.Names[i])
		}
	}
	return names
}
