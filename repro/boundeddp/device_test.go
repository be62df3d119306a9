package boundeddp

import (
	"os"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

// TestFigureOnADevice: figure 5.4 is computed on the device that is asked for, the
// conjecture's short steps by the processor, and the page says both.
func TestFigureOnADevice(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	if o.Data == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	cudatest.Use(t)
	o.Device = "cuda"
	s, err := Experiments[0].Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Devices) != 2 || !strings.HasPrefix(s.Devices[0], "3 cells: ") || !strings.Contains(s.Devices[0], "CUDA") || !strings.Contains(s.Devices[1], "cells: the processor, kernel") {
		t.Errorf("%q", s.Devices)
	}
}
