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

// Client is what one participant holds.
type Client struct {
	Rows
	Group int // the group that it truly belongs to; known in simulation only
}

// Federation is a whole population.
type Federation struct {
	Features   int
	Train      []Client
	Validation []Client
	// Truth is every group's parameters, for generated data.
	Truth [][]float64
}
