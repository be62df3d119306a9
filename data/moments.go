package data

import "github.com/coterie-fl/coterie/config"

// PublicRange is the middle of every feature's public range and half its width: the
// run file's, or else the data set's documented ones. Both are empty if there are none.
func PublicRange(d config.Data) (centre, scale []float64) {
	if k := kinds[d.Kind]; k.Ranges != nil && len(d.Centre) == 0 && len(d.Scale) == 0 {
		return k.Ranges()
	}
	return d.Centre, d.Scale
}

// Standardised is a copy of the rows with (x - centre)/scale for every feature.
func (r Rows) Standardised(centre, scale []float64) Rows {
	all := make([]int, r.Len())
	for i := range all {
		all[i] = i
	}
	out := r.pick(all)
	out.standardise(centre, scale)
	return out
}
