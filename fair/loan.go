package fair

import (
	"fmt"
	"math"
)

// The groups of the synthetic loan study, as the data generator numbers them.
const (
	LoanPrivileged   = 0 // g1: 800 users, y = x·theta_1 + u
	LoanUnprivileged = 1 // g2: 200 users, y = x·theta_2 + LoanShift + u
)

// LoanShift is what the unprivileged group's values are shifted by.
const LoanShift = 15

// LoanLabel turns a value of the synthetic loan study into a label, 1 for "loan
// approved" and 0 for "loan denied" (paper 003, section 5.2.1; thesis 001, section
// 2.5.2). True values and predictions get their labels by the same rule, which
// depends on the group:
//
//	g1: 1 if sigmoid(y) >= 1/2
//	g2: 1 if sigmoid(y - 15) <= 1/2
//
// The sigmoid passes 1/2 at 0, so the rules compare y with 0 and with 15; that is
// exact, where the sigmoid of a value next to 0 would be rounded to 1/2.
func LoanLabel(group int, y float64) (int, error) {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return 0, fmt.Errorf("fair: the loan study's value is %v: it must be finite", y)
	}
	approved := false
	switch group {
	case LoanPrivileged:
		approved = y >= 0
	case LoanUnprivileged:
		approved = y <= LoanShift
	default:
		return 0, fmt.Errorf("fair: the loan study has no group %d: allowed are %d (privileged) and %d (unprivileged)",
			group, LoanPrivileged, LoanUnprivileged)
	}
	if approved {
		return 1, nil
	}
	return 0, nil
}
