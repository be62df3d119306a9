package source

// scaler scales pictures of one size to the public one: by areas where a side becomes
// smaller, by straight lines between the pixels' middles where it becomes larger. It
// counts in whole numbers, so that every processor gives the same bytes.
type scaler struct {
	down, across axis
	channels     int
	line         []byte // of the picture as it comes, in the public channels
	// lines are the last two lines, scaled across but not yet divided; at says which.
	lines [2][]uint64
	at    [2]int
	sums  []uint64
}

// axis says of every pixel along a new side which old pixels it is made of: from first
// on, by weights that add up to total.
type axis struct {
	first   []int
	weights [][]uint64
	total   uint64
}

// newAxis makes a side of so many pixels from an old one.
func newAxis(old, fresh int) axis {
	a := axis{first: make([]int, fresh), weights: make([][]uint64, fresh)}
	if fresh <= old {
		// In steps of 1/fresh of an old pixel, new pixel i covers [i*old, (i+1)*old).
		a.total = uint64(old)
		for i := range fresh {
			from, to := i*old, (i+1)*old
			a.first[i] = from / fresh
			for p := from / fresh; p*fresh < to; p++ {
				a.weights[i] = append(a.weights[i], uint64(min(to, (p+1)*fresh)-max(from, p*fresh)))
			}
		}
		return a
	}
	a.total = 2 * uint64(fresh)
	for i := range fresh {
		// The middle of new pixel i, from the middle of the first old one, in steps of
		// 1/(2*fresh) of an old pixel; beyond the outermost middles nothing changes.
		middle := min(max(0, (2*i+1)*old-fresh), 2*fresh*(old-1))
		p, beyond := middle/(2*fresh), uint64(middle%(2*fresh))
		a.first[i], a.weights[i] = p, []uint64{a.total - beyond}
		if beyond > 0 {
			a.weights[i] = append(a.weights[i], beyond)
		}
	}
	return a
}

func newScaler(height, width int, r *pictureReader) *scaler {
	s := &scaler{
		down: newAxis(height, r.height), across: newAxis(width, r.width), channels: r.channels,
		line: make([]byte, width*r.channels), sums: make([]uint64, r.width*r.channels), at: [2]int{-1, -1},
	}
	for i := range s.lines {
		s.lines[i] = make([]uint64, r.width*r.channels)
	}
	return s
}

// scale writes the scaled picture to dst. It asks for every line of the picture once, in
// order.
func (s *scaler) scale(dst []byte, read func(y int, line []byte)) {
	s.at = [2]int{-1, -1}
	whole := s.across.total * s.down.total
	for i, weights := range s.down.weights {
		clear(s.sums)
		for k, w := range weights {
			for j, v := range s.lineAcross(s.down.first[i]+k, read) {
				s.sums[j] += w * v
			}
		}
		out := dst[i*len(s.sums) : (i+1)*len(s.sums)]
		for j, v := range s.sums {
			out[j] = byte((v + whole/2) / whole)
		}
	}
}

// lineAcross is line y, scaled across. Two are kept: neighbours in the new picture share at
// most so many.
func (s *scaler) lineAcross(y int, read func(y int, line []byte)) []uint64 {
	out := s.lines[y%2]
	if s.at[y%2] == y {
		return out
	}
	s.at[y%2] = y
	read(y, s.line)
	for i, weights := range s.across.weights {
		for c := range s.channels {
			sum, at := uint64(0), s.across.first[i]*s.channels+c
			for k, w := range weights {
				sum += w * uint64(s.line[at+k*s.channels])
			}
			out[i*s.channels+c] = sum
		}
	}
	return out
}
