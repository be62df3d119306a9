package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/coterie-fl/coterie/sim"
)

// spareBytes is how much the garbage collector lets wait before it looks at the heap
// again: training makes little garbage, so that a small number costs no time.
const spareBytes = 1 << 20

// muchBytes is from where on a process's memory is looked after.
const muchBytes = 32 << 20

// giveBackEvery is how often memory is given back at most: it takes some milliseconds.
const giveBackEvery = 2 * time.Second

// forgetEvery is how often pages of the program's own file are given back.
const forgetEvery = time.Second

// thrift keeps a process with much in memory from growing to twice of that before its
// garbage is collected, as Go does by default: what is alive when it begins (data, models)
// stays so for the run. Where a run turns to something else, training or judging, it gives
// back what it no longer needs. Whoever sets GOGC has decided otherwise.
type thrift struct {
	percent int // of the garbage collector, before
	on      bool
	doing   sim.Doing
	round   int
	last    time.Time // that memory was given back
	forgot  time.Time // what was read of the program
}

// collectEarly begins; end it.
func collectEarly() *thrift {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); os.Getenv("GOGC") != "" || m.HeapAlloc < muchBytes {
		return new(thrift)
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	t := &thrift{on: true, percent: debug.SetGCPercent(int(min(100, max(1, 100*spareBytes/max(1, m.HeapAlloc)))))}
	t.giveBack()
	return t
}

// at hears of every moment of the run, one after another.
func (t *thrift) at(m sim.Moment) {
	switch {
	case !t.on:
	case (m.Doing != t.doing || m.Round != t.round) && time.Since(t.last) >= giveBackEvery:
		t.doing, t.round = m.Doing, m.Round
		t.giveBack()
	case time.Since(t.forgot) >= forgetEvery:
		t.forget()
	}
}

func (t *thrift) giveBack() {
	debug.FreeOSMemory() // what reading data took, or the last thing that was done
	t.forget()
	t.last = time.Now()
}

// forget gives back what was read of the program, to start it or to judge between rounds,
// for the system brings the neighbours of every page that is read.
func (t *thrift) forget() {
	_ = forgetStart() // where it cannot be done, the pages stay: no reason to end a run
	t.forgot = time.Now()
}

func (t *thrift) end() {
	if t.on {
		debug.SetGCPercent(t.percent)
	}
}
