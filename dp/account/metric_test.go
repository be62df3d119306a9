package account

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

func atRadius(radius float64) event.MetricLaplace {
	return event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: radius}
}

func TestMetricKeepsBothNumbers(t *testing.T) {
	var m Metric
	for _, r := range []float64{1, 0.5, 0.25} { // epsilon 0.4, 0.8, 1.6 per unit of distance
		m.Add(atRadius(r))
	}
	if m.Epsilon() != 1.2 {
		t.Errorf("the papers' sum is %v, want 3*n/nu", m.Epsilon())
	}
	if got := m.At(0.5); math.Abs(got-1.4) > 1e-15 {
		t.Errorf("at distance 0.5 the loss is %v, want 1.4", got)
	}
	m.Add(event.MetricLaplace{Dimension: 2, NoiseMultiplier: 2, Radius: 1})
	if got := m.Epsilon(); math.Abs(got-2.2) > 1e-15 || m.Releases != 4 {
		t.Errorf("%v after %d releases", got, m.Releases)
	}
}

func TestMetricEqualReleasesMultiply(t *testing.T) {
	var m Metric
	for range 1_000_000 {
		m.Add(atRadius(1))
	}
	if m.Epsilon() != 400_000 {
		t.Errorf("%v: a sum of rounded sums", m.Epsilon())
	}
}

func TestMetricCeiling(t *testing.T) {
	var m Metric
	for i := range 6 {
		if !m.Allows(atRadius(1), 2.4) {
			t.Fatalf("release %d was refused below the ceiling", i+1)
		}
		m.Add(atRadius(1))
	}
	if m.Allows(atRadius(1), 2.4) {
		t.Error("a seventh release passes a ceiling of six")
	}
	if m.Releases != 6 {
		t.Errorf("asking changed the account: %d releases", m.Releases)
	}
}

func TestMetricUnprotected(t *testing.T) {
	var m Metric
	m.AddUnprotected()
	if !math.IsInf(m.Epsilon(), 1) || !math.IsInf(m.At(0), 1) || m.Allows(atRadius(1), 1e300) {
		t.Errorf("a release without noise costs %v", m.Epsilon())
	}
}

func TestMetricSlack(t *testing.T) {
	var m Metric
	one := atRadius(1)
	one.Slack = 0.01
	m.Add(one)
	m.Add(one)
	if got := m.Epsilon(); math.Abs(got-0.82) > 1e-15 || math.Abs(m.At(0)-0.02) > 1e-15 {
		t.Errorf("two releases with slack cost %v, %v at distance 0", got, m.At(0))
	}
	if m.Allows(one, 1.2) {
		t.Error("the slack of the next release is not counted")
	}
}
