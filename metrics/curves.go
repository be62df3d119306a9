package metrics

import "math"

// Bin is the examples whose probability of class 1 lies from Low up to High.
type Bin struct {
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Count     float64 `json:"count"`
	Predicted float64 `json:"predicted"` // mean probability of class 1
	Observed  float64 `json:"observed"`  // share of class 1
}

// Curves are pictures of the answers to 2 classes.
type Curves struct {
	ROC         [][2]float64 `json:"roc"`         // share of class 0 and of class 1 above a score, from (0, 0) to (1, 1)
	PR          [][2]float64 `json:"pr"`          // recall and precision, from the highest score to recall 1
	Reliability []Bin        `json:"reliability"` // tenths of the probability that have examples
}

// curvePoints is how many points a curve has at most.
const curvePoints = 200

// CurvesOf are the curves of all examples; nil unless there are 2 classes, and examples
// of both.
func CurvesOf(t Task, clients []Answers) (*Curves, error) {
	if t.Classes != 2 {
		return nil, nil
	}
	kept, err := t.checked(clients)
	if err != nil {
		return nil, err
	}
	s, err := t.score(kept)
	if err != nil || s.lost {
		return nil, err
	}
	var ins, outs []float64
	o := ordered(s.logits, func(i int) bool { return s.labels[i] == 1 })
	in, out := o.walk(nil, func(in, out float64) { ins, outs = append(ins, in), append(outs, out) })
	if in == 0 || out == 0 {
		return nil, nil
	}
	c := &Curves{ROC: [][2]float64{{0, 0}}}
	for k := range ins {
		c.ROC = append(c.ROC, [2]float64{outs[k] / out, ins[k] / in})
		if k == 0 || ins[k-1] < in {
			c.PR = append(c.PR, [2]float64{ins[k] / in, ins[k] / (ins[k] + outs[k])})
		}
	}
	c.ROC, c.PR = thinned(c.ROC), thinned(c.PR)
	c.Reliability = s.reliability(10)
	return c, nil
}

// thinned keeps both ends of a curve and points at about equal lengths of way between.
func thinned(points [][2]float64) [][2]float64 {
	if len(points) <= curvePoints {
		return points
	}
	far := func(a, b [2]float64) float64 { return math.Abs(a[0]-b[0]) + math.Abs(a[1]-b[1]) }
	way := 0.0
	for i := 1; i < len(points); i++ {
		way += far(points[i], points[i-1])
	}
	each := way / (curvePoints - 2)
	out, gone, next := points[:1:1], 0.0, each
	for i := 1; i < len(points)-1; i++ {
		if gone += far(points[i], points[i-1]); gone >= next {
			out = append(out, points[i])
			next = (math.Floor(gone/each) + 1) * each
		}
	}
	return append(out, points[len(points)-1])
}

// reliability is the curve of so many bins; empty ones are left out.
func (s *scored) reliability(bins int) (out []Bin) {
	all := make([]Bin, bins)
	for i, label := range s.labels {
		p := s.p[2*i+1]
		b := &all[min(bins-1, int(p*float64(bins)))]
		b.Count++
		b.Predicted += p
		b.Observed += float64(label)
	}
	for k, b := range all {
		if b.Count > 0 {
			out = append(out, Bin{float64(k) / float64(bins), float64(k+1) / float64(bins), b.Count, b.Predicted / b.Count, b.Observed / b.Count})
		}
	}
	return out
}
