// Package compute has a run's networks computed where a file asks for it: on this processor, or on a GPU.
package compute

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/model"
)

// Used is where a run's networks were computed, if a file asks for more than this
// processor. A device's bits are its own: name, driver and kernels name a result like the
// processor's kernel set.
type Used struct {
	Asked string `json:"asked"` // run.device, or device of a participant's file
	// Name, Driver and Kernels are of the device; empty: the processor computed.
	Name    string `json:"name"`
	Driver  string `json:"driver"`
	Kernels string `json:"kernels"` // SHA-256 of their source
	// Why the processor computed although a device was asked for; empty: it did not.
	Why string `json:"why"`
}

// String says where a run's networks were computed.
func (u Used) String() string {
	if u.Name == "" {
		return fmt.Sprintf("the processor, although run.device is %s: %s", u.Asked, u.Why)
	}
	return fmt.Sprintf("%s (%s), kernels %.12s", u.Name, u.Driver, u.Kernels)
}

// Kernel names the arithmetic of what was computed by it.
func (u Used) Kernel() string {
	if u.Name == "" {
		return model.Kernel()
	}
	return fmt.Sprintf("cuda %.12s on %s (%s), %s", u.Kernels, u.Name, u.Driver, model.Kernel())
}

// Check refuses a device for what only the processor does.
func Check(run config.Run) config.Faults {
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

// Uncovered is what exact noise on sums from a device leaves open, so that nothing is proved.
const Uncovered = "the device's sums (run.device): that no row adds more than the clip, and the same whatever stands beside it, was tested on the emulation of a GPU alone"

// Placed is a model where a file asks for it. It must be closed.
type Placed struct {
	Model model.Model
	Used  *Used // nil: the file asks for this processor
	// NotCovered is what steps on a device leave open; empty: nothing.
	NotCovered []string
	device     computing // nil: this processor computes
}

// computing is a device, or what stands before one.
type computing interface {
	model.Device
	Hello() cuda.Hello
	Close() error
}

// On is a run's model on the device that the run file asks for; auto falls back to the processor,
// and says why. Pictures is how many the device will have to hold, so that it does so, too, where these
// have no room; 0: nobody knows.
func On(run config.Run, m model.Model, pictures int) (Placed, error) {
	return on("run.device", run.Run.Device, run, m, func(number int, plan model.Plan) (computing, error) {
		plan.Pictures = pictures
		return cuda.Open(number, plan)
	})
}

// ForMember is On for a member of a federation, whose own file asks for a device, whatever the plan's run
// file does. A member answers round after round, whatever became of the one before: a device that was
// lost is opened again by the round that needs it next (decision 27).
func ForMember(asked string, run config.Run, m model.Model) (Placed, error) {
	return on("device", asked, run, m, func(number int, plan model.Plan) (computing, error) { return renewed(number, plan) })
}

// on is On for what a key asks for.
func on(key, asked string, run config.Run, m model.Model, open func(int, model.Plan) (computing, error)) (Placed, error) {
	p := Placed{Model: m}
	if asked == "" || asked == "cpu" {
		return p, nil
	}
	p.Used = &Used{Asked: asked}
	number, plan, err := planFor(key, asked, run, m)
	if err == nil {
		if d, fault := open(number, plan); fault == nil {
			p.device = d
		} else {
			err = fault
		}
	}
	switch {
	case err != nil && asked == "auto":
		p.Used.Why = err.Error()
		return p, nil
	case err != nil:
		return Placed{}, fmt.Errorf("%s %s: %w; %s cpu computes on the processor", key, asked, err, key)
	}
	hello := p.device.Hello()
	p.Used.Name, p.Used.Driver, p.Used.Kernels = hello.Name, hello.Driver, hello.Kernels
	p.Model = model.On(m, p.device)
	if plan.Whole {
		p.NotCovered = []string{Uncovered}
	}
	return p, nil
}

// planFor is which device is asked for, and what it is to compute.
func planFor(key, asked string, run config.Run, m model.Model) (number int, plan model.Plan, err error) {
	if why := onProcessorOnly(run); why != "" {
		return 0, plan, errors.New(why)
	}
	if plan, err = model.PlanOf(m); err != nil {
		return 0, plan, err
	}
	switch auto := asked == "auto"; {
	case auto && plan.Rows:
		return 0, plan, fmt.Errorf("networks of rows are computed here, in double precision; %s cuda has them computed on the device, in single", key)
	case auto && addsWhole(run):
		return 0, plan, fmt.Errorf("privacy.noise is %s, whose kernels ran on the emulation of a GPU alone so far; %s cuda has the device add the whole numbers", run.Privacy.Noise, key)
	}
	plan.Whole = addsWhole(run)
	if _, n, ok := strings.Cut(asked, ":"); ok {
		if number, err = strconv.Atoi(n); err != nil {
			return 0, plan, err
		}
	}
	return number, plan, nil
}

// OnDevice says that a device computes.
func (p Placed) OnDevice() bool { return p.device != nil }

// Close gives the device back, if there is one.
func (p Placed) Close() error {
	if p.device == nil {
		return nil
	}
	return p.device.Close()
}
