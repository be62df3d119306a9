package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/data"
)

// ClassMetrics are what answers to classes are judged by.
type ClassMetrics struct {
	Accuracy float64
	LogLoss  float64 // mean of -log p(right class), in nats
	// AUC is the probability that an example of a class scores above one of another,
	// ties counting half: of class 1 among two, the mean over one class against the
	// rest among more (those that have both). NaN if there is no such class.
	AUC float64
}

// Targets appends what c's examples should come to: values, or classes as numbers.
func Targets(dst []float64, c *data.Client) []float64 {
	if c.Images == nil {
		return append(dst, c.Y...)
	}
	for _, at := range c.Index {
		if c.Images.Targets != nil {
			dst = append(dst, c.Images.Targets[at])
		} else {
			dst = append(dst, float64(c.Images.Labels[at]))
		}
	}
	return dst
}

// leastProbability is what an answer has at least where a model's output is taken for
// a probability as it is: the log loss of a certain error would be infinite.
const leastProbability = 1e-15

// JudgeClasses judges raw outputs, each of them for one example, by their classes. An
// output for every class is a softmax's; a single one is class 1's logit under the
// cross entropy and the hinge loss, its probability under a squared error.
func JudgeClasses(loss Loss, outputs []float64, each int, targets []float64) (ClassMetrics, error) {
	if each < 1 || len(outputs) != each*len(targets) || len(targets) == 0 {
		return ClassMetrics{}, fmt.Errorf("metrics: %d outputs for %d examples of %d; allowed: as many, and at least one", len(outputs), len(targets), each)
	}
	classes := max(2, each)
	var m ClassMetrics
	right, logs := 0, 0.0
	p := make([]float64, len(targets)*classes)
	for i, target := range targets {
		label := int(target)
		if float64(label) != target || label < 0 || label >= classes {
			return ClassMetrics{}, fmt.Errorf("metrics: example %d has the class %v; allowed: 0 to %d", i, target, classes-1)
		}
		own := p[i*classes : (i+1)*classes]
		logs -= probabilities(own, outputs[i*each:(i+1)*each], loss, label)
		if answer := largestAt(own); answer == label {
			right++
		}
	}
	n := float64(len(targets))
	m.Accuracy, m.LogLoss, m.AUC = float64(right)/n, logs/n, auc(p, classes, targets)
	return m, nil
}

// probabilities sets p to those of an example's classes, and returns the logarithm of
// the right one's, which is finite where the probability itself is rounded to 0.
func probabilities(p, outputs []float64, loss Loss, label int) float64 {
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
		return outputs[label] - top - math.Log(sum)
	case loss.ofClasses():
		p[0], p[1] = 1/(1+math.Exp(outputs[0])), 1/(1+math.Exp(-outputs[0]))
		return -softplus(float64(1-2*label) * outputs[0])
	}
	p[1] = min(max(outputs[0], leastProbability), 1-leastProbability)
	p[0] = 1 - p[1]
	return math.Log(p[label])
}

// Probabilities sets p to those of an example's classes, two or as many as it has
// outputs. Where outputs are not finite, what they are is not said.
func Probabilities(p, outputs []float64, loss Loss) { probabilities(p, outputs, loss, 0) }

// auc is the mean over classes; of two, one says it all.
func auc(p []float64, classes int, targets []float64) float64 {
	order := make([]int, len(targets))
	sum, known := 0.0, 0
	for class := range classes {
		if classes == 2 && class == 0 {
			continue
		}
		for i := range order {
			order[i] = i
		}
		score := func(i int) float64 { return p[i*classes+class] }
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(score(a), score(b)) })
		// The sum of the class's ranks, of equal scores their mean (Mann and Whitney 1947).
		var ranks, in float64
		for from := 0; from < len(order); {
			to := from + 1
			for to < len(order) && score(order[to]) == score(order[from]) {
				to++
			}
			for _, i := range order[from:to] {
				if int(targets[i]) == class {
					ranks += float64(from+to+1) / 2
					in++
				}
			}
			from = to
		}
		if out := float64(len(order)) - in; in > 0 && out > 0 {
			sum += (ranks - in*(in+1)/2) / (in * out)
			known++
		}
	}
	if known == 0 {
		return math.NaN()
	}
	return sum / float64(known)
}
