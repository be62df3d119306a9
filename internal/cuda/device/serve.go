//go:build linux

package device

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/kernels"
	"github.com/coterie-fl/coterie/model"
)

// Serve answers whoever started this program, until it closes its end of the pipe: it says
// whom one talks to, takes a plan, does what it is asked for, and takes the next plan. Of the shared files one
// is the memory that both see.
func Serve(n int, in io.Reader, out io.Writer, shared ...*os.File) error {
	runtime.LockOSThread()
	library := cmp.Or(os.Getenv("COTERIE_CUDA_LIBRARY"), "libcuda.so.1")
	d, about, err := open(library, n)
	hello := cuda.Hello{Version: cuda.Version, Name: about.Name, Driver: about.Driver, Kernels: kernels.Hash()}
	images := kernels.Modules()
	if named := os.Getenv("COTERIE_CUDA_KERNELS"); err == nil && named != "" { // for whoever works on them
		images, err = imagesOf(named)
		hello.Kernels = kernels.Source(images[0])
	} else if foreign := func(image string) bool { return kernels.Source(image) != hello.Kernels }; err == nil && slices.ContainsFunc(images, foreign) && library == "libcuda.so.1" {
		err = fmt.Errorf("this build's kernels are not those of its source; make them with scripts/cuda-kernels")
	}
	if err != nil {
		hello.Fault = err.Error()
	}
	text, fault := json.Marshal(hello)
	if fault != nil {
		return fault
	}
	if _, fault := out.Write(append(text, '\n')); fault != nil {
		return ended(fault)
	}
	if err != nil {
		return nil // it was told
	}
	s := &server{d: d, kernels: kernelSet{images: images}, in: bufio.NewReader(in), out: out, files: shared}
	defer s.leave()
	for {
		if err := s.begin(); err != nil {
			return ended(err)
		}
		if err := s.serve(); err != nil {
			return ended(err)
		}
		if err := s.answer(s.forget()); err != nil {
			return ended(err)
		}
	}
}

// imagesOf reads kernels from files: one with all of them, or three, with colons between them: for
// all devices, for tensor cores, and for groups of warps.
func imagesOf(named string) ([]string, error) {
	images := []string{}
	for _, file := range strings.Split(named, ":") {
		text, err := os.ReadFile(file)
		if err != nil {
			return []string{""}, err
		}
		images = append(images, string(text))
	}
	return images, nil
}

// ended is what the end of the conversation means: whoever closes the pipes is content. That may be before
// the greeting: a program has several conversations, and most end without anybody having begun them.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// begin takes plans until one can be followed.
func (s *server) begin() error {
	for s.n == nil {
		var a cuda.Ask
		if err := cuda.Receive(s.in, &a); err != nil {
			return err
		}
		if a.What != cuda.AskPlan {
			return fmt.Errorf("asked for %d before there was a plan", a.What)
		}
		if err := s.answer(s.plan(int(a.A), int(a.B))); err != nil {
			return err
		}
	}
	return nil
}

// serve does what it is asked for, until it is to forget the network, or nobody asks any more.
func (s *server) serve() error {
	defer s.open(nil)
	mail := cuda.NewMailbox(s.shared, s.out, s.in)
	var room cuda.Slot
	for {
		a, payload, err := mail.Take(&room, func() { s.open(nil) })
		if err != nil {
			if named := os.Getenv("COTERIE_CUDA_TIMES"); named != "" {
				err = errors.Join(err, s.n.tellTimes(named))
			}
			return err
		}
		text := ""
		if err := s.do(a, payload); err != nil {
			text = err.Error() // of a message without an answer, the next one has it
		}
		if err := mail.Done(a, text); err != nil || a.What == cuda.AskForget {
			return err
		}
	}
}

// server is one conversation.
type server struct {
	d       *driver
	kernels kernelSet
	in      *bufio.Reader
	out     io.Writer
	files   []*os.File // whoever asks says which of them both see
	n       *Network
	layout  cuda.Layout
	shared  []byte
	values  []byte // on their way to the device, so that their place in the shared memory may be written over
	landing landing
	gate    gate
	unasked int // rows whose norms nobody has asked for yet, the last ones
}

// landing is where rows are on their way to the device, so that their place in the shared memory may
// be written over at once: one half after the other, each once what it held has left.
type landing struct {
	memory []byte
	at     uintptr // where kernels find it; 0: the driver does not know it
	side   int
}

// copied copies to the device what the other program may write over right after; what it gives on
// stays as it is until the next time but one.
func (s *server) copied(to uintptr, from []byte) []byte {
	l := &s.landing
	half := (len(l.memory) - gateBytes(s.n.chunk)) / 2
	room := l.memory[l.side*half:][:len(from)]
	s.d.must(s.d.eventSynchronize(s.d.departed[l.side]), "cuEventSynchronize")
	copy(room, from)
	if l.at == 0 {
		s.d.toDevice(to, room)
	} else {
		s.n.call("take_rows", along(len(room)/4, 4*256), 256, to, l.at+uintptr(l.side*half), len(room)/4)
	}
	s.d.must(s.d.eventRecord(s.d.departed[l.side], s.d.stream), "cuEventRecord")
	l.side ^= 1
	return room
}

// factors are those of a slot that the other program has written.
func (s *server) factors(slot, g int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.shared[s.layout.Factors+4*slot*s.n.chunk])), g)
}

func (s *server) answer(fault error) error {
	text := ""
	if fault != nil {
		text = fault.Error()
	}
	a := cuda.Answer{Fault: uint32(len(text))}
	if s.d.lost() {
		a.Lost = 1
	}
	if err := cuda.Send(s.out, a); err != nil {
		return err
	}
	_, err := io.WriteString(s.out, text)
	return err
}

func (s *server) do(a cuda.Ask, payload []byte) error {
	n, l := s.n, s.layout
	if n.d.failed != nil {
		s.open(nil)
		return n.d.failed
	}
	asked := a.What == cuda.AskAdd && a.A == 0 && int(a.B) == s.gate.waiting
	if s.gate.waiting > 0 && !asked && a.What != cuda.AskNorms && a.What != cuda.AskDraw {
		s.open(nil)
		s.gate.at = 0 // nobody asked for what was started: no more of it
	}
	part := func(at, bytes int) []byte { return s.shared[at : at+bytes] }
	switch a.What {
	case cuda.AskForget: // once it is answered
	case cuda.AskHold:
		return s.hold(int(a.A), int(a.B))
	case cuda.AskPixels:
		n.d.toDevice(n.sets[a.A].pixels+uintptr(a.C)+uintptr(a.D)<<32, part(l.Staging, int(a.B)))
	case cuda.AskLabels:
		n.d.toDevice(n.sets[a.A].labels+uintptr(4*a.C), part(l.Staging, 4*int(a.B)))
		if own := &n.sets[a.A]; n.slopes != nil {
			own.aims = append(own.aims[:a.C], unsafe.Slice((*int32)(unsafe.Pointer(&s.shared[l.Staging])), int(a.B))...)
		}
	case cuda.AskBack, cuda.AskOutputs, cuda.AskLosses:
		set, g, side := n.setOf(int(a.A)), int(a.B), 0
		if a.What == cuda.AskBack {
			side = int(a.D >> 1)
		}
		n.toSide(side)
		if a.C == cuda.ThetaNew {
			n.parameters(part(l.Theta, 4*n.plan.Parameters))
		}
		n.chosen = s.copied(n.rows, part(l.Rows, 4*g*n.rowLength()))
		if a.What == cuda.AskLosses && a.D == 1 {
			n.noisy(part(l.Noise, 4*g*n.layers[0].Out.Len()), l.Noisy)
		}
		switch {
		case a.What == cuda.AskLosses:
			n.together(recorded{what: recordLosses, count: g, which: int(a.D)}, func() {
				n.forward(set, g)
				n.textLosses(g)
			})
			n.parted.noise = 0
			n.d.toHost(part(l.Outputs, 8*g), n.norms)
		case a.What == cuda.AskOutputs:
			n.together(recorded{what: recordForward, set: int(a.A), count: g}, func() { n.forward(set, g) })
			n.d.toHost(part(l.Outputs, 4*g*n.output), n.values[len(n.layers)])
		default:
			at := l.Norms + 8*side*n.chunk
			if n.home != 0 {
				n.told = n.home + uintptr(at)
			}
			n.gradientsOf(recorded{recordNorms, int(a.A), g, int(a.D & 1), side}, set, nil)
			if n.home == 0 {
				n.d.toHost(part(at, 8*g), n.norms)
			}
			n.d.mark(side)
			s.unasked = g
			return nil // goes on by itself
		}
	case cuda.AskNorms:
		s.addEarly(int(a.A))
		return n.d.waitFor(int(a.A))
	case cuda.AskAdd:
		g, side := int(a.B), int(a.C)
		if s.gate.waiting > 0 {
			s.open(s.factors(0, g))
			return nil
		}
		n.toSide(side)
		n.takeFactors(int(a.A), s.factors(int(a.A), g))
		n.together(recorded{recordAdd, 0, g, int(a.A), side}, func() { n.add(int(a.A), g) })
		return nil // goes on by itself
	case cuda.AskWhole:
		return s.addWhole(a)
	case cuda.AskSums:
		for i := range 2 {
			if a.A>>i&1 == 1 {
				n.d.toHost(part(l.Sums+4*i*n.plan.Parameters, 4*n.plan.Parameters), n.sums+uintptr(4*i*n.plan.Parameters))
			}
		}
	default:
		return s.stay(a, payload)
	}
	return n.d.wait()
}

// plan readies a network, and the memory that both programs see.
func (s *server) plan(bytes, which int) error {
	text := make([]byte, bytes)
	if _, err := io.ReadFull(s.in, text); err != nil {
		return err
	}
	var p model.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	if which >= len(s.files) {
		return fmt.Errorf("shared memory %d of %d", which, len(s.files))
	}
	var err error
	s.layout = cuda.LayoutOf(p)
	if s.shared, err = syscall.Mmap(int(s.files[which].Fd()), 0, s.layout.Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return fmt.Errorf("%s of shared memory: %w", cuda.Megabytes(s.layout.Size), err)
	}
	if s.n, err = newNetwork(s.d, p, &s.kernels); err != nil {
		return err
	}
	if err := s.readyMemory(); err != nil {
		return err
	}
	if os.Getenv("COTERIE_CUDA_TIMES") != "" {
		s.n.times = map[string][2]time.Duration{}
	}
	return nil
}

// readyMemory has memory of this program, and what both see, be known to the device.
func (s *server) readyMemory() (err error) {
	rows := 2 * 64 * tiles(4*s.n.chunk*s.n.rowLength(), 64) // kernels read sixteen bytes at a time
	bytes := rows + gateBytes(s.n.chunk)
	if s.landing.memory, err = syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON); err != nil {
		return fmt.Errorf("%s of memory: %w", cuda.Megabytes(bytes), err)
	}
	s.n.home = s.d.register(s.shared)
	s.landing.at = s.d.register(s.landing.memory)
	s.gate = gateIn(s.landing.memory[rows:], 0, s.n.chunk)
	if s.landing.at != 0 {
		s.gate.at = s.landing.at + uintptr(rows)
	}
	return nil
}

// leave gives back what a conversation still has when it ends, however it does: the program may have others.
func (s *server) leave() {
	if s.n != nil {
		_ = s.forget() // nobody is there to be told
	} else {
		_ = s.d.giveBack()
	}
}

// forget gives back what a network took: the next one finds the device as this one did.
func (s *server) forget() error {
	_ = s.d.wait() // giveBack tells what fails
	s.d.unregister(s.shared, s.n.home)
	s.d.unregister(s.landing.memory, s.landing.at)
	s.n.forgetRecordings()
	err := errors.Join(syscall.Munmap(s.shared), syscall.Munmap(s.landing.memory))
	s.n, s.shared, s.landing, s.gate = nil, nil, landing{}, gate{}
	return errors.Join(err, s.d.giveBack())
}

// hold makes room for pictures.
func (s *server) hold(pictures, each int) error {
	var free, total uint64
	s.d.must(s.d.memInfo(&free, &total), "cuMemGetInfo")
	if need := pictures * (each + 4); s.d.failed == nil && uint64(need) > free {
		return fmt.Errorf("%d pictures need %s on the device; free are %s of %s", pictures, cuda.Megabytes(need), cuda.Megabytes(int(free)), cuda.Megabytes(int(total)))
	}
	s.n.sets = append(s.n.sets, set{pixels: s.d.alloc(pictures * each), labels: s.d.alloc(4 * pictures), pictures: pictures, each: each})
	return s.d.wait()
}
