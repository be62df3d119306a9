//go:build linux

package device

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

// TestRecordingThatCannotEnd: what is started beside and not waited for has the driver refuse to end a
// recording. That is told, and nothing is made of a graph that is not there.
func TestRecordingThatCannotEnd(t *testing.T) {
	library, _ := driverAndKernels(t)
	if !cudatest.OnDevice() {
		t.Setenv("COTERIE_EMU_ORDER", "backward") // what runs beside comes late
	}
	runtime.LockOSThread()
	d, _, err := open(library, 0)
	if err != nil {
		t.Fatal(err)
	}
	memory := d.alloc(256)
	row := d.record(func() { d.aside(func() { d.clear(memory, 256) }) })
	if row != 0 || d.failed == nil || !strings.Contains(d.failed.Error(), "cuStreamEndCapture") {
		t.Errorf("a row at %d, %v", row, d.failed)
	}
}
