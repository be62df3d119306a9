package cuda

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// plan of one linear layer.
func plan(t *testing.T, side int) model.Plan {
	t.Helper()
	m, err := model.Of(config.Run{
		Model:     config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 3}}},
		Algorithm: config.Algorithm{Local: config.Local{Loss: "cross-entropy"}},
	}, data.Shape{Height: side, Width: side, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.PlanOf(m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHelpersAreKept: networks one after another have one helper, also of other sizes; two
// at once have two, of one program; one that has ended while it waited is replaced.
func TestHelpersAreKept(t *testing.T) {
	cudatest.Use(t)
	t.Setenv("COTERIE_CUDA_TEST", t.Name()) // no other test's helpers
	open := func(side int) *Device {
		t.Helper()
		d, err := Open(0, plan(t, side))
		if err != nil {
			t.Fatal(err)
		}
		pictures := &data.Images{Height: side, Width: side, Pixels: make([]byte, side*side), Labels: []int{1}}
		c := &data.Client{Pictures: data.Pictures{Images: pictures, Index: []int{0}}}
		out := make([]float32, 3)
		theta := make([]float32, d.plan.Parameters)
		theta[len(theta)-1] = 5 // the last bias
		if err := d.Outputs(out, theta, c, []int{0}); err != nil || out[0] != 0 || out[2] != 5 {
			t.Fatalf("outputs %v, %v", out, err)
		}
		return d
	}
	closed := func(d *Device) {
		t.Helper()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first := open(4)
	h := first.helper
	closed(first)
	closed(first) // twice is once
	if _, err := first.ready(nil, nil); err == nil {
		t.Error("a closed device computes")
	}
	larger := open(40)
	if larger.helper != h {
		t.Error("the second network has a helper of its own")
	}
	other := open(4)
	if other.helper == h {
		t.Error("two networks have one helper at the same time")
	}
	if other.helper.program != h.program {
		t.Error("two networks at once have two programs, which take turns on the device")
	}
	closed(larger)
	closed(other)
	one, two := kept(keyFor(0)), kept(keyFor(0))
	if one == nil || two == nil {
		t.Fatalf("kept are %v and %v", one, two)
	}
	if err := one.end(); err != nil {
		t.Error(err)
	}
	if err := two.program.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	idle.Lock()
	idle.helpers = append(idle.helpers, two)
	idle.Unlock()
	again := open(4)
	if again.helper.program.spoiled() {
		t.Error("a helper that has ended is used")
	}
	closed(again)
	if h := kept(keyFor(0)); h == nil {
		t.Error("nothing is kept")
	} else if err := h.end(); err != nil {
		t.Error(err)
	}
}
