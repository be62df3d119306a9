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
const giveBackEvery = time.Second

// thrift keeps a process with much in memory from growing to twice of that before its
// garbage is collected, as Go does by default: what is alive when it begins (data, models)
// stays so for the run. Every now and then, and when training is over, it gives back what
// the run no longer needs, which Go would keep a tenth of the heap of. Whoever sets GOGC has
// decided otherwise.
type thrift struct {
	percent int // of the garbage collector, before
	on      bool
	doing   sim.Doing
	last    time.Time   // that memory was given back
	program []addresses // that show the program's own file
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
	t.program, _ = programParts() // as below
	t.giveBack()
	return t
}

// at hears of every moment of the run, one after another.
func (t *thrift) at(m sim.Moment) {
	over := m.Doing == sim.Finishing && t.doing != m.Doing
	t.doing = m.Doing
	if t.on && (over || time.Since(t.last) >= giveBackEvery) {
		t.giveBack()
	}
}

// giveBack gives back what is free, and what was read of the program, to start it or to
// judge between rounds.
func (t *thrift) giveBack() {
	debug.FreeOSMemory()
	_ = forget(t.program) // where it cannot be done, the pages stay: no reason to end a run
	t.last = time.Now()
}

func (t *thrift) end() {
	if t.on {
		debug.SetGCPercent(t.percent)
	}
}
