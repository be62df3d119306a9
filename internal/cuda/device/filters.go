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

// arrangeAll lays filters as kernels that slide read them: by eights of what is computed, what
// is read, and taps, which are turned round where a convolution goes back.
func (n *Network) arrangeAll(all []filterPlace) {
	for len(all) > 0 {
		var some filterList
		blocks := 0
		for int(some.count) < min(len(all), len(some.of)) {
			f := all[some.count]
			f.first = int32(blocks)
			blocks += tiles(int(f.taps*f.inC)*tiles(int(f.outC), 8)*8, 256)
			some.of[some.count] = f
			some.count++
		}
		all = all[some.count:]
		n.call("arranged_all", [3]int{blocks, 1, 1}, 256, some)
	}
}
