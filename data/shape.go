package data

// Shape is what a model must know of the data. It is public: a federation's server
// tells it to everybody.
type Shape struct {
	Features int `json:"features" yaml:"features" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"values in a row"`
	Classes  int `json:"classes" yaml:"classes" jsonschema:"minimum=0,maximum=16777216" jsonschema_description:"labels; 0: targets are values"`
	Height   int `json:"height" yaml:"height" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"of pictures; 0: rows"`
	Width    int `json:"width" yaml:"width" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"of pictures; 0: rows"`
	Channels int `json:"channels,omitempty" yaml:"channels" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"of pictures; 0: 1"`
}

// Pictures says whether examples are pictures instead of rows.
func (s Shape) Pictures() bool { return s.Height > 0 }

// Depth is a picture's number of channels.
func (s Shape) Depth() int { return max(1, s.Channels) }

// Shape is that of the federation's examples.
func (f *Federation) Shape() Shape {
	s := Shape{Features: f.Features, Classes: f.Classes}
	if im := f.Train[0].Images; im != nil {
		s.Height, s.Width, s.Channels = im.Height, im.Width, im.Channels
	}
	return s
}
