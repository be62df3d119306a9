package audit

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// quarter is LeNet on pictures of a quarter of the size, for speed.
func quarter() Network {
	n := LeNet(10)
	n.Input.Height, n.Input.Width = 14, 14
	return n
}

func leak(t *testing.T, n Network, nu float64, sample, evaluations, restarts int) (Quality, Recovered, bool) {
	t.Helper()
	x, label, r := attacked(t, n, nu, sample)
	d := DLG{Loss: "cross-entropy", Evaluations: evaluations, Restarts: restarts, Seed: uint64(sample), Floor: NoiseFloor(nu)}
	got, err := d.Attack(context.Background(), n, r.Update)
	if err != nil {
		t.Fatal(err)
	}
	return quality(t, n, x, got), got, got.Label == label
}

// TestDLG: figure 5 of paper 000 in small. The picture is recovered at 0 and
// 0.001, and not at 1 and 10, whatever the closed form says.
func TestDLG(t *testing.T) {
	n := quarter()
	for _, nu := range []float64{0, 0.001} {
		for sample := range 2 {
			q, got, label := leak(t, n, nu, sample, 300, 4)
			if !q.Success() || q.SSIM < 0.95 || !label {
				t.Errorf("nu %v, picture %d: %+v, match %.2g, label found: %v", nu, sample, q, got.Match, label)
			}
		}
	}
	for _, nu := range []float64{1, 10} {
		if q, got, _ := leak(t, n, nu, 0, 300, 1); q.PSNR > 15 {
			t.Errorf("nu %v: %+v, match %.2g", nu, q, got.Match)
		}
	}
}

func TestDLGIsDeterministic(t *testing.T) {
	_, a, _ := leak(t, quarter(), 0.1, 3, 40, 1)
	_, b, _ := leak(t, quarter(), 0.1, 3, 40, 1)
	if !slices.Equal(a.Picture, b.Picture) || a.Match != b.Match || a.Evaluations > 40 {
		t.Errorf("two runs: match %v and %v after %d evaluations", a.Match, b.Match, a.Evaluations)
	}
}

func TestDLGStopsAndRefuses(t *testing.T) {
	n := quarter()
	_, _, r := attacked(t, n, 0, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := DLG{Loss: "cross-entropy", Evaluations: 100, Restarts: 1}
	if _, err := d.Attack(ctx, n, r.Update); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := (DLG{Loss: "cross-entropy"}).Attack(context.Background(), n, r.Update); err == nil {
		t.Error("no evaluations are accepted")
	}
	if _, err := d.Attack(context.Background(), LeNet(10), r.Update); err == nil {
		t.Error("another network's update is accepted")
	}
}

// TestPapersNetworkLeaks is the thesis' own network, 1.2 million parameters.
func TestPapersNetworkLeaks(t *testing.T) {
	if !*soak {
		t.Skip("minutes: run it with -soak")
	}
	n := Papers(62)
	if q, got, label := leak(t, n, 0.001, 0, 200, 2); !q.Success() || !label {
		t.Errorf("DLG at 0.001: %+v, match %.2g", q, got.Match)
	}
	x, _, r := attacked(t, n, 1, 0)
	got, err := ClosedForm{Loss: "cross-entropy", Evaluations: 300}.Attack(context.Background(), n, r.Update)
	if err != nil {
		t.Fatal(err)
	}
	if q := quality(t, n, x, got); q.SSIM < 0.5 {
		t.Errorf("closed form at 1: %+v", q)
	}
}
