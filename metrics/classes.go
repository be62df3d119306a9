package metrics

import (
	"fmt"
	"math"
	"slices"
)

// leastProbability is what an answer has at least where a model's output is taken for
// a probability as it is: the log loss of a certain error would be infinite.
const leastProbability = 1e-15

// scored are examples of classes with their probabilities.
type scored struct {
	classes int
	labels  []int
	p       []float64 // of every example's classes
	logits  []float64 // of class 1, of 2 classes
	logs    []float64 // log of the right class's probability
	right   []float64 // 1 or 0
	client  []int
	lost    bool // an output is no number: nothing can be ranked
}

// score reads raw outputs. One for every class is a softmax's; a single one is class 1's
// logit under losses of classes, its probability under a squared error.
func (t Task) score(clients []Answers) (*scored, error) {
	n := 0
	for _, a := range clients {
		n += len(a.Targets)
	}
	s := &scored{
		classes: t.Classes, p: make([]float64, n*t.Classes), labels: make([]int, 0, n), client: make([]int, 0, n),
		logits: make([]float64, 0, n), logs: make([]float64, 0, n), right: make([]float64, 0, n),
	}
	for c, a := range clients {
		for i, target := range a.Targets {
			label := int(target)
			if float64(label) != target || label < 0 || label >= t.Classes {
				return nil, fmt.Errorf("metrics: example %d of client %d has the class %v; allowed: 0 to %d", i, c, target, t.Classes-1)
			}
			own := s.p[len(s.labels)*t.Classes : (len(s.labels)+1)*t.Classes]
			log, logit := t.probabilities(own, a.Outputs[i*a.Each:(i+1)*a.Each], label)
			right := 0.0
			if largestAt(own) == label {
				right = 1
			}
			s.labels, s.logs, s.right = append(s.labels, label), append(s.logs, log), append(s.right, right)
			s.logits, s.client = append(s.logits, logit), append(s.client, c)
			s.lost = s.lost || math.IsNaN(log) || math.IsNaN(logit)
		}
	}
	return s, nil
}

// Probabilities sets p to those of an example's classes, two or as many as it has outputs.
// Where outputs are not finite, what they are is not said.
func (t Task) Probabilities(p, outputs []float64) { t.probabilities(p, outputs, 0) }

// probabilities sets p to those of an example's classes. It returns the logarithm of the
// right one's, which is finite where the probability itself is rounded to 0, and class
// 1's logit among two.
func (t Task) probabilities(p, outputs []float64, label int) (log, logit float64) {
	switch {
	case len(outputs) > 1:
		top, sum := slices.Max(outputs), 0.0
		for k, v := range outputs {
			p[k] = math.Exp(v - top)
			sum += p[k]
		}
		for k := range p {
			p[k] /= sum
		}
		return outputs[label] - top - math.Log(sum), outputs[1] - outputs[0] // of 2
	case t.Loss.OfClasses():
		p[0], p[1] = 1/(1+math.Exp(outputs[0])), 1/(1+math.Exp(-outputs[0]))
		z := float64(2*label-1) * outputs[0]
		return min(z, 0) - math.Log1p(math.Exp(-math.Abs(z))), outputs[0]
	}
	p[1] = min(max(outputs[0], leastProbability), 1-leastProbability)
	p[0] = 1 - p[1]
	return math.Log(p[label]), math.Log(p[1] / p[0])
}

// largestAt is where the largest value is: the first of equals.
func largestAt(values []float64) int {
	best := 0
	for j, v := range values {
		if v > values[best] {
			best = j
		}
	}
	return best
}

// briers are the squared distances of class 1's probability to what is right.
func (s *scored) briers() []float64 {
	out := make([]float64, len(s.labels))
	for i, label := range s.labels {
		d := s.p[2*i+1] - float64(label)
		out[i] = d * d
	}
	return out
}

// losses are the negative logarithms of the right classes' probabilities.
func (s *scored) losses() []float64 {
	out := make([]float64, len(s.logs))
	for i, v := range s.logs {
		out[i] = -v
	}
	return out
}

// overall are the figures of all, with intervals over clients.
func (s *scored) overall(clients int) Figures {
	mean := func(values []float64, most float64) *Figure {
		sums, sizes := make([]float64, clients), make([]float64, clients)
		var sum, n float64
		for i, v := range values {
			sums[s.client[i]] += v
			sizes[s.client[i]]++
		}
		for c := range sums {
			sum, n = sum+sums[c], n+sizes[c]
		}
		return jackknife(clients, func(i int) float64 {
			if i < 0 {
				return sum / n
			}
			return (sum - sums[i]) / (n - sizes[i])
		}, 0, most)
	}
	f := Figures{Accuracy: mean(s.right, 1), LogLoss: mean(s.losses(), math.Inf(1))}
	groups := min(10, clients)
	s.ranked(&f, groups, func(i int) int { return s.client[i] % groups })
	if s.classes == 2 {
		f.Brier = mean(s.briers(), 1)
		fits := s.recalibrated(groups)
		f.CalibrationSlope = jackknife(groups, func(left int) float64 { return fits[left+1].slope }, math.Inf(-1), math.Inf(1))
		f.CalibrationIntercept = jackknife(groups, func(left int) float64 { return fits[left+1].intercept }, math.Inf(-1), math.Inf(1))
	}
	return f
}

// recalibrated are the fits of all (the first) and without one of so many groups of
// clients at a time.
func (s *scored) recalibrated(groups int) []recalibration {
	shares, weights := make([]float64, len(s.labels)), make([]float64, len(s.labels))
	for i, label := range s.labels {
		shares[i], weights[i] = float64(label), 1
	}
	fits := []recalibration{recalibrate(s.logits, shares, weights, asItIs)}
	near := fits[0]
	if !finite(near.slope) {
		near = asItIs
	}
	for left := range groups {
		for i, c := range s.client {
			if weights[i] = 1; c%groups == left {
				weights[i] = 0
			}
		}
		fits = append(fits, recalibrate(s.logits, shares, weights, near))
	}
	return fits
}

// rowGroups is how many groups of rows the jackknife over rows leaves out in turn.
const rowGroups = 20

// ofClient are the figures of one client, with intervals over its rows.
func (s *scored) ofClient() Figures {
	n, right := len(s.labels), 0.0
	for _, v := range s.right {
		right += v
	}
	loss, half := Spread(s.losses())
	f := Figures{Accuracy: wilson(right, float64(n)), LogLoss: figure(loss, half, 0, math.Inf(1))}
	groups := min(rowGroups, n)
	s.ranked(&f, groups, func(i int) int { return i % groups })
	if s.classes != 2 {
		return f
	}
	if f.AUC != nil {
		scores := s.scores(1)
		d := delong(s.labels, scores, scores)
		f.AUC = figure(float64(f.AUC.Value), normal95*rootOrNone(d.variance[0]), 0, 1)
	}
	brier, half := Spread(s.briers())
	f.Brier = figure(brier, half, 0, 1)
	fit := s.recalibrated(0)[0]
	f.CalibrationSlope = figure(fit.slope, normal95*fit.slopeError, math.Inf(-1), math.Inf(1))
	f.CalibrationIntercept = figure(fit.intercept, normal95*fit.interceptError, math.Inf(-1), math.Inf(1))
	return f
}

// rootOrNone is a standard error; NaN where the variance is 0 but for rounding: complete
// order says nothing about its own chance.
func rootOrNone(variance float64) float64 {
	if !(variance > 1e-20) {
		return math.NaN()
	}
	return math.Sqrt(variance)
}

// scores are a class's probabilities; among two, class 1's logits, which stay apart
// where probabilities round to 1.
func (s *scored) scores(class int) []float64 {
	if s.classes == 2 {
		return s.logits
	}
	out := make([]float64, len(s.labels))
	for i := range out {
		out[i] = s.p[i*s.classes+class]
	}
	return out
}
