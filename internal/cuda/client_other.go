//go:build !linux

package cuda

import (
	"errors"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// Device is one network on a GPU: on Linux alone.
type Device struct{}

var errLinux = errors.New("GPUs are used on Linux alone")

// Open says that there is none.
func Open(int, model.Plan) (*Device, error) { return nil, errLinux }

// Close ends nothing.
func (d *Device) Close() error { return nil }

// Hello is nobody's.
func (d *Device) Hello() Hello { return Hello{} }

// Lost is what Open says.
func (d *Device) Lost() error { return errLinux }

// Gradients is model.Device's.
func (d *Device) Gradients([]float32, *data.Client, []int, func([]float64, func(sum, factors []float32) error) error) error {
	return errLinux
}

// Whole is model.Device's.
func (d *Device) Whole([]float32, *data.Client, []int, func([]float64, func(sum, weights []float64) error) error) error {
	return errLinux
}

// Outputs is model.Device's.
func (d *Device) Outputs(_, _ []float32, _ *data.Client, _ []int) error { return errLinux }

// Losses is model.Device's.
func (d *Device) Losses(_ []float64, _ []float32, _ *data.Client, _ []int, _ []float32) error {
	return errLinux
}

// Mean is model.Device's.
func (d *Device) Mean(_, _ []float32, _ *data.Client, _ []int) error { return errLinux }

// Stay is model.Device's.
func (d *Device) Stay(model.Start) (model.Resident, error) { return nil, errLinux }
