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
	"time"
)

// helper is one conversation with the program that talks to the driver. It has one network
// at a time, and is kept for the next one: to start the program takes most of a second.
type helper struct {
	key     helperKey
	hello   Hello
	program *program
	to      io.WriteCloser
	from    *bufio.Reader
	out     io.Closer  // that from reads
	files   []*os.File // each may be the memory that both see
	which   int        // is
	// shared is that one, of the size that the network needs.
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

// conversations is how many a program has at most. Networks of one program share the device,
// so that small ones run beside one another; those of two programs take turns.
const conversations = 8

// program is a running helper program.
type program struct {
	key  helperKey
	cmd  *exec.Cmd
	said *tail     // by it, to people
	free []*helper // that nobody has talked to yet
	used int       // that have not ended
}

// programs are those that run.
var programs struct {
	sync.Mutex
	all []*program
}

// start begins a conversation, with a new program if all others' are taken, and hears whom
// one talks to.
func start(key helperKey) (*helper, error) {
	h, err := taken(key)
	if err != nil {
		return nil, err
	}
	if err := h.greet(); err != nil {
		_ = h.end() // what it said is what went wrong
		return nil, err
	}
	return h, nil
}

// taken is a conversation that nobody else has.
func taken(key helperKey) (*helper, error) {
	programs.Lock()
	defer programs.Unlock()
	var p *program
	for _, one := range programs.all {
		if one.key == key && len(one.free) > 0 {
			p = one
		}
	}
	if p == nil {
		var err error
		if p, err = launch(key); err != nil {
			return nil, err
		}
		programs.all = append(programs.all, p)
	}
	h := p.free[0]
	p.free = p.free[1:]
	p.used++
	return h, nil
}

// launch starts a program. Every conversation has two pipes and memory that both see.
func launch(key helperKey) (_ *program, err error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	p := &program{key: key, said: new(tail), cmd: exec.Command(path, strconv.Itoa(key.number), strconv.Itoa(conversations))}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs { // it has its own
			f.Close()
		}
		if err != nil {
			p.closeFree()
		}
	}()
	for range conversations {
		h := &helper{key: key, program: p}
		read, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		from, write, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, read.Close(), to.Close())
		}
		h.to, h.out = to, from
		h.from = bufio.NewReader(from)
		theirs = append(theirs, read, write)
		p.free = append(p.free, h)
		if h.files, err = sharedFiles(); err != nil {
			return nil, err
		}
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, read, write, h.files[0], h.files[len(h.files)-1])
	}
	p.cmd.Stderr = p.said
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", path, err)
	}
	return p, nil
}

// closeFree ends conversations that nobody began.
func (p *program) closeFree() {
	for _, h := range p.free {
		h.to.Close()
		h.out.Close()
		_ = h.closeFiles() // which were not used
	}
	p.free = nil
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

// keep has a helper that has forgotten its network wait for the next one.
func (h *helper) keep() error {
	// It must be done with the memory before that is made anew.
	if err := errors.Join(h.heard(), h.release()); err != nil {
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

// end ends the conversation, and the program with its last one.
func (h *helper) end() error {
	h.to.Close()
	_, _ = io.Copy(io.Discard, h.from) // until it has ended its side, too
	err := errors.Join(h.out.Close(), h.closeFiles())
	p := h.program
	programs.Lock()
	p.used--
	last := p.used == 0
	if last {
		programs.all = slices.DeleteFunc(programs.all, func(one *program) bool { return one == p })
		p.closeFree()
	} else if h.ended { // nobody begins a conversation with a program that is no more
		p.closeFree()
	}
	programs.Unlock()
	if last {
		err = errors.Join(p.cmd.Wait(), err)
	}
	return err
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
	return fmt.Errorf("%s was lost: %s has ended (%v)%s", name, Program, err, h.program.said.last())
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
