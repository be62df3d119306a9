package model

import (
	"fmt"
	"math"
)

// Slopes makes the gradients at a network's outputs for losses that devices have no kernel
// for: few values, which a program beside the device makes as the processor's engine would.
type Slopes struct {
	objective Objective[float32]
	classes   int
	outputs   int                  // of an example
	root      bool                 // of the mean of squares over a batch, of which the objective has one example's share
	end       *activation[float32] // that the network ends with; nil: none
	target    []float32
	d         []float32
}

// Slopes are those of a plan's loss; nil: devices have a kernel for it.
func (p Plan) Slopes() (*Slopes, error) {
	out := p.outputs()
	if p.Words || p.Itself || p.Loss == CrossEntropy.String() && out > 1 && p.Emphasis.Weights == nil {
		return nil, nil
	}
	loss, err := ParseLoss(p.Loss)
	if err != nil {
		return nil, err
	}
	s := &Slopes{classes: p.Classes, outputs: out, root: loss == RMSE}
	if s.objective, _, err = objectives[float32](loss, p.Emphasis, p.Classes, out); err != nil {
		return nil, err
	}
	if err := s.objective.check(out); err != nil {
		return nil, err
	}
	if last := p.Layers[len(p.Layers)-1]; last.Activation != "" {
		l, _, err := buildLayer[float32](last.Out, Layer{Kind: last.Activation, Slope: last.Slope}, nil)
		if err != nil {
			return nil, err
		}
		s.end, _ = l.(*activation[float32])
	}
	return s, nil
}

// outputs is how many values a planned network ends with.
func (p Plan) outputs() int { return p.Layers[len(p.Layers)-1].Out.Len() }

// mostLabel is the largest class that an example may have.
func mostLabel(outputs int) int { return max(2, outputs) - 1 }

// Aim is what an example's outputs are compared with, as a device is told it: its class's
// number, or the bits of its value.
func (p Plan) Aim(target float64) (int32, error) {
	switch label := int32(target); {
	case p.Itself:
		return 0, nil
	case p.Classes == 0:
		return int32(math.Float32bits(float32(target))), nil
	case float64(label) != target || label < 0 || int(label) > mostLabel(p.outputs()):
		return 0, fmt.Errorf("the class %v; allowed: whole numbers from 0 to %d", target, mostLabel(p.outputs()))
	default:
		return label, nil
	}
}

// Of is the gradients at outputs of examples with these aims, one after another, in front of
// the activation that made them. They stay until the next call.
func (s *Slopes) Of(outputs []float32, aims []int32) ([]float32, error) {
	out := s.outputs
	if len(outputs) != len(aims)*out {
		return nil, fmt.Errorf("%d outputs of %d examples with %d each", len(outputs), len(aims), out)
	}
	s.d = append(s.d[:0], outputs...)
	for k, aim := range aims {
		label := 0
		if s.classes > 0 {
			if label = int(aim); label < 0 || label > mostLabel(out) {
				return nil, fmt.Errorf("class %d; allowed: 0 to %d", label, mostLabel(out))
			}
		}
		s.target = targetsOf(s.target[:0], s.classes, out, label, math.Float32frombits(uint32(aim)))
		d := s.d[k*out : (k+1)*out]
		if !s.root {
			s.objective.loss(outputs[k*out:(k+1)*out], label, s.target, d)
			continue
		}
		for i, t := range s.target {
			d[i] -= t
		}
	}
	if s.root {
		s.rooted()
	} else {
		dropTiny(s.d)
	}
	if s.end != nil {
		s.end.back(s.d, outputs)
	}
	return s.d, nil
}

// rooted makes of differences the gradients of the root of their squares' mean, times the
// number of examples, whose mean is then the batch's gradient.
func (s *Slopes) rooted() {
	sum := 0.0
	for _, v := range s.d {
		sum += float64(v) * float64(v)
	}
	share := 0.0 // of a perfect fit
	if root := math.Sqrt(sum / float64(len(s.d))); root > 0 {
		share = 1 / (root * float64(s.outputs))
	}
	for i, v := range s.d {
		s.d[i] = float32(share * float64(v))
	}
}

// targetsOf appends what squares compare outputs with: the value, or 1 at the class's own
// output; with one output, the class itself.
func targetsOf[F Float](targets []F, classes, out, label int, value F) []F {
	switch {
	case classes == 0:
		return append(targets, value)
	case out == 1:
		return append(targets, F(label))
	}
	for j := range out {
		var hot F
		if j == label {
			hot = 1
		}
		targets = append(targets, hot)
	}
	return targets
}
