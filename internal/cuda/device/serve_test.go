//go:build linux

package device

import (
	"errors"
	"os"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

// TestConversationsThatNobodyBegan end well when both of their pipes are closed, before or after the
// greeting: a program that has not greeted everywhere when its work is done has not failed.
func TestConversationsThatNobodyBegan(t *testing.T) {
	cudatest.Use(t)
	for _, greets := range []bool{false, true} {
		in, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		from, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		serve := func() { ended <- Serve(0, in, out, nil) }
		if greets {
			go serve()
			if _, err := from.Read(make([]byte, 1000)); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(to.Close(), from.Close()); err != nil {
			t.Error(err)
		}
		if !greets {
			go serve()
		}
		if err := <-ended; err != nil {
			t.Errorf("greeted %t: %v", greets, err)
		}
		if err := errors.Join(in.Close(), out.Close()); err != nil {
			t.Error(err)
		}
	}
}
