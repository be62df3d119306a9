//go:build linux

package device

// filterPlace is a filter that is laid as kernels that slide read it, as other.cuh has it.
type filterPlace struct {
	from, to                         uintptr
	taps, inC, outC, goesBack, first int32
}

// filterList are those of a launch.
type filterList struct {
	of    [6]filterPlace
	count int32
}

// filterOf is the filter of a convolution that gathers by w.
func filterOf(w window, from, to uintptr) filterPlace {
	return filterPlace{from: from, to: to, taps: w.kernelW * w.kernelW, inC: w.inC, outC: w.outC, goesBack: w.back}
}

// layAll lays filters as tensor cores read them.
func (n *Network) layAll(all []filterPlace) {
	n.inLaunches("tensor_filters", all, func(f filterPlace) int { return int(f.taps*f.inC*f.outC) / 8 })
}

// arrangeAll lays filters as kernels that slide read them: by eights of what is computed, what
// is read, and taps, which are turned round where a convolution goes back.
func (n *Network) arrangeAll(all []filterPlace) {
	n.inLaunches("arranged_all", all, func(f filterPlace) int { return int(f.taps*f.inC) * tiles(int(f.outC), 8) * 8 })
}

// inLaunches starts a kernel that has several filters a launch, and so many threads for each.
func (n *Network) inLaunches(kernel string, all []filterPlace, threads func(filterPlace) int) {
	for len(all) > 0 {
		var some filterList
		blocks := 0
		for int(some.count) < min(len(all), len(some.of)) {
			f := all[some.count]
			f.first = int32(blocks)
			blocks += tiles(threads(f), 256)
			some.of[some.count] = f
			some.count++
		}
		all = all[some.count:]
		n.call(kernel, [3]int{blocks, 1, 1}, 256, some)
	}
}
