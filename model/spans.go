package model

import "strings"

// Span is the part of a parameter vector that one layer has: its weights and
// biases together.
type Span struct {
	Name     string
	From, To int
}

// Len is the number of parameters.
func (s Span) Len() int { return s.To - s.From }

// LayerSpans joins the views of every layer.
func LayerSpans(views []View) []Span {
	var out []Span
	for _, v := range views {
		name := v.Name[:max(0, strings.LastIndexByte(v.Name, '.'))]
		if n := len(out); n > 0 && out[n-1].Name == name {
			out[n-1].To = v.Offset + v.Len()
			continue
		}
		out = append(out, Span{name, v.Offset, v.Offset + v.Len()})
	}
	return out
}

// Layers are a model's layers; one without layers is one itself.
func Layers(m Model) []Span {
	if n, ok := m.(interface{ Views() []View }); ok {
		return LayerSpans(n.Views())
	}
	return []Span{{"all", 0, m.Parameters()}}
}
