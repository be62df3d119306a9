package account

import (
	"math"
	"testing"
)

// Exact values of the signed series and quadrature, every order of the grid.
func TestGoldenExactVectors(t *testing.T) {
	var file exactFile
	golden(t, "exact_and_opacus.json", &file)
	worst := 0.0
	for _, row := range file.ExactVectors {
		curve := poissonGaussian{float64(row.Q), float64(row.NM)}.curve(nil)
		for i, order := range file.Meta.Orders {
			got, want := curve.RDP(order), float64(row.RDPPerStep[i])
			tolerance := 1e-6
			// The golden series stops at terms of e^-30 of A and sums from 1 on, so
			// log(A) has an absolute error of 1e-13, however small it is.
			tolerance += 1e-13 / (want * (order - 1))
			if d := apart(got, want); d > tolerance {
				t.Errorf("noise %v rate %v order %v: %v, want %v (%.1e apart, method %c)", row.NM, row.Q, order, got, want, d, row.Method[i])
			} else if tolerance < 2e-6 {
				worst = math.Max(worst, d)
			}
		}
	}
	t.Logf("largest relative difference where the golden value is good to 1e-6: %.1e", worst)
}

func TestGoldenExactEpsilon(t *testing.T) {
	var file exactFile
	golden(t, "exact_and_opacus.json", &file)
	for _, row := range file.ExactEps {
		got, order := rdpEpsilon(t, exampleTerms, dpsgd(float64(row.NM), float64(row.Q), row.Steps), float64(row.Delta), WithOrders(file.Meta.Orders...))
		if d := apart(got, float64(row.Eps)); d > 1e-6 {
			t.Errorf("%+v: epsilon %v at order %v (%.1e apart)", row, got, order, d)
		}
		refined, _ := rdpEpsilon(t, exampleTerms, dpsgd(float64(row.NM), float64(row.Q), row.Steps), float64(row.Delta))
		if refined > got*(1+1e-7) {
			t.Errorf("%+v: refined epsilon %v is above %v on the fixed orders", row, refined, got)
		}
	}
}

func TestGoldenChecks(t *testing.T) {
	var file exactFile
	golden(t, "exact_and_opacus.json", &file)
	for _, row := range file.Checks {
		got := poissonGaussian{row.Q, row.NM}.curve(nil).RDP(row.Order)
		// The quadrature's own error is some 1e-13 absolute: at the smallest value
		// (1.8e-10) that is 2e-5 relative.
		if math.Abs(got-float64(row.Quadrature)) > 1e-6*got+1e-15 {
			t.Errorf("%+v: got %v", row, got)
		}
		if got > float64(row.Google)*(1+1e-9) {
			t.Errorf("%+v: %v is above Google's upper bound", row, got)
		}
	}
}

func TestGoldenGoogleRDP(t *testing.T) {
	var file googleFile
	golden(t, "google_dp_accounting.json", &file)
	orders := file.Meta.DefaultOrders
	equal := 0
	for _, row := range file.A.Rows {
		got, order := rdpEpsilon(t, exampleTerms, dpsgd(float64(row.NM), float64(row.Q), row.Steps), float64(row.Delta), WithOrders(orders...))
		want := float64(row.Eps)
		if got > want*(1+1e-6) {
			t.Errorf("%+v: epsilon %v is above Google's", row, got)
		}
		if row.Q == 1 || (row.Order == num(math.Floor(float64(row.Order))) && order == float64(row.Order)) {
			equal++
			if d := apart(got, want); d > 1e-6 {
				t.Errorf("%+v: epsilon %v (%.1e apart)", row, got, d)
			}
		}
	}
	t.Logf("%d of %d rows compared for equality", equal, len(file.A.Rows))
	for _, row := range file.A.RDPVectors {
		curve := poissonGaussian{float64(row.Q), float64(row.NM)}.curve(nil)
		for i, order := range orders {
			got, want := curve.RDP(order), float64(row.RDPPerStep[i])
			slack := 1e-6 + 2e-14/(want*(order-1))
			integer := order == math.Floor(order) || row.Q == 1
			if integer && apart(got, want) > slack || !integer && got > want*(1+slack) {
				t.Errorf("noise %v rate %v order %v: %v, Google %v", row.NM, row.Q, order, got, want)
			}
		}
	}
}

func TestGoldenOpacusRDP(t *testing.T) {
	var file exactFile
	golden(t, "exact_and_opacus.json", &file)
	for _, row := range file.OpacusEps {
		got, _ := rdpEpsilon(t, exampleTerms, dpsgd(row.NM, row.Q, row.Steps), row.Delta, WithOrders(file.Meta.OpacusAlphas...))
		if d := apart(got, row.RDPEps); d > 1e-6 {
			t.Errorf("%+v: epsilon %v (%.1e apart)", row, got, d)
		}
	}
}
