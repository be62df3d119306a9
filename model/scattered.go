package model

// scatter is the spread of clusters' linear models that would start at zero: enough
// to tell them apart, and little where a feature hardly varies and its weight stays
// as it began. (Paper 002's code takes one over the root of the features; on School
// the weights of rare features then ruin the test error.)
const scatter = 0.01

// Scattered is the model with a random start: equal models of clusters could not be told
// apart.
func Scattered(m Model) Model {
	if l, ok := m.(Linear); ok && l.InitSD == 0 {
		l.InitSD = scatter
		return l
	}
	return m
}
