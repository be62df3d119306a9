package cuda

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
	to      *os.File
	from    *bufio.Reader
	out     *patient   // that from reads
	files   []*os.File // each may be the memory that both see
	which   int        // is
	// shared is that one, of the size that the network needs.
	shared []byte
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

// kept is a helper that waits, of a program that is as it should be; nil: none does.
func kept(key helperKey) *helper {
	idle.Lock()
	defer idle.Unlock()
	for i, h := range idle.helpers {
		if h.key == key && !h.program.spoiled() {
			idle.helpers = slices.Delete(idle.helpers, i, i+1)
			return h
		}
	}
	return nil
}

// greet hears whom one talks to.
func (h *helper) greet() error {
	line, err := h.from.ReadBytes('\n')
	h.out.most = answerWithin
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

// end ends the conversation, and the program with its last one, or if it is spoiled and does not end the
// conversation: it has been lost then for all.
func (h *helper) end() error {
	h.to.Close()
	p := h.program
	spoiled := p.spoiled()
	if h.out.most = leaveWithin; spoiled {
		h.out.most = lostWithin
		endIdle(p)
	}
	_, fault := io.Copy(io.Discard, h.from) // until it has ended its side, too
	hangs, within := errors.Is(fault, os.ErrDeadlineExceeded), h.out.most
	err := errors.Join(h.out.f.Close(), h.closeFiles())
	programs.Lock()
	p.used--
	last := p.used == 0
	if last {
		programs.all = slices.DeleteFunc(programs.all, func(one *program) bool { return one == p })
	}
	if p.bad = p.bad || hangs; last || p.bad {
		p.closeFree()
	}
	programs.Unlock()
	switch {
	case hangs && (last || spoiled), last && !p.endsWithin(within):
		err = errors.Join(p.kill(within), err)
	case last:
		err = errors.Join(p.err, err)
	case hangs: // others may be well
		err = errors.Join(fmt.Errorf("%s has not ended a conversation within %v: it is ended with its last one", Program, within), err)
	}
	return err
}

// endIdle ends the helpers of a program that wait.
func endIdle(p *program) {
	idle.Lock()
	var all []*helper
	idle.helpers = slices.DeleteFunc(idle.helpers, func(h *helper) bool {
		if h.program == p {
			all = append(all, h)
		}
		return h.program == p
	})
	idle.Unlock()
	for _, h := range all {
		_ = h.end() // nobody waits for it
	}
}

// tell sends a message and what belongs to it through the pipe, which may hold less.
func (h *helper) tell(a Ask, text []byte) error {
	if err := h.to.SetWriteDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	err := Send(h.to, a)
	if err == nil {
		_, err = h.to.Write(text)
	}
	return errors.Join(err, h.to.SetWriteDeadline(time.Time{}))
}

// heard is the answer that comes through the pipe.
func (h *helper) heard() error {
	var answer Answer
	if err := Receive(h.from, &answer); err != nil {
		return h.gone(err)
	}
	if answer.Lost != 0 {
		h.program.spoil()
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

// gone is what is said when the helper has ended, or does not answer: with how it ended and its last
// words, which may come a moment later.
func (h *helper) gone(err error) error {
	p, name := h.program, h.hello.Name
	p.spoil()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	state := err.Error()
	if !late && p.endsWithin(wordsWithin) {
		state = p.state
	}
	switch said := p.said.last(); {
	case name == "" && late:
		return fmt.Errorf("%s has not said within %v who it is: the GPU's driver may hang (does nvidia-smi answer?)%s", Program, greetWithin, said)
	case name == "":
		return fmt.Errorf("%s ended before it said who it is (%s)%s", Program, state, said)
	case late:
		return fmt.Errorf("%s was lost: %s has not answered for %v%s", name, Program, answerWithin, said)
	default:
		return fmt.Errorf("%s was lost: %s has ended (%s)%s", name, Program, state, said)
	}
}
