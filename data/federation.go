package data

import "github.com/coterie-fl/coterie/data/bytepair"

// Federation is a whole population.
type Federation struct {
	Features int
	Train    []Client
	// Crowd is the training clients that are not held, in Train's stead; nil: Train has them.
	Crowd      Crowd
	Validation []Client
	// Truth is every group's parameters, for generated data.
	Truth [][]float64
	// Classes is how many labels pictures or rows can have; 0: targets are values.
	Classes int
	// Reconstruct says that every example is its own target; Classes is then 0.
	Reconstruct bool
	// Vocabulary is how many words there are, where rows are words in their order: each is
	// the target of those before it; Classes is then 0. 0: rows are no words.
	Vocabulary int
	// Words is how text was cut into these; nil: rows are no words.
	Words *bytepair.Encoding
	// Unit is the lowest and the highest target in its own unit, where targets are scaled
	// to 0…1; zero: targets are as they are.
	Unit [2]float64

	// Encoding is how a table's columns became rows; nil: the data are no table.
	Encoding *Encoding

	// Sensitive are the sensitive attributes of the validation clients' rows, or, if
	// there are none, of what the training clients hold out; nil: the data have none.
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

// Shape is what a model must know of the data. It is public: a federation's server
// tells it to everybody.
type Shape struct {
	Features int `json:"features" yaml:"features" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"values in a row; 0: there are pictures"`
	Classes  int `json:"classes" yaml:"classes" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"labels; 0: targets are values"`
	Height   int `json:"height" yaml:"height" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"height of pictures; 0: there are rows"`
	Width    int `json:"width" yaml:"width" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"width of pictures; 0: there are rows"`
	Channels int `json:"channels,omitempty" yaml:"channels" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"channels of pictures; 0: 1"`
	// Reconstruct says that the example is the target; Classes is then 0.
	Reconstruct bool `json:"reconstruct,omitempty" yaml:"reconstruct" jsonschema_description:"whether every example is its own target, which a network gives back; there are then no classes"`
	// Vocabulary is how many words there are, where a row is words in their order, each the
	// target of those before it; Classes is then 0.
	// Windows is how many inputs an example has whose gradients add up: those of people.
	Windows    int `json:"windows,omitempty" yaml:"windows" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"inputs of a person, all of them one example; 0: examples are no people"`
	Vocabulary int `json:"vocabulary,omitempty" yaml:"vocabulary" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"words that there are, where a row's values are numbers of words; 0: they are no words"`
}

// Pictures says whether examples are pictures instead of rows.
func (s Shape) Pictures() bool { return s.Height > 0 }

// Depth is a picture's number of channels.
func (s Shape) Depth() int { return max(1, s.Channels) }

// Shape is that of the federation's examples.
func (f *Federation) Shape() Shape {
	s := Shape{Features: f.Features, Classes: f.Classes, Reconstruct: f.Reconstruct, Vocabulary: f.Vocabulary}
	if f.Crowd != nil { // of rows
		return s
	}
	if people := f.Train[0].People; people != nil {
		s.Windows = people.Windows()
	}
	if im := f.Train[0].Images; im != nil {
		s.Height, s.Width, s.Channels = im.Height, im.Width, im.Channels
	}
	return s
}
