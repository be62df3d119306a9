package cuda

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// helper is the program that talks to the driver. It has one network at a time, and is
// kept for the next one: to start it takes most of a second.
type helper struct {
	key   helperKey
	hello Hello
	cmd   *exec.Cmd
	to    io.WriteCloser
	from  *bufio.Reader
	said  *tail // by it, to people
	file  *os.File
	// shared is the file in memory, of the size that the network needs.
	shared []byte
	ended  bool // the program is no more
}

// helperKey is what helpers differ by: the device's number and the settings that a helper
// reads when it starts.
type helperKey struct {
	number   int
	settings string
}

// idle are helpers that wait. The system ends them with this program; before that
// they end when nobody has asked for them for some time.
var idle struct {
	sync.Mutex
	helpers []*helper
}

// idleFor is how long a helper waits: its memory is the driver's own, some hundred MB.
const idleFor = time.Minute

// keyFor is the key of helpers for a device, under the settings of now.
func keyFor(number int) helperKey {
	key := helperKey{number: number}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "COTERIE_CUDA") || strings.HasPrefix(v, "COTERIE_EMU") {
			key.settings += v + "\n"
		}
	}
	return key
}

// kept is a helper that waits; nil: none does.
func kept(key helperKey) *helper {
	idle.Lock()
	defer idle.Unlock()
	for i, h := range idle.helpers {
		if h.key == key {
			idle.helpers = slices.Delete(idle.helpers, i, i+1)
			return h
		}
	}
	return nil
}

// start starts a helper and hears whom one talks to.
func start(key helperKey) (*helper, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	h := &helper{key: key, said: new(tail), cmd: exec.Command(program, strconv.Itoa(key.number))}
	if h.file, err = sharedFile(); err != nil {
		return nil, fmt.Errorf("memory to share with %s: %w", Program, err)
	}
	h.cmd.Stderr, h.cmd.ExtraFiles = h.said, []*os.File{h.file}
	if err := h.launch(); err != nil {
		h.file.Close()
		return nil, fmt.Errorf("%s cannot be started: %w", program, err)
	}
	if err := h.greet(); err != nil {
		_ = h.end() // what it said is what went wrong
		return nil, err
	}
	return h, nil
}

func (h *helper) launch() (err error) {
	if h.to, err = h.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	h.from = bufio.NewReader(out)
	return h.cmd.Start()
}

func (h *helper) greet() error {
	line, err := h.from.ReadBytes('\n')
	if err != nil {
		return h.gone(err)
	}
	if err := json.Unmarshal(line, &h.hello); err != nil {
		return fmt.Errorf("%s says %q, which is no greeting: is it of the same version?", Program, bytes.TrimSpace(line))
	}
	switch {
	case h.hello.Version != Version:
		return fmt.Errorf("%s speaks version %d, this program %d: build both from the same source", Program, h.hello.Version, Version)
	case h.hello.Fault != "":
		return errors.New(h.hello.Fault)
	}
	return nil
}

// share makes the memory that both see, all of it zero.
func (h *helper) share(size int) (err error) {
	if err := errors.Join(h.file.Truncate(0), h.file.Truncate(int64(size))); err != nil {
		return fmt.Errorf("%s to share with %s: %w", Megabytes(size), Program, err)
	}
	if h.shared, err = syscall.Mmap(int(h.file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return fmt.Errorf("%s to share with %s: %w", Megabytes(size), Program, err)
	}
	return nil
}

func (h *helper) unshare() error {
	if h.shared == nil {
		return nil
	}
	err := syscall.Munmap(h.shared)
	h.shared = nil
	return err
}

// keep has a helper that has forgotten its network wait for the next one.
func (h *helper) keep() error {
	// It must be done with the memory before that is made anew.
	if err := errors.Join(h.heard(), h.unshare()); err != nil {
		return errors.Join(err, h.end())
	}
	idle.Lock()
	defer idle.Unlock()
	idle.helpers = append(idle.helpers, h)
	time.AfterFunc(idleFor, h.retire)
	return nil
}

// retire ends the helper if it is idle.
func (h *helper) retire() {
	idle.Lock()
	i := slices.Index(idle.helpers, h)
	if i >= 0 {
		idle.helpers = slices.Delete(idle.helpers, i, i+1)
	}
	idle.Unlock()
	if i >= 0 {
		_ = h.end() // nobody waits for it
	}
}

// end ends the program.
func (h *helper) end() error {
	h.to.Close()
	err := h.cmd.Wait()
	return errors.Join(err, h.unshare(), h.file.Close())
}

// heard is the answer that comes through the pipe.
func (h *helper) heard() error {
	var answer Answer
	if err := Receive(h.from, &answer); err != nil {
		return h.gone(err)
	}
	if answer.Fault == 0 {
		return nil
	}
	text := make([]byte, answer.Fault)
	if _, err := io.ReadFull(h.from, text); err != nil {
		return h.gone(err)
	}
	return fmt.Errorf("%s: %s", h.hello.Name, text)
}

// gone is what is said when the helper has ended.
func (h *helper) gone(err error) error {
	h.ended = true
	name := h.hello.Name
	if name == "" {
		name = "the GPU"
	}
	return fmt.Errorf("%s was lost: %s has ended (%v)%s", name, Program, err, h.said.last())
}

// find looks for the helper.
func find() (string, error) {
	if named := os.Getenv("COTERIE_CUDA_PROGRAM"); named != "" {
		return named, nil
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), Program)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(Program)
	if err != nil {
		return "", fmt.Errorf("the program %s, which talks to the GPU's driver, is neither beside this program nor in PATH: build it with go build ./cmd/%s, or name it in COTERIE_CUDA_PROGRAM", Program, Program)
	}
	return path, nil
}

// sharedFile is a file without a name, in memory where the system has a folder for that.
func sharedFile() (*os.File, error) {
	folder := "/dev/shm"
	if _, err := os.Stat(folder); err != nil {
		folder = ""
	}
	f, err := os.CreateTemp(folder, "coterie-cuda-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// tail keeps what a program says last.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 2000; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	if text == "" {
		return ""
	}
	return ": " + strings.ReplaceAll(text, "\n", "; ")
}
