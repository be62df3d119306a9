//go:build linux

package device

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// TestWhatIsLostForAll: an answer says whether what went wrong goes wrong for whoever uses the device
// through this program: an error of the driver, but no refusal, and not that one asks for too much memory.
func TestWhatIsLostForAll(t *testing.T) {
	for code, lost := range map[int32]uint32{0: 0, 2: 0, 700: 1, 719: 1, 999: 1} {
		d, out := &driver{}, new(bytes.Buffer)
		d.must(code, "cuStreamSynchronize")
		d.must(2, "cuMemAlloc") // which came later
		if code == 0 {
			d = &driver{}
		}
		if err := (&server{d: d, out: out}).answer(errors.New("refused")); err != nil {
			t.Fatal(err)
		}
		var a cuda.Answer
		if err := cuda.Receive(out, &a); err != nil || a.Lost != lost || out.String() != "refused" {
			t.Errorf("error %d: %+v, %q, %v", code, a, out, err)
		}
	}
}
