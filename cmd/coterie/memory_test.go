package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/coterie-fl/coterie/sim"
)

// TestCollectEarly: a process with much in memory collects its garbage early until the
// end, gives back every now and then and when training is over, not at every moment, and one
// that was told otherwise does neither.
func TestCollectEarly(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	much := make([]byte, 2*muchBytes)
	defer runtime.KeepAlive(much)
	t.Setenv("GOGC", "100")
	if m := collectEarly(); m.on || percent() != 100 {
		t.Errorf("GOGC is set, and memory is looked after at %d %%", percent())
	}
	t.Setenv("GOGC", "")
	m := collectEarly()
	if now := percent(); !m.on || now > 100*spareBytes/muchBytes {
		t.Errorf("garbage is collected at %d %% of %d bytes and more", now, len(much))
	}
	given := m.last
	m.at(sim.Moment{Doing: sim.Judging})
	if m.last != given {
		t.Error("memory is given back twice in a moment")
	}
	m.at(sim.Moment{Doing: sim.Finishing})
	if !m.last.After(given) {
		t.Error("the end of training gives nothing back")
	}
	given = m.last
	m.at(sim.Moment{Doing: sim.Finishing})
	if m.last != given {
		t.Error("the end of training gives back twice")
	}
	m.last = given.Add(-giveBackEvery)
	m.at(sim.Moment{Doing: sim.Finishing})
	if !m.last.After(given) {
		t.Error("nothing is given back after a while")
	}
	if m.end(); percent() != 100 {
		t.Errorf("at the end garbage is collected at %d %%", percent())
	}
}
