//go:build linux

package device

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

// bytesOf are those of what belongs to a message.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// served is a conversation about a small transformer, and how it is asked.
type served struct {
	*server
	t     *testing.T
	words []int32
	norms []float64
}

const servedTexts = 2

func serveTexts(t *testing.T, processors int32, gated bool) served {
	t.Helper()
	n := textNetwork(t, 1, 128, servedTexts)
	n.d.processors = processors
	if !gated {
		n.d.streamWaitValue = nil
	}
	s := served{server: &server{d: n.d, n: n, layout: cuda.LayoutOf(n.plan)}, t: t}
	var err error
	if s.shared, err = syscall.Mmap(-1, 0, s.layout.Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON); err != nil {
		t.Fatal(err)
	}
	if err := s.readyMemory(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.open(nil) }) // where a test has ended early
	n.d.clear(n.vectorOf(cuda.VectorTheta), 8*n.plan.Parameters)
	s.words = unsafe.Slice((*int32)(unsafe.Pointer(&s.shared[s.layout.Rows])), servedTexts*textPlaces)
	s.norms = unsafe.Slice((*float64)(unsafe.Pointer(&s.shared[s.layout.Norms])), servedTexts)
	return s
}

func (s served) ask(a cuda.Ask, payload []byte) {
	s.t.Helper()
	if err := s.do(a, payload); err != nil {
		s.t.Fatal(err)
	}
}

// back has texts go forwards and back.
func (s served) back(step int) {
	s.t.Helper()
	for i := range s.words {
		s.words[i] = int32((i*i + 7*step) % 128)
	}
	s.ask(cuda.Ask{What: cuda.AskBack, B: servedTexts, D: cuda.Sided(0, 1)}, nil)
}

// norm does that, and has noise be drawn.
func (s served) norm(step int) {
	s.t.Helper()
	s.back(step)
	s.ask(cuda.Ask{What: cuda.AskDraw}, bytesOf(&cuda.NoiseOrder{Deviation: 0.1}))
	s.ask(cuda.Ask{What: cuda.AskNorms}, nil)
}

// add adds gradients, all of one length, to a sum.
func (s served) add(slot int, length float64) {
	s.t.Helper()
	factors := s.factors(slot, servedTexts)
	for e := range factors {
		factors[e] = float32(length / (1 + s.norms[e]))
	}
	s.ask(cuda.Ask{What: cuda.AskAdd, A: uint32(slot), B: servedTexts}, nil)
	clear(factors) // which the other program may use again
}

// move ends a step.
func (s served) move() {
	s.t.Helper()
	s.ask(cuda.Ask{What: cuda.AskNoise}, bytesOf(&cuda.NoiseOrder{Deviation: 0.1, From: cuda.FromDrawn}))
	s.ask(cuda.Ask{What: cuda.AskMove}, bytesOf(&cuda.MoveOrder{Factor: 1, Step: 0.01}))
}

// TestGate: sums that were started before their factors were known are those that are started after, for
// batches that are recorded and for such that are not; if nobody asks for them, nothing is added, and no
// more are started; if somebody does once the gate has opened by itself, they are added then.
func TestGate(t *testing.T) {
	train := func(t *testing.T, processors int32, gated bool) (all []float32, early int) {
		s := serveTexts(t, processors, gated)
		n, size := s.n, s.n.plan.Parameters
		for step := range 8 {
			s.norm(step)
			if s.gate.waiting > 0 {
				early++
			}
			switch {
			case step == 6 && processors == 1: // nobody adds anything
			case step == 6:
				s.add(1, 0.5)
				s.add(0, 0.25)
			case step == 4:
				s.open(nil) // as before it sleeps
				fallthrough
			default:
				s.add(0, 1)
			}
			s.move()
			all = append(all, get(t, n, n.sums, 2*size)...)
		}
		return append(all, get(t, n, n.theta, size)...), early
	}
	for _, processors := range []int32{1, 1000} {
		inTurn(t, fmt.Sprint(processors), func(t *testing.T) {
			want, none := train(t, processors, false)
			got, early := train(t, processors, true)
			if none != 0 || early < 4 || early > 6 { // not after step 6, where nobody asked for it
				t.Errorf("%d and %d sums were started early", none, early)
			}
			if !same(got, want) {
				t.Error("early sums are others")
			}
		})
	}
}

// TestGatesOfTwoTurns: a device that is behind still has the factors of the turn before when the gate of the
// next one opens by itself.
func TestGatesOfTwoTurns(t *testing.T) {
	if cudatest.OnDevice() {
		t.Skip("what a device is busy with is its own")
	}
	train := func(idle bool) (theta []float32, closed bool) {
		s := serveTexts(t, 1, true)
		busy, real := (*uint32)(unsafe.Pointer(&s.shared[s.layout.Staging])), s.n.d.streamWaitValue
		at := s.n.home + uintptr(s.layout.Staging)
		for step := range 8 {
			s.n.d.streamWaitValue = real
			if step == 4 { // behind its gate is something that takes the device long
				s.n.d.streamWaitValue = func(stream, gate uintptr, number, how uint32) int32 {
					return real(stream, gate, number, how) | real(stream, at, 1, how)
				}
			}
			s.back(step)
			if step == 5 {
				s.addEarly(0)
				if closed = s.gate.waiting > 0; idle {
					s.open(nil) // as before it sleeps
				}
				atomic.StoreUint32(busy, 1)
			}
			s.ask(cuda.Ask{What: cuda.AskDraw}, bytesOf(&cuda.NoiseOrder{Deviation: 0.1}))
			s.ask(cuda.Ask{What: cuda.AskNorms}, nil)
			s.add(0, 1)
			s.move()
		}
		return get(t, s.n, s.n.theta, s.n.plan.Parameters), closed
	}
	want, _ := train(false)
	if got, closed := train(true); !same(got, want) || !closed {
		t.Errorf("a gate that opened by itself (it was closed: %t) changed what the one before let in", closed)
	}
}

// TestNoiseIsDrawnBeforeAGateOpens: the device has it while it waits.
func TestNoiseIsDrawnBeforeAGateOpens(t *testing.T) {
	if cudatest.OnDevice() {
		t.Skip("nobody looks into a device's memory while it waits")
	}
	for _, processors := range []int32{1, 1000} {
		s := serveTexts(t, processors, true)
		closed := 0
		for step := range 4 {
			s.back(step)
			keys := cuda.Keys{uint32(step)}
			s.ask(cuda.Ask{What: cuda.AskDraw}, bytesOf(&cuda.NoiseOrder{Keys: keys, Deviation: 0.1}))
			s.ask(cuda.Ask{What: cuda.AskNorms}, nil)
			if s.gate.waiting > 0 {
				closed++
			}
			at := s.n.staying[cuda.VectorGradient] // emulated, memory of this program
			drawn := *(**float32)(unsafe.Pointer(&at))
			before := *drawn
			s.add(0, 1)
			s.move()
			if s.n.d.wait(); *drawn != before {
				t.Errorf("%d processors, step %d: noise was drawn behind the gate", processors, step)
			}
		}
		if closed == 0 {
			t.Error("no gate was closed")
		}
	}
}

// wayOut is a pipe that nobody reads any more.
type wayOut struct{}

func (wayOut) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// wayIn is a pipe on which nobody writes until it is closed.
type wayIn chan struct{}

func (w wayIn) Read([]byte) (int, error) {
	<-w
	return 0, io.EOF
}

// inTheWay is what the driver does for other networks that closed gates are in the way of: how each is
// readied, and then done.
func inTheWay(images []string) map[string]func(*driver) (func() error, error) {
	ready := func(d *driver) (*Network, error) {
		compiled := kernelSet{images: images}
		err := compiled.load(d)
		return &Network{d: d, functions: compiled.functions}, err
	}
	row := func(n *Network) func() error {
		at := n.d.alloc(64)
		return func() error {
			made := n.d.record(func() { n.call("take_rows", along(4, 4*256), 256, at, at, 4) })
			n.recordings.made = map[recorded]uintptr{{}: made}
			return n.d.wait()
		}
	}
	memory := func() ([]byte, error) {
		return syscall.Mmap(-1, 0, 1<<12, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	}
	return map[string]func(*driver) (func() error, error){
		"kernels are loaded": func(d *driver) (func() error, error) {
			compiled := kernelSet{images: images}
			return func() error { return compiled.load(d) }, nil
		},
		"memory is taken": func(d *driver) (func() error, error) {
			return func() error { d.alloc(64); return d.wait() }, nil
		},
		"memory is given back": func(d *driver) (func() error, error) {
			d.alloc(64)
			return d.giveBack, d.wait()
		},
		"memory is registered": func(d *driver) (func() error, error) {
			m, err := memory()
			return func() error {
				if d.register(m) == 0 {
					return errors.New("the driver refuses")
				}
				return nil
			}, err
		},
		"memory is forgotten": func(d *driver) (func() error, error) {
			m, err := memory()
			if err != nil {
				return nil, err
			}
			at := d.register(m)
			return func() error { d.unregister(m, at); return d.wait() }, nil
		},
		"kernels are recorded": func(d *driver) (func() error, error) {
			n, err := ready(d)
			return row(n), err
		},
		"recordings are forgotten": func(d *driver) (func() error, error) {
			n, err := ready(d)
			if err != nil {
				return nil, err
			}
			return func() error { n.forgetRecordings(); return d.wait() }, row(n)()
		},
	}
}

// TestGatesHoldNobodyUp: a closed gate opens if nobody asks for anything for a while, and when the other
// program is gone; who waits for closed gates goes on then, and not before.
func TestGatesHoldNobodyUp(t *testing.T) {
	library, images := driverAndKernels(t)
	comes, gone := make(chan struct{}), make(chan struct{})
	others := inTheWay(images)
	here, went := make(chan error), make(chan error, len(others))
	for what, ready := range others {
		go func() {
			runtime.LockOSThread()
			d, _, err := open(library, 0)
			if err != nil {
				here <- err
				return
			}
			do, err := ready(d)
			here <- err
			<-comes
			if err = do(); err != nil {
				err = fmt.Errorf("while %s: %w", what, err)
			}
			went <- err
		}()
	}
	for range others {
		if err := <-here; err != nil {
			t.Fatal(err)
		}
	}
	s := serveTexts(t, 1, true)
	for step := 0; s.gate.waiting == 0; step++ {
		if step == 4 {
			t.Fatal("no gate was closed")
		}
		s.norm(step)
		if s.gate.waiting == 0 {
			s.add(0, 1)
			s.move()
		}
	}
	in := make(wayIn)
	s.in, s.out = bufio.NewReader(in), wayOut{}
	close(comes)
	time.Sleep(20 * time.Millisecond) // it is waiting
	go func() {
		defer close(gone)
		defer close(in)
		late := time.After(20 * time.Second)
		for range others {
			select {
			case err := <-went:
				if err != nil {
					t.Error(err)
				}
			case <-late:
				t.Error("another network still waits for a gate")
				return
			}
		}
	}()
	if err := s.serve(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	<-gone

	s.norm(5) // the other program asks for norms, and is gone before it hears of them
	if s.gate.waiting == 0 {
		t.Fatal("no gate was closed")
	}
	client := cuda.NewMailbox(s.shared, wayOut{}, wayIn(nil))
	if err := client.Put(cuda.Ask{What: cuda.AskNorms}, nil, nil); !errors.Is(err, syscall.EPIPE) { // for the server sleeps
		t.Error(err)
	}
	*(*uint32)(unsafe.Pointer(&s.shared[3*64])) = 1 // and so does the client
	if err := s.serve(); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	if !closed.TryLock() {
		s.open(nil)
		t.Fatal("a gate stays closed behind a program that is gone")
	}
	closed.Unlock()
}

// TestTakeFactors: all of a chunk's factors are taken, however many kernels they need.
func TestTakeFactors(t *testing.T) {
	n := bare(t)
	for _, count := range []int{1, 960, 961, 2000} {
		factors := drawn(rand.New(rand.NewPCG(1, uint64(count))), count)
		n.factors[1] = n.d.alloc(4 * count)
		n.takeFactors(1, factors)
		if !same(get(t, n, n.factors[1], count), factors) {
			t.Errorf("%d factors: others are there", count)
		}
	}
}
