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
	// Classes is how many labels pictures can have.
	Classes int
}
