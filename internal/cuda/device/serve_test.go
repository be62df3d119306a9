//go:build linux

package device

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// ways are the pipes of a conversation: to the helper, which reads in, and from it, which writes out.
func ways(t *testing.T) (in, to, from, out *os.File) {
	t.Helper()
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, to, from, out
}

// TestConversationsThatNobodyBegan end well when both of their pipes are closed, before or after the
// greeting: a program that has not greeted everywhere when its work is done has not failed.
func TestConversationsThatNobodyBegan(t *testing.T) {
	cudatest.Use(t)
	for _, greets := range []bool{false, true} {
		in, to, from, out := ways(t)
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

// TestNothingIsKept: a conversation that ends without a farewell gives back what it took, for the program
// may have others.
func TestNothingIsKept(t *testing.T) {
	cudatest.Use(t)
	m, err := model.Of(config.Run{Model: config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 3}}}, Algorithm: config.Algorithm{Local: config.Local{Loss: "cross-entropy"}}},
		data.Shape{Height: 2, Width: 2, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := model.PlanOf(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := os.Create(filepath.Join(t.TempDir(), "shared"))
	if err != nil {
		t.Fatal(err)
	}
	in, to, from, out := ways(t)
	if err := shared.Truncate(int64(cuda.LayoutOf(plan).Size)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- Serve(0, in, out, shared) }()
	answers := bufio.NewReader(from)
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cuda.Send(to, cuda.Ask{What: cuda.AskPlan, A: uint32(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write(text); err != nil {
		t.Fatal(err)
	}
	var a cuda.Answer
	if err := cuda.Receive(answers, &a); err != nil || a.Fault != 0 {
		t.Fatal(err, a)
	}
	mapped := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(maps), shared.Name())
	}
	if !mapped() {
		t.Error("the shared memory is not that of the conversation")
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if mapped() {
		t.Error("the shared memory is kept")
	}
	if err := errors.Join(in.Close(), out.Close(), from.Close(), shared.Close()); err != nil {
		t.Error(err)
	}
}
