//go:build linux

package device

// matrix is one of a layer on places: where its values are, and where it is laid as groups of
// warps read it (group_products.cuh); 0: it is not.
type matrix struct{ at, laid uintptr }

// Groups of warps multiply rows by columns, of 64 values of k at a time. A unit of a matrix that is
// laid has 64 of both, in two parts of float16, and what takes its products back.
const (
	groupK         = 64
	laidColumns    = 64
	laidBytes      = 2*2*groupK*laidColumns + 16
	laidRoom       = 2*2*groupK*laidColumns + 128 // in a block's shared memory
	groupLineBytes = 3 * 4 * 64 * (groupK + 8)    // of lines that a group brings ahead
	leavingBytes   = 4 * 16 * (32 + 8)            // of 16 lines of 32 columns that leave, of a warp
)

// groupBlock is how a block of a product by groups is cut: 64 rows a group, 64 columns a half.
type groupBlock struct {
	name           string
	groups, halves int
}

// groupBlocks are the large one, and the small one for few rows. Values have the same bits by both.
var groupBlocks = []groupBlock{{"", 2, 2}, {"_small", 1, 1}}

func (b groupBlock) rows() int    { return 64 * b.groups }
func (b groupBlock) columns() int { return laidColumns * b.halves }
func (b groupBlock) threads() int { return 128 * b.groups }

// shared is a block's memory: two steps of a matrix, lines of every group, and what leaves.
func (b groupBlock) shared() int {
	return 2*b.halves*laidRoom + b.groups*(groupLineBytes+4*leavingBytes)
}

// A block of sums has 128 of both, both turns of 32 rows in three parts of bfloat16, and four stages
// of such rows of either side, with their weights.
const (
	groupRows       = 128
	groupColumns    = 128
	groupSumK       = 32
	groupSumThreads = 384
	groupSumShared  = 2*3*2*groupSumK*groupColumns + 4*4*groupSumK*(2*(128+4)+1)
)

// A block of norms has both turns of 32 values of 64 places in two parts, with what takes them back,
// three stages of them, and 64 x 64 products.
const (
	pairK      = 32
	pairShared = 2*2*2*pairK*64 + 2*4*64 + 3*4*64*(pairK+4) + 4*64*64
)

// groupKernels are the names of the kernels in groups.cu.
func groupKernels() []string {
	return []string{"group_lay", "group_times", "group_times_back", "group_times_small", "group_times_back_small", "group_times_sum", "group_halves"}
}

// groupTile is how groups cut sums.
var groupTile = tile{lines: groupRows, columns: groupColumns, k: groupSumK, threads: groupSumThreads, groups: true}

// groupMatrix is a matrix that is laid, [k][n] or, turned, [n][k], as group_products.cuh has it.
type groupMatrix struct {
	from, to            uintptr
	n, k, turned, first int32
}

// groupMatrices are those of a launch.
type groupMatrices struct {
	of    [16]groupMatrix
	count int32
}

// units is how many it is laid in.
func (m groupMatrix) units() int { return int(m.n) / laidColumns * int(m.k) / groupK }

// bytes is how much room it has.
func (m groupMatrix) bytes() int { return m.units() * laidBytes }

// matrixOf is what a layer on places, or of scores, multiplies by on its way, forward (0) or back (1);
// one of 0 values for others.
func (n *Network) matrixOf(l *layer, way int) (m groupMatrix) {
	in, out := int32(l.In.Channels), int32(l.Out.Channels)
	switch {
	case l.Kind == "places" && way == 0:
		m = groupMatrix{n: out, k: in}
	case l.Kind == "places":
		m = groupMatrix{n: in, k: out, turned: 1}
	case l.Kind == "scores" && way == 0: // whose matrix is of vectors
		m = groupMatrix{n: int32(l.Words), k: in, turned: 1}
	case l.Kind == "scores":
		m = groupMatrix{n: in, k: int32(l.Words)}
	default:
		return m
	}
	m.from = n.theta + uintptr(4*l.Start) // biases lie behind it, and are read by fours
	return m
}

// groupMatrixOf is matrixOf; ok is false where groups have no kernel for it.
func (n *Network) groupMatrixOf(l *layer, way int) (m groupMatrix, ok bool) {
	m = n.matrixOf(l, way)
	return m, n.d.groups && m.n > 0 && m.n%laidColumns == 0 && m.k%groupK == 0 && m.from%16 == 0 && (way == 0 || l.From > 0)
}

// layMatrices lays the matrices of all layers that have room for it.
func (n *Network) layMatrices() {
	if n.texts != nil {
		n.layTexts()
		return
	}
	var list groupMatrices
	blocks := 0
	lay := func() {
		if list.count > 0 {
			n.call("group_lay", along(blocks, 1), 256, list)
		}
		list, blocks = groupMatrices{}, 0
	}
	for i := range n.layers {
		l := &n.layers[i]
		for way, to := range l.grouped {
			if to == 0 {
				continue
			}
			m, _ := n.groupMatrixOf(l, way)
			m.to, m.first = to, int32(blocks)
			list.of[list.count] = m
			list.count++
			blocks += m.units()
			if int(list.count) == len(list.of) {
				lay()
			}
		}
	}
	lay()
}

// groupsFor is how groups cut a product of so many rows with a matrix that is laid, and into how many
// blocks: large ones if they leave few processors idle. A block stays with its columns, and takes
// every so many'th rows. Ok is false where groups have no kernel, whatever the rows: what a row
// comes to must not depend on how many there are.
func (n *Network) groupsFor(m matrix, rows, columns int) (b groupBlock, blocks int, ok bool) {
	if m.laid == 0 || n.tiles != nil {
		return b, 0, false
	}
	for _, b = range groupBlocks {
		across, down := columns/b.columns(), tiles(rows, b.rows())
		blocks = across * min(max(1, int(n.d.processors)*b.together()/max(1, across)), down)
		if columns%b.columns() == 0 && n.fills(across*down) {
			break
		}
	}
	return b, blocks, true
}

// together is how many blocks a processor has at a time.
func (b groupBlock) together() int { return 2 / b.groups }

// sumsByGroups says that groups have a kernel for such sums.
func (n *Network) sumsByGroups(of []summed, rows int) bool {
	if !n.d.groups || rows%4 != 0 || n.tiles != nil {
		return false
	}
	for _, l := range of {
		if l.m%groupRows != 0 || l.n%groupColumns != 0 {
			return false
		}
	}
	return true
}

// pairsByGroups says that groups have a kernel for norms of so many places, and of such rows: of
// any number of examples, so that an example's norm does not depend on others.
func (n *Network) pairsByGroups(places, in, out int) bool {
	return n.d.groups && places <= 64 && in%pairK == 0 && out%pairK == 0
}
