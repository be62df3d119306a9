//go:build linux

package device

import "github.com/coterie-fl/coterie/internal/cuda"

// recorded names a row of kernels: what they do, of which set, of how many examples,
// whichever case of it, and on which side. All else that they depend on stays as it is for a
// network's life.
type recorded struct {
	what                    recording
	set, count, which, side int
}

type recording int

const (
	recordNorms recording = iota
	recordStep
	recordForward
	recordTexts
	recordLosses
	recordAdd
	recordFilters
)

// mostRecordings is how many rows of kernels a network keeps: batches that are drawn have
// about a hundred sizes.
const mostRecordings = 256

// recordings are rows of kernels that the driver starts at once: starting them one by one
// takes longer than small batches are computed in. A row is recorded when it is asked for the
// second time, so that sizes which come once cost nothing. Kernels, grids and so bits are the
// same.
type recordings struct {
	asked map[recorded]bool
	made  map[recorded]uintptr
}

// together starts what do starts, at once if it was recorded. What do starts must not wait,
// copy from or to this program, or take memory.
func (n *Network) together(r recorded, do func()) {
	if n.times != nil || n.d.failed != nil || n.outlast(r.count) { // whoever asks for times has kernels one by one
		do()
		return
	}
	if row, ok := n.recordings.made[r]; ok {
		n.d.must(n.d.graphLaunch(row, n.d.stream), "cuGraphLaunch")
		return
	}
	if !n.recordings.asked[r] {
		if n.recordings.asked == nil {
			n.recordings = recordings{map[recorded]bool{}, map[recorded]uintptr{}}
		}
		n.recordings.asked[r] = true
		do()
		return
	}
	if len(n.recordings.made) == mostRecordings {
		n.forgetRecordings()
	}
	if row := n.d.record(do); n.d.failed == nil {
		n.recordings.made[r] = row
		n.d.must(n.d.graphLaunch(row, n.d.stream), "cuGraphLaunch")
	}
}

// outlast says that kernels of g examples take longer than to start them one by one: then to record
// them, which the device would wait for, is not worth it.
func (n *Network) outlast(g int) bool { return n.texts != nil && n.chains(g) }

// ready says that a row of kernels is started at once, without anything that takes the driver's time.
func (n *Network) ready(r recorded) bool {
	if n.times != nil || !n.added || n.staying[cuda.VectorGradient] == 0 {
		return false
	}
	return n.outlast(r.count) || n.recordings.made[r] != 0
}

// forgetRecordings gives back what they took, once none is under way.
func (n *Network) forgetRecordings() {
	if n.d.wait() != nil {
		return
	}
	closed.Lock()
	defer closed.Unlock()
	for r, row := range n.recordings.made {
		n.d.must(n.d.graphExecDestroy(row), "cuGraphExecDestroy")
		delete(n.recordings.made, r)
	}
}

// record makes a row of what do starts, which is not started by that.
func (d *driver) record(do func()) (row uintptr) {
	closed.Lock()
	defer closed.Unlock()
	const thisThread = 1 // what others do meanwhile is not recorded, and does no harm
	if d.must(d.streamBeginCapture(d.stream, thisThread), "cuStreamBeginCapture"); d.failed != nil {
		return 0
	}
	do()
	var graph uintptr
	d.must(d.streamEndCapture(d.stream, &graph), "cuStreamEndCapture")
	if d.failed == nil { // otherwise there may be no graph
		d.must(d.graphInstantiate(&row, graph, 0), "cuGraphInstantiateWithFlags")
	}
	if graph != 0 {
		d.must(d.graphDestroy(graph), "cuGraphDestroy")
	}
	return row
}
