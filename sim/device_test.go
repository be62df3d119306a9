package sim_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

// digits are a folder with a few pictures in MNIST's place.
func digits(t *testing.T) *data.Folder { return data.NewFolder(cudatest.Digits(t)) }

const onDigits = `
data: {kind: mnist}
model: {kind: network, layers: [{kind: conv, channels: 4, kernel: 4, stride: 3}, {kind: relu}, {kind: max-pool, kernel: 2}, {kind: linear, units: 10}]}
algorithm: {kind: central, mode: sound, rounds: 2, local: {steps: 3, batch: 20, step: 5}}
privacy: {protects: example, epsilon: 8, clip: 0.5, clipping: {rule: online}, public_size: 60}
`

func resolved(t *testing.T, set ...string) config.Run {
	t.Helper()
	run, err := config.Resolve([]byte(onDigits), set, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func trained(t *testing.T, run config.Run, folder *data.Folder) (sim.Result, []float64) {
	t.Helper()
	s, err := sim.New(run, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	return res, s.Returned()
}

// TestARunOnADevice: the same run file on the processor and on a device draws the same
// batches and the same noise, is charged the same, and ends with the same model but for
// rounding; the result says where it was computed.
func TestARunOnADevice(t *testing.T) {
	cudatest.Use(t)
	folder := digits(t)
	for _, set := range []string{
		"privacy.clipping.rule=online", "privacy.clipping.rule=quantile", "privacy.clipping.rule=fixed",
		"privacy.clipping.rule=online privacy.noise=exact-seeded", "privacy.clipping.rule=quantile privacy.noise=exact-seeded", "privacy.clipping.rule=fixed privacy.noise=exact-seeded",
	} {
		here, want := trained(t, resolved(t, strings.Fields(set)...), folder)
		there, got := trained(t, resolved(t, append(strings.Fields(set), "run.device=cuda")...), folder)
		var off, size float64
		for i := range want {
			off, size = off+(got[i]-want[i])*(got[i]-want[i]), size+want[i]*want[i]
		}
		if off = math.Sqrt(off / size); !(off < 1e-4) || off == 0 {
			t.Errorf("%s: the models are %.2g apart", set, off)
		}
		if here.Privacy.Epsilon != there.Privacy.Epsilon || here.ConfigSHA256 != there.ConfigSHA256 {
			t.Errorf("%s: charged %v here and %v there", set, here.Privacy.Epsilon, there.Privacy.Epsilon)
		}
		if exact := strings.Contains(set, "exact"); slices.Contains(there.Privacy.NotCovered, compute.Uncovered) != exact || slices.Contains(here.Privacy.NotCovered, compute.Uncovered) {
			t.Errorf("%s: not covered are %q here and %q there", set, here.Privacy.NotCovered, there.Privacy.NotCovered)
		} else if want := map[bool]event.Claim{true: event.ClaimHeuristic, false: here.Privacy.Claim}[exact]; here.Privacy.Claim != event.ClaimProved || there.Privacy.Claim != want {
			t.Errorf("%s: %s here, and %s there", set, here.Privacy.Claim, there.Privacy.Claim)
		}
		if d := there.Device; here.Device != nil || d == nil || d.Name == "" || len(d.Kernels) != 64 || d.Why != "" || d.Asked != "cuda" {
			t.Errorf("%s: here %+v, there %+v", set, here.Device, there.Device)
		}
		if here.Kernel != model.Kernel() || !strings.HasPrefix(there.Kernel, "cuda ") {
			t.Errorf("kernels %q and %q", here.Kernel, there.Kernel)
		}
	}
}

// TestAutoFallsBack: where there is no device, auto computes what cpu computes and says
// why; cuda is an error. Neither is silent.
func TestAutoFallsBack(t *testing.T) {
	folder := digits(t)
	t.Setenv("COTERIE_CUDA_PROGRAM", filepath.Join(t.TempDir(), "no-such-program"))
	here, want := trained(t, resolved(t), folder)
	fallen, got := trained(t, resolved(t, "run.device=auto"), folder)
	for i := range want {
		if got[i] != want[i] {
			t.Fatal("auto without a device computes something else than cpu")
		}
	}
	if d := fallen.Device; d == nil || d.Name != "" || !strings.Contains(d.Why, "no-such-program") || fallen.Kernel != here.Kernel {
		t.Errorf("%+v, %q", d, fallen.Kernel)
	}
	if _, err := sim.New(resolved(t, "run.device=cuda"), folder); err == nil || !strings.Contains(err.Error(), "run.device cpu computes on the processor") {
		t.Error(err)
	}
}

// TestDevicesThatCannot: what is missing, too old, too small or lost is told in a sentence.
func TestDevicesThatCannot(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a GPU does not fail when it is asked to")
	}
	folder := digits(t)
	for fail, want := range map[string]string{
		"cuInit": "there is no device", "old": "compute capability 5", "cuMemAlloc": "on the device for 576 examples at a time; free are 2 MB of",
	} {
		t.Setenv("COTERIE_EMU_FAIL", fail)
		if _, err := sim.New(resolved(t, "run.device=cuda"), folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", fail, err)
		}
		if res, _ := trained(t, resolved(t, "run.device=auto"), folder); res.Device == nil || !strings.Contains(res.Device.Why, want) {
			t.Errorf("%s: %+v", fail, res.Device)
		}
	}
	t.Setenv("COTERIE_EMU_FAIL", "")
	if _, err := sim.New(resolved(t, "run.device=cuda:7"), folder); err == nil || !strings.Contains(err.Error(), "there is no device 7") {
		t.Error(err)
	}
	t.Setenv("COTERIE_EMU_FAIL", "lost")
	s, err := sim.New(resolved(t, "run.device=cuda"), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step(); err == nil || !strings.Contains(err.Error(), "the device may be lost") {
		t.Errorf("a lost device: %v", err)
	}
}

// TestOnProcessorsOnly: what a device does not do is refused before anything is loaded, or
// auto says so.
func TestOnProcessorsOnly(t *testing.T) {
	for set, want := range map[string]string{
		"algorithm.prox=inside": "algorithm.prox is inside", "run.device=gpu": "does not fit the pattern",
	} {
		_, err := config.Resolve([]byte(onDigits), []string{"run.device=cuda", set}, sim.Checks()...)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "run.device") {
			t.Errorf("%s: %v", set, err)
		}
	}
	res, _ := trained(t, resolved(t, "run.device=auto", "privacy.noise=exact-seeded"), digits(t))
	if res.Device == nil || !strings.Contains(res.Device.Why, "emulation of a GPU alone") {
		t.Errorf("%+v", res.Device)
	}
}

// TestExactUpdatesOnADevice: where whole updates have the noise, a device takes the steps, and auto
// has it do so.
func TestExactUpdatesOnADevice(t *testing.T) {
	cudatest.Use(t)
	folder, text := digits(t), strings.NewReplacer("kind: central", "kind: fedavg", "steps: 3", "epochs: 1",
		"{protects: example, epsilon: 8, clip: 0.5, clipping: {rule: online}, public_size: 60}", "{protects: update, noise: exact-seeded, noise_multiplier: 3, radius: 0.5}").Replace(onDigits)
	var models [2][]float64
	for i, device := range []string{"cpu", "auto"} {
		run, err := config.Resolve([]byte(text), []string{"run.device=" + device}, sim.Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		res, theta := trained(t, run, folder)
		if models[i] = theta; i == 1 && (res.Device == nil || res.Device.Name == "" || slices.Contains(res.Privacy.NotCovered, compute.Uncovered)) {
			t.Errorf("%+v, %q", res.Device, res.Privacy.NotCovered)
		}
	}
	var off, size float64
	for i, v := range models[0] {
		off, size = off+(models[1][i]-v)*(models[1][i]-v), size+v*v
	}
	if off = math.Sqrt(off / size); !(off < 1e-4) || off == 0 {
		t.Errorf("the models are %.2g apart", off)
	}
}

const onTable = `
data:
  kind: table
  source: {path: ../examples/clinics.csv, client: clinic}
  target: readmitted
  task: yes/no
  features:
    - {name: age, type: number, range: [0, 120]}
    - {name: bmi, type: number, range: [10, 60], missing: indicator}
    - {name: ward, type: category, values: [cardiology, surgery, geriatrics, neurology]}
    - {name: smoker, type: yes/no}
    - {name: visits, type: number, range: [0, 20]}
model: {kind: network, layers: [{kind: linear, units: 12}, {kind: tanh}, {kind: linear, units: 1}]}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 0.3, local: {step: 0.3, batch: 20}}
privacy: {epsilon: 4, delta: 1.0e-5, public_size: 100}
`

// TestAutoKeepsRowsHere: a network of rows is computed in double precision unless a device is
// named, though there is one.
func TestAutoKeepsRowsHere(t *testing.T) {
	cudatest.Use(t)
	run, err := config.Resolve([]byte(onTable), []string{"run.device=auto"}, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	res, _ := trained(t, run, data.NewFolder(""))
	if d := res.Device; d == nil || d.Name != "" || !strings.Contains(d.Why, "double precision") || res.Kernel != model.Kernel() {
		t.Errorf("%+v, %q", res.Device, res.Kernel)
	}
}

// TestATableOnADevice: silos that train networks on rows of a table end near where they end on the
// processor, which computes in double precision: batches, noise and charges are the same.
func TestATableOnADevice(t *testing.T) {
	cudatest.Use(t)
	folder := data.NewFolder("")
	for _, set := range []string{
		"", "units: 12 / units: 1700", // few parameters, and as many as have noise from a key
		"step: 0.3 / step: 0.3, loss: focal", "step: 0.3 / step: 0.3, loss: hinge", "step: 0.3 / step: 0.3, loss: squared-error",
		"epsilon: 4, delta: 1.0e-5, public_size: 100 / protects: nothing", "epsilon: 4 / epsilon: 4, clipping: {rule: quantile}",
	} {
		old, changed, _ := strings.Cut(set, " / ")
		run := func(more ...string) config.Run {
			run, err := config.Resolve([]byte(strings.Replace(onTable, old, changed, 1)), more, sim.Checks()...)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		here, want := trained(t, run(), folder)
		there, got := trained(t, run("run.device=cuda"), folder)
		var off, size float64
		for i := range want {
			off, size = off+(got[i]-want[i])*(got[i]-want[i]), size+want[i]*want[i]
		}
		if off = math.Sqrt(off / size); !(off < 1e-4) || off == 0 {
			t.Errorf("%s: the models are %.2g apart", set, off)
		}
		if here.Privacy.Epsilon != there.Privacy.Epsilon || there.Device == nil || there.Device.Name == "" {
			t.Errorf("%s: charged %v here and %v there, computed by %+v", set, here.Privacy.Epsilon, there.Privacy.Epsilon, there.Device)
		}
	}
}
