package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// spareBytes is how much the garbage collector lets wait before it looks at the heap
// again: training makes little garbage, so that a small number costs no time.
const spareBytes = 4 << 20

// collectEarly keeps a process with much in memory from growing to twice of that before
// its garbage is collected, as Go does by default: what is alive now (data, models) stays
// so for the run. Whoever sets GOGC has decided otherwise. Call what it returns at the end.
func collectEarly() (asBefore func()) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); os.Getenv("GOGC") != "" || m.HeapAlloc < 8*spareBytes {
		return func() {}
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := debug.SetGCPercent(int(min(100, max(4, 100*spareBytes/max(1, m.HeapAlloc)))))
	debug.FreeOSMemory() // what reading data took and nobody needs
	_ = forgetStart()    // where it cannot be done, the pages stay: no reason to end a run
	return func() { debug.SetGCPercent(before) }
}
