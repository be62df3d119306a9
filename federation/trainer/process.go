package trainer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// tailSize is how much of a child's standard error is kept.
const tailSize = 4 << 10

// graceTime is how long a child may take to end by itself after its input is
// closed, and again after it is asked to end.
const graceTime = time.Second

// marker names the environment variable by which we find what a child started,
// wherever it has gone.
const marker = "COTERIE_TRAINER"

// passed are the environment variables that every trainer sees.
var passed = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH",
	"SystemRoot", "PYENV_ROOT", "PYENV_VERSION",
}

// process is a child with its pipes. Only one goroutine uses it at a time, but for
// allow.
type process struct {
	in, out *os.File
	piece   []byte // of what is read
	written []byte // a piece of what is written
	mark    string // marker and its value

	stderr  *os.File
	tail    tail
	drained chan struct{}

	watch  func() bool   // stops watching the context
	exited chan struct{} // closed when the child and its group are gone
	state  *os.ProcessState

	mu     sync.Mutex
	cmd    *exec.Cmd
	reaped bool // its number may belong to somebody else
}

// launch starts a child in a process group of its own, and kills it when ctx ends.
func launch(ctx context.Context, s Spec) (*process, error) {
	p := &process{
		piece: make([]byte, pieceSize), written: make([]byte, pieceSize), mark: marker + "=" + rand.Text(),
		drained: make(chan struct{}), exited: make(chan struct{}),
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir = s.Directory
	cmd.Env = []string{p.mark} // not nil: keys and passwords of our own stay here
	for _, name := range append(passed, s.Environment...) {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if err := setGroup(cmd); err != nil {
		return nil, err
	}
	var theirs []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		if err == nil {
			theirs = append(theirs, r, w)
		}
		return r, w, err
	}
	stdin, in, err1 := pipe()
	out, stdout, err2 := pipe()
	read, stderr, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll(theirs...)
		return nil, err
	}
	p.in, p.out, p.stderr, p.cmd = in, out, read, cmd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	started := make(chan error)
	go p.live(started)
	err := <-started
	closeAll(stdin, stdout, stderr)
	if err != nil {
		closeAll(in, out, read)
		return nil, err
	}
	go p.drain()
	p.watch = context.AfterFunc(ctx, func() { p.signal(killGroup) })
	return p, nil
}

// live starts the child and waits for its end. It keeps its thread: a child that
// is to die with its parent dies with the thread that started it.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.reap()
	p.state = p.cmd.ProcessState
	close(p.exited)
}

// drain keeps the end of the child's standard error and throws the rest away.
func (p *process) drain() {
	defer close(p.drained)
	buffer := make([]byte, 8<<10)
	for {
		n, err := p.stderr.Read(buffer)
		p.tail.add(buffer[:n])
		if err != nil {
			return
		}
	}
}

// allow sets the time until which the pipes may make us wait.
func (p *process) allow(until time.Time) {
	p.in.SetWriteDeadline(until)
	p.out.SetReadDeadline(until)
}

// signal sends a signal to the child's group, if the child was not yet reaped.
func (p *process) signal(send func(*os.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.cmd.Process)
	}
}

// finish gives the child time to end by itself.
func (p *process) finish() {
	p.in.Close()
	if !p.endsWithin(graceTime) {
		p.signal(terminateGroup)
		p.endsWithin(graceTime)
	}
	p.kill(0)
}

func (p *process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// kill ends the child and all that it started, and returns its last words: how it
// ended if it did so by itself within a time, and the end of its standard error.
func (p *process) kill(wait time.Duration) string {
	byItself := p.endsWithin(wait)
	p.watch()
	p.signal(killGroup)
	<-p.exited
	p.in.Close()
	p.out.Close()
	// A stranger may hold the other end of the pipe open: do not wait for it.
	p.stderr.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	<-p.drained
	p.stderr.Close()
	var b strings.Builder
	if byItself || p.state.Exited() {
		fmt.Fprintf(&b, " (it ended: %v)", p.state)
	}
	if text := strings.TrimSpace(printable(p.tail.String())); text != "" {
		fmt.Fprintf(&b, "; its standard error ends with:\n%s", text)
	}
	return b.String()
}

// tail is the end of a stream.
type tail struct {
	ring [tailSize]byte
	next int
	full bool
}

func (t *tail) add(b []byte) {
	for _, c := range b[max(0, len(b)-tailSize):] {
		t.ring[t.next] = c
		if t.next++; t.next == tailSize {
			t.next, t.full = 0, true
		}
	}
}

func (t *tail) String() string {
	if !t.full {
		return string(t.ring[:t.next])
	}
	return string(t.ring[t.next:]) + string(t.ring[:t.next])
}
