//go:build linux

package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// stayAll has a device keep all that a run may: vectors of every kind, and pictures.
func stayAll(d *cuda.Device, c *data.Client, parameters int) error {
	v := make([]float64, parameters)
	kept, err := d.Stay(model.Start{Theta: v, First: v, Second: v, Offset: v})
	if err != nil {
		return err
	}
	narrow := make([]float32, parameters)
	if err = kept.SetLast(narrow, narrow); err == nil {
		err = kept.Norms(c, c.Index[:1], func([]float64) error { return nil })
	}
	return errors.Join(err, kept.Leave(model.Start{}))
}

// TestTooLittleMemoryIsToldBefore: however much memory a device has, either a network is refused when it
// is opened, in a sentence with the numbers, or all that a run may keep there has room. What two networks
// share was free for each of them: who finds it taken is told how much was asked for.
func TestTooLittleMemoryIsToldBefore(t *testing.T) {
	cudatest.Use(t)
	if cudatest.OnDevice() {
		t.Skip("a device has the memory that it has")
	}
	shape := data.Shape{Height: 28, Width: 28, Classes: 10}
	m, theta := build(t, shape, "cross-entropy", layers{{Kind: "linear", Units: 100}, {Kind: "relu"}, {Kind: "linear", Units: 10}})
	c := client(shape, 2000, rand.New(rand.NewPCG(1, 1)))
	plan, err := model.PlanOf(m)
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk, plan.Pictures = 1, data.PictureCount([]data.Client{*c})
	const step = 256 << 10
	memory, refused := 2<<20, 0
	for d := (*cuda.Device)(nil); d == nil; {
		memory += step
		t.Setenv("COTERIE_EMU_MEMORY", fmt.Sprint(memory))
		if d, err = cuda.Open(0, plan); err != nil {
			if refused++; !strings.Contains(err.Error(), "the network needs") || !strings.Contains(err.Error(), "on the device for 1 examples at a time; free are") {
				t.Fatalf("%d bytes: %v", memory, err)
			}
			continue
		}
		if err := stayAll(d, c, len(theta)); err != nil {
			t.Errorf("%d bytes, for which a network was opened: %v", memory, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	kept := 40*len(theta) + 2000*(784+4)
	if memory < kept || memory > 2*kept || refused == 0 {
		t.Errorf("opened with %d bytes, after %d refusals; a run may keep %d", memory, refused, kept)
	}

	t.Setenv("COTERIE_EMU_MEMORY", fmt.Sprint(2*memory-kept))
	first, second := open(t, m, 1), open(t, m, 1)
	if err := stayAll(first, c, len(theta)); err != nil {
		t.Fatal(err)
	}
	err = stayAll(second, c, len(theta))
	if err == nil || !strings.Contains(err.Error(), "cuMemAlloc of 1 MB (free are 1 MB of") {
		t.Errorf("a second network: %v", err)
	}
}
