package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/model"
)

// DeviceUsed is where a run's networks were computed, if its file asks for more than this
// processor. A device's bits are its own: name, driver and kernels name a result like the
// processor's kernel set.
type DeviceUsed struct {
	Asked string `json:"asked"` // run.device
	// Name, Driver and Kernels are of the device; empty: the processor computed.
	Name    string `json:"name"`
	Driver  string `json:"driver"`
	Kernels string `json:"kernels"` // SHA-256 of their source
	// Why the processor computed although a device was asked for; empty: it did not.
	Why string `json:"why"`
}

// String says where a run's networks were computed.
func (d DeviceUsed) String() string {
	if d.Name == "" {
		return fmt.Sprintf("the processor, although run.device is %s: %s", d.Asked, d.Why)
	}
	return fmt.Sprintf("%s (%s), kernels %.12s", d.Name, d.Driver, d.Kernels)
}

// checkDevice refuses a device for what only the processor does.
func checkDevice(run config.Run) config.Faults {
	var c config.Checker
	if strings.HasPrefix(run.Run.Device, "cuda") {
		why := onProcessorOnly(run)
		c.Require(why == "", "run.device", "is %s, but %s; allowed: cpu, or auto", run.Run.Device, why)
	}
	return c.Faults()
}

// onProcessorOnly says why a run's steps cannot be made on a device, whatever its network;
// empty: they can.
func onProcessorOnly(run config.Run) string {
	switch {
	case run.Algorithm.Prox == "inside":
		return "algorithm.prox is inside, where every example's gradient is shifted before it is clipped"
	case run.Model.Kind != "network" && run.Model.Kind != "transformer":
		return fmt.Sprintf("model.kind is %s, and devices compute networks", run.Model.Kind)
	}
	return ""
}

// addsWhole says that steps have exact noise, which needs sums of whole numbers.
func addsWhole(run config.Run) bool {
	return run.Privacy.Protects == "example" && run.Privacy.Noise != "simulated"
}

// UncoveredDevice is what exact noise on sums from a device leaves open, so that nothing is proved.
const UncoveredDevice = "the device's sums (run.device): that no row adds more than the clip, and the same whatever stands beside it, was tested on the emulation of a GPU alone"

// deviceFor is the device that the run file asks for, with the model on it; auto falls back
// to the processor, and says why.
func deviceFor(run config.Run, m model.Model) (model.Model, *cuda.Device, *DeviceUsed, error) {
	asked := run.Run.Device
	if asked == "" || asked == "cpu" {
		return m, nil, nil, nil
	}
	used := &DeviceUsed{Asked: asked}
	d, err := openDevice(run, m)
	switch {
	case err != nil && asked == "auto":
		used.Why = err.Error()
		return m, nil, used, nil
	case err != nil:
		return nil, nil, nil, fmt.Errorf("run.device %s: %w; run.device cpu computes on the processor", asked, err)
	}
	hello := d.Hello()
	used.Name, used.Driver, used.Kernels = hello.Name, hello.Driver, hello.Kernels
	return model.On(m, d), d, used, nil
}

func openDevice(run config.Run, m model.Model) (*cuda.Device, error) {
	if why := onProcessorOnly(run); why != "" {
		return nil, fmt.Errorf("%s", why)
	}
	plan, err := model.PlanOf(m)
	if err != nil {
		return nil, err
	}
	switch auto := run.Run.Device == "auto"; {
	case auto && plan.Rows:
		return nil, fmt.Errorf("networks of rows are computed here, in double precision; run.device cuda has them computed on the device, in single")
	case auto && addsWhole(run):
		return nil, fmt.Errorf("privacy.noise is %s, whose kernels ran on the emulation of a GPU alone so far; run.device cuda has the device add the whole numbers", run.Privacy.Noise)
	}
	plan.Whole = addsWhole(run)
	number := 0
	if _, n, ok := strings.Cut(run.Run.Device, ":"); ok {
		if number, err = strconv.Atoi(n); err != nil {
			return nil, err
		}
	}
	return cuda.Open(number, plan)
}

// Computed is the kernel that the run's bits come from, and the device that it asks for;
// nil: none.
func (s *Simulation) Computed() (kernel string, used *DeviceUsed) { return s.kernel(), s.deviceUsed }

// OnDevice is a model on the device that a run file asks for, for whoever computes with it
// outside a simulation; it must be closed. What was used is nil if it asks for none.
func OnDevice(run config.Run, m model.Model) (on model.Model, used *DeviceUsed, end func() error, err error) {
	on, d, used, err := deviceFor(run, m)
	if err != nil || d == nil {
		return on, used, func() error { return nil }, err
	}
	return on, used, d.Close, nil
}

// kernel names the arithmetic that the run's bits come from.
func (s *Simulation) kernel() string {
	if s.deviceUsed == nil {
		return model.Kernel()
	}
	return s.deviceUsed.Kernel()
}

// Kernel names the arithmetic of what was computed by it.
func (d DeviceUsed) Kernel() string {
	if d.Name == "" {
		return model.Kernel()
	}
	return fmt.Sprintf("cuda %.12s on %s (%s), %s", d.Kernels, d.Name, d.Driver, model.Kernel())
}
