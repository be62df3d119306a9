package compute

import (
	"fmt"
	"sync"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/model"
)

// renewing is a device that is opened again after it was lost: what failed stays failed, and what is
// asked for next has a new one.
type renewing struct {
	number int
	plan   model.Plan
	mu     sync.Mutex
	device *cuda.Device
	closed bool
}

// renewed opens one.
func renewed(number int, plan model.Plan) (*renewing, error) {
	d, err := cuda.Open(number, plan)
	if err != nil {
		return nil, err
	}
	return &renewing{number: number, plan: plan, device: d}, nil
}

// present is the device, a new one if the last was lost.
func (r *renewing) present() (*cuda.Device, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := r.device.Lost()
	if lost == nil || r.closed {
		return r.device, nil
	}
	_ = r.device.Close() // what became of it is known
	d, err := cuda.Open(r.number, r.plan)
	if err != nil {
		return nil, fmt.Errorf("%w (it was lost before: %w)", err, lost)
	}
	r.device = d
	return d, nil
}

// Hello is whom one talks to.
func (r *renewing) Hello() cuda.Hello {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.device.Hello()
}

// Close gives the device back, for good.
func (r *renewing) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.device.Close()
}

// Gradients is model.Device's.
func (r *renewing) Gradients(theta []float32, c *data.Client, rows []int, use func(norms []float64, add func(sum, factors []float32) error) error) error {
	d, err := r.present()
	if err != nil {
		return err
	}
	return d.Gradients(theta, c, rows, use)
}

// Whole is model.Device's.
func (r *renewing) Whole(theta []float32, c *data.Client, rows []int, use func(norms []float64, add func(sum, weights []float64) error) error) error {
	d, err := r.present()
	if err != nil {
		return err
	}
	return d.Whole(theta, c, rows, use)
}

// Outputs is model.Device's.
func (r *renewing) Outputs(dst, theta []float32, c *data.Client, rows []int) error {
	d, err := r.present()
	if err != nil {
		return err
	}
	return d.Outputs(dst, theta, c, rows)
}

// Mean is model.Device's.
func (r *renewing) Mean(dst, theta []float32, c *data.Client, rows []int) error {
	d, err := r.present()
	if err != nil {
		return err
	}
	return d.Mean(dst, theta, c, rows)
}

// Losses is model.Device's.
func (r *renewing) Losses(dst []float64, theta []float32, c *data.Client, rows []int, noise []float32) error {
	d, err := r.present()
	if err != nil {
		return err
	}
	return d.Losses(dst, theta, c, rows, noise)
}

// Stay is model.Device's.
func (r *renewing) Stay(start model.Start) (model.Resident, error) {
	d, err := r.present()
	if err != nil {
		return nil, err
	}
	return d.Stay(start)
}
