package lab

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

const onDigits = `
data: {kind: mnist}
model: {kind: network, layers: [{kind: conv, channels: 2, kernel: 4, stride: 4}, {kind: relu}, {kind: linear, units: 10}]}
algorithm: {kind: central, mode: sound, rounds: 2, local: {steps: 2, batch: 20, step: 1}}
privacy: {protects: nothing}
`

// onDigitsStudy is a study of two cells a seed: one of a grid, one that is a line of a file.
func onDigitsStudy(losses *[]float64, set ...string) Experiment {
	return Experiment{
		ID: "digits", Device: true, Seeds: map[string]int{Smoke: 2},
		Launch: func(l *Lab) (study.Study, error) {
			run, err := config.Resolve([]byte(onDigits), set, sim.Checks()...)
			if err != nil {
				return study.Study{}, err
			}
			cell := func(l *Lab, run config.Run) (float64, error) {
				res, err := l.Result(run)
				return float64(res.Metrics.Loss), err
			}
			grid, err := Grid(l, []config.Run{run}, cell)
			if err != nil {
				return study.Study{}, err
			}
			lines, err := Fill(l, "digits.jsonl", nil, []uint64{3}, func(l *Lab, seed uint64) (float64, error) {
				own, err := l.Resolve(run)
				if err != nil {
					return 0, err
				}
				own.Seed = seed
				return cell(l, own)
			})
			if err != nil {
				return study.Study{}, err
			}
			if *losses = grid[0]; len(lines) > 0 {
				*losses = append(*losses, lines[3].Value)
			}
			return study.Study{}, nil
		},
	}
}

func digitsOptions(t *testing.T, device string) Options {
	return Options{Scale: Smoke, Out: t.TempDir(), Data: cudatest.Digits(t), Device: device, Version: "test", Tick: func(int, int) {}}
}

// TestCellsOnADevice: cells are computed on the device that is asked for, their records and
// the page name it, also when they are taken up from files; the processor's are others.
func TestCellsOnADevice(t *testing.T) {
	cudatest.Use(t)
	o := digitsOptions(t, "cuda")
	var there, again, here []float64
	for _, losses := range []*[]float64{&there, &again} {
		s, err := onDigitsStudy(losses).Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Devices) != 1 || !strings.HasPrefix(s.Devices[0], "3 cells: ") || !strings.Contains(s.Devices[0], "CUDA") || !strings.HasSuffix(s.Command, " --device cuda") {
			t.Errorf("%q, %q", s.Devices, s.Command)
		}
		if page, err := os.ReadFile(s.Report); err != nil || !bytes.Contains(page, []byte("3 cells: ")) {
			t.Errorf("the page does not say what computed its figures: %v", err)
		}
	}
	line, err := os.ReadFile(filepath.Join(o.Out, "digits.jsonl"))
	if err != nil || bytes.Count(line, []byte("\n")) != 1 || !bytes.Contains(line, []byte(`"kernel":"cuda `)) || !bytes.Contains(line, []byte(`"devices":[{"asked":"cuda","name":`)) {
		t.Errorf("%s, %v", line, err)
	}
	o.Device, o.Out = "cpu", t.TempDir()
	s, err := onDigitsStudy(&here).Run(t.Context(), o)
	if err != nil || s.Devices != nil || strings.Contains(s.Command, "--device") {
		t.Errorf("%q, %q, %v", s.Devices, s.Command, err)
	}
	for i := range here {
		if there[i] != again[i] || there[i] == here[i] || there[i]-here[i] > 1e-4 || here[i]-there[i] > 1e-4 {
			t.Errorf("seed %d: on the device %v, taken up %v, on the processor %v", i+1, there[i], again[i], here[i])
		}
	}
	if line, err = os.ReadFile(filepath.Join(o.Out, "digits.jsonl")); err != nil || !bytes.Contains(line, []byte(`"kernel":"`+model.Kernel()+`"`)) || bytes.Contains(line, []byte("devices")) {
		t.Errorf("%s, %v", line, err)
	}
}

// TestDevicesThatDoNotHelp: auto computes on the processor and the page says why; cuda is
// refused, before anything is computed where that is known.
func TestDevicesThatDoNotHelp(t *testing.T) {
	cudatest.Use(t)
	var losses []float64
	noKernel := "model.layers=[{kind: linear, units: 10}, {kind: gelu}]" // for a network that ends with it
	s, err := onDigitsStudy(&losses, noKernel).Run(t.Context(), digitsOptions(t, "auto"))
	if err != nil || len(s.Devices) != 1 || !strings.Contains(s.Devices[0], "3 cells: the processor, although run.device is auto: a device has no kernel") {
		t.Errorf("%q, %v", s.Devices, err)
	}
	if _, err := onDigitsStudy(&losses, noKernel).Run(t.Context(), digitsOptions(t, "cuda")); err == nil || !strings.Contains(err.Error(), "gelu") {
		t.Error(err)
	}
	other := onDigitsStudy(&losses)
	other.Device = false
	if s, err = other.Run(t.Context(), digitsOptions(t, "auto")); err != nil || len(s.Devices) != 1 || !strings.Contains(s.Devices[0], "although --device is auto: it has no run") {
		t.Errorf("%q, %v", s.Devices, err)
	}
	if _, err := other.Run(t.Context(), digitsOptions(t, "cuda:0")); !errors.Is(err, errNoDevice) || !strings.Contains(err.Error(), "reproduce digits, --device cuda:0") {
		t.Error(err)
	}
	if _, err := other.Run(t.Context(), digitsOptions(t, "gpu")); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// TestTimeEndsCellsUnderWay: a run that is longer than --for leaves a checkpoint; the same
// command goes on from it, and what comes of it in the end is what one command gives.
func TestTimeEndsCellsUnderWay(t *testing.T) {
	long := func(l *Lab, seed uint64) (float64, error) {
		run, err := config.Resolve([]byte(onDigits), []string{"algorithm.rounds=1500"}, sim.Checks()...)
		if err != nil {
			return 0, err
		}
		run.Seed = seed
		res, err := l.Result(run)
		return float64(res.Metrics.Loss), err
	}
	made := func(o Options) map[uint64]Record[uint64, float64] {
		t.Helper()
		l, err := New(t.Context(), onDigitsStudy(nil), o)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		out, err := Fill(l, "long.jsonl", nil, []uint64{1, 2}, long)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); o.For > 0 && took > o.For+5*time.Second {
			t.Errorf("--for %v took %v", o.For, took)
		}
		return out
	}
	o := digitsOptions(t, "")
	o.Workers = 2
	began := time.Now()
	want := made(o)
	whole := time.Since(began)
	o.Out = t.TempDir()
	o.For = max(whole/4, time.Millisecond)
	calls, kept, got := 0, 0, map[uint64]Record[uint64, float64]{}
	for ; len(got) < 2 && calls < 100; calls++ {
		got = made(o)
		left, _ := filepath.Glob(filepath.Join(o.Out, "checkpoints", "*"))
		kept += len(left)
	}
	t.Logf("at once %v, then %d calls of %v", whole, calls, o.For)
	if kept == 0 {
		t.Errorf("%d calls of %v left no checkpoint; at once it took %v", calls, o.For, whole)
	}
	for seed, r := range want {
		if got[seed].Value != r.Value {
			t.Errorf("seed %d: %v in pieces, %v at once", seed, got[seed].Value, r.Value)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.Out, "checkpoints*")); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}
