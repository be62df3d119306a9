package model

import (
	"math"

	"github.com/coterie-fl/coterie/data"
)

// Best is the lowest loss among hypotheses of n parameters that lie one after
// another, and which of them has it: the lowest index on a tie.
func Best(l Learner, n int, hypotheses []float64, c *data.Client) (loss float64, index int, err error) {
	loss = math.Inf(1)
	for j := 0; (j+1)*n <= len(hypotheses); j++ {
		e, err := l.Loss(hypotheses[j*n:(j+1)*n], c)
		if err != nil {
			return loss, index, err
		}
		if e < loss {
			loss, index = e, j
		}
	}
	return loss, index, nil
}

// HonestRMSE scores every row under the hypothesis that fits the client's other
// rows best: a client that chooses on the rows it is scored on looks better than
// it is. It says false for a client without other rows, and for pictures.
func HonestRMSE(l Learner, n int, hypotheses []float64, c *data.Client) (rmse float64, ok bool, err error) {
	rows := c.Len()
	if c.Images != nil || rows < 2 {
		return 0, false, nil
	}
	k := len(hypotheses) / n
	errs, totals := make([]float64, k*rows), make([]float64, k)
	for j := range k {
		if err := l.Losses(errs[j*rows:(j+1)*rows], hypotheses[j*n:(j+1)*n], c); err != nil {
			return 0, false, err
		}
		for _, e := range errs[j*rows : (j+1)*rows] {
			totals[j] += e
		}
	}
	var sum float64
	for i := range rows {
		best := 0
		for j := 1; j < k; j++ {
			if totals[j]-errs[j*rows+i] < totals[best]-errs[best*rows+i] {
				best = j
			}
		}
		sum += errs[best*rows+i]
	}
	return math.Sqrt(sum / float64(rows)), true, nil
}
