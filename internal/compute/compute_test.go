package compute_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

// small is a network of pictures, and a picture of class 1.
func small(t *testing.T) (config.Run, model.Model, *data.Client) {
	t.Helper()
	run := config.Run{Model: config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 3}}}}
	run.Algorithm.Local.Loss = "cross-entropy"
	m, err := model.Of(run, data.Shape{Height: 4, Width: 4, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	pictures := &data.Images{Height: 4, Width: 4, Pixels: make([]byte, 16), Labels: []int{1}}
	return run, m, &data.Client{Pictures: data.Pictures{Images: pictures, Index: []int{0}}}
}

// TestLostDeviceIsOpenedAgain: a member's device that is lost fails whoever uses it then, and whoever
// uses it next has a new one, once there is one; a run's stays lost.
func TestLostDeviceIsOpenedAgain(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a GPU does not fail when it is asked to")
	}
	run, m, c := small(t)
	run.Run.Device = "cuda"
	for name, open := range map[string]func() (compute.Placed, error){
		"member": func() (compute.Placed, error) { return compute.ForMember("cuda", run, m) },
		"run":    func() (compute.Placed, error) { return compute.On(run, m, 1) },
	} {
		t.Setenv("COTERIE_EMU_FAIL", "lost") // after three launches
		p, err := open()
		if err != nil {
			t.Fatal(err)
		}
		learner, err := p.Model.Learner()
		if err != nil {
			t.Fatal(err)
		}
		theta := make([]float64, m.Parameters())
		loss := func() error {
			l, _, err := learner.Judge(theta, c)
			if err == nil && math.Abs(l-math.Log(3)) > 1e-6 {
				t.Errorf("%s: the loss is %v", name, l)
			}
			return err
		}
		for range 4 { // one launch each, or more
			if err = loss(); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), "the device may be lost") {
			t.Errorf("%s: a lost device: %v", name, err)
		}
		t.Setenv("COTERIE_EMU_FAIL", "cuInit") // nor is there another one
		if err := loss(); err == nil || name == "member" && (!strings.Contains(err.Error(), "there is no device") || !strings.Contains(err.Error(), "it was lost before")) {
			t.Errorf("%s: without a device: %v", name, err)
		}
		t.Setenv("COTERIE_EMU_FAIL", "")
		if err := loss(); (err == nil) != (name == "member") {
			t.Errorf("%s: with a device again: %v", name, err)
		}
		if err := p.Close(); err != nil {
			t.Error(name, err)
		}
		if err := loss(); err == nil {
			t.Errorf("%s: a device that was closed computes", name)
		}
	}
}

// TestMembersKeyIsNamed: what a member's file asks for is told by that file's key.
func TestMembersKeyIsNamed(t *testing.T) {
	t.Setenv("COTERIE_CUDA_PROGRAM", t.TempDir()+"/no-such-program")
	run, m, _ := small(t)
	if _, err := compute.ForMember("cuda:1", run, m); err == nil || !strings.HasPrefix(err.Error(), "device cuda:1: ") || !strings.HasSuffix(err.Error(), "; device cpu computes on the processor") {
		t.Error(err)
	}
	for _, asked := range []string{"", "cpu"} {
		if p, err := compute.ForMember(asked, run, m); err != nil || p.Used != nil || p.Model != m || p.Close() != nil {
			t.Errorf("%q: %+v, %v", asked, p, err)
		}
	}
	p, err := compute.ForMember("auto", run, m)
	if err != nil || p.Used == nil || !strings.Contains(p.Used.Why, "no-such-program") || p.Model != m || p.Close() != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestPicturesWithoutRoom: a run whose pictures a device has no room for is computed by the processor
// under auto, which says so before anything is computed, and refused otherwise.
func TestPicturesWithoutRoom(t *testing.T) {
	cudatest.Use(t)
	run, m, _ := small(t)
	const many, want = 1 << 36, "the network needs"
	run.Run.Device = "auto"
	if p, err := compute.On(run, m, many); err != nil || p.OnDevice() || p.Used == nil || !strings.Contains(p.Used.Why, want) || !strings.Contains(p.Used.Why, "and pictures") {
		t.Errorf("auto: %+v, %v", p.Used, err)
	}
	run.Run.Device = "cuda"
	if _, err := compute.On(run, m, many); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("cuda: %v", err)
	}
}
