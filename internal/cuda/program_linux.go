package cuda

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

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
	bad  bool      // nobody begins a conversation with it any more

	ended chan struct{} // closed when it has
	state string        // how
	err   error         // if that is one
}

// programs are those that run.
var programs struct {
	sync.Mutex
	all []*program
}

// taken is a conversation that nobody else has; fresh says that its program was started for it.
func taken(key helperKey) (h *helper, fresh bool, err error) {
	programs.Lock()
	defer programs.Unlock()
	var p *program
	for _, one := range programs.all {
		if one.key == key && len(one.free) > 0 {
			p = one
		}
	}
	if fresh = p == nil; fresh {
		if p, err = launch(key); err != nil {
			return nil, false, err
		}
		programs.all = append(programs.all, p)
	}
	h = p.free[0]
	p.free = p.free[1:]
	p.used++
	return h, fresh, nil
}

// launch starts a program. Every conversation has two pipes and memory that both see.
func launch(key helperKey) (_ *program, err error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	p := &program{key: key, said: new(tail), ended: make(chan struct{}), cmd: exec.Command(path, strconv.Itoa(key.number), strconv.Itoa(conversations))}
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
		h.to, h.out = to, &patient{f: from, most: greetWithin}
		h.from = bufio.NewReader(h.out)
		theirs = append(theirs, read, write)
		p.free = append(p.free, h)
		if h.files, err = sharedFiles(); err != nil {
			return nil, err
		}
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, read, write, h.files[0], h.files[len(h.files)-1])
	}
	p.cmd.Stderr, p.cmd.WaitDelay = p.said, wordsWithin/2
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", path, err)
	}
	go func() {
		defer close(p.ended)
		if p.err = p.cmd.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
			p.err = nil // what it started has its words, and may go on
		}
		p.state = p.cmd.ProcessState.String()
	}()
	return p, nil
}

// spoil has nobody begin a conversation with a program any more: one that has ended or hangs, or whose
// device was lost, for all of its conversations then.
func (p *program) spoil() {
	programs.Lock()
	defer programs.Unlock()
	p.bad = true
	p.closeFree()
}

func (p *program) spoiled() bool {
	programs.Lock()
	defer programs.Unlock()
	return p.bad
}

// endsWithin says that a program has ended, after some time at the most.
func (p *program) endsWithin(most time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(most):
		return false
	}
}

// kill ends a program that does not end by itself, within the time that it was given.
func (p *program) kill(within time.Duration) error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s did not end within %v, nor can it be ended: %w", Program, within, err)
	}
	if !p.endsWithin(killWithin) {
		return fmt.Errorf("%s (process %d) did not end within %v, nor when it was killed: the GPU's driver holds it; if nvidia-smi hangs, too, the machine has to be restarted", Program, p.cmd.Process.Pid, within)
	}
	return fmt.Errorf("%s did not end within %v, and was killed%s", Program, within, p.said.last())
}

// closeFree ends conversations that nobody began.
func (p *program) closeFree() {
	for _, h := range p.free {
		h.to.Close()
		h.out.f.Close()
		_ = h.closeFiles() // which were not used
	}
	p.free = nil
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
