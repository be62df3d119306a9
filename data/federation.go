package data

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

	// NotCovered lists uses of the clients' examples that no privacy accounting covers.
	NotCovered []string
	// Report is what the loader read and left out; nil if nothing was read.
	Report *LoadReport
}

// Names are those of the training clients.
func (f *Federation) Names() []string {
	names := make([]string, len(f.Train))
	for i := range f.Train {
		names[i] = f.Train[i].Name
	}
	return names
}
