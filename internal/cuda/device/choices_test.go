//go:build linux

package device

import (
	"fmt"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

func told(s sliding) string {
	d := s.shape
	return fmt.Sprintf("%s columns %d groups %d parts %d each %d chunk %d threads %d", s.name, d.strips, d.groups, d.parts, d.each, d.chunk, s.threads)
}

func patchesTold(s patching) string {
	return fmt.Sprintf("%s rows %d threads %d", s.name, s.shape.rows, s.threads)
}

func tapsTold(s tensorTapping) string {
	return fmt.Sprintf("%s rows %d threads %d", s.name, s.shape.rows, s.threads)
}

// TestChosenAsTimed: for the networks of digits and of FEMNIST what is chosen is what took the
// least time on an H200, or within a hundredth of it.
func TestChosenAsTimed(t *testing.T) {
	second := window{outH: 23, outW: 23, outC: 32, inH: 26, inW: 26, inC: 16, kernelH: 4, kernelW: 4, stride: 1}
	secondBack := window{outH: 26, outW: 26, outC: 16, inH: 23, inW: 23, inC: 32, kernelH: 4, kernelW: 4, stride: 1, back: 1}
	letters := window{outH: 24, outW: 24, outC: 64, inH: 26, inW: 26, inC: 32, kernelH: 3, kernelW: 3, stride: 1}
	lettersBack := window{outH: 26, outW: 26, outC: 32, inH: 24, inW: 24, inC: 64, kernelH: 3, kernelW: 3, stride: 1, back: 1}
	first := window{outH: 27, outW: 27, outC: 16, inH: 28, inW: 28, inC: 1, kernelH: 8, kernelW: 8, stride: 1, padding: 3}
	for _, c := range []struct {
		got  sliding
		want string
	}{
		{slide(second, 576), "near_4_13_4 columns 2 groups 8 parts 3 each 1 chunk 8 threads 128"},
		{slide(secondBack, 576), "near_4_13_4 columns 2 groups 4 parts 2 each 1 chunk 8 threads 128"},
		{slide(letters, 576), "direct_3_8 columns 1 groups 8 parts 3 each 1 chunk 32 threads 64"},
		{slide(lettersBack, 576), "near_3_13_4 columns 2 groups 8 parts 4 each 1 chunk 16 threads 128"},
		{slidePooled(letters, model.Shape{Height: 12, Width: 12, Channels: 64}, 2, 576, 225<<10).sliding, "pooled_near_3_12_8 columns 2 groups 8 parts 2 each 1 chunk 16 threads 192"},
		{slidePooled(letters, model.Shape{Height: 12, Width: 12, Channels: 64}, 2, 576, sharedBytes).sliding, "pooled_3_8 columns 3 groups 8 parts 6 each 1 chunk 32 threads 96"},
		{slidePooled(first, model.Shape{Height: 26, Width: 26, Channels: 16}, 1, 576, 225<<10).sliding, "pooled_near_8_9_4 columns 3 groups 4 parts 1 each 1 chunk 1 threads 352"},
	} {
		if got := told(c.got); got != c.want {
			t.Errorf("%s instead of %s", got, c.want)
		}
	}
	for _, c := range []struct{ got, want string }{
		{patchesTold(patchesOf(second, nil, 225<<10)), "3_4 rows 8 threads 128"},
		{patchesTold(patchesOf(secondBack, nil, 225<<10)), "4_2 rows 9 threads 128"},
		{patchesTold(patchesOf(letters, nil, 225<<10)), "3_4 rows 8 threads 256"},
		{patchesTold(patchesOf(lettersBack, nil, 225<<10)), "3_4 rows 13 threads 256"},
		{patchesTold(patchesOf(letters, &model.Shape{Height: 12, Width: 12, Channels: 64}, 225<<10)), "3_4 rows 8 threads 256"},
		{tapsTold(tensorTapsOf(second, true, 225<<10)), "4_4 rows 6 threads 128"},
		{tapsTold(tensorTapsOf(letters, true, 225<<10)), "9_4 rows 3 threads 128"},
	} {
		if c.got != c.want {
			t.Errorf("on tensor cores: %s instead of %s", c.got, c.want)
		}
	}
	for _, most := range []int{sharedBytes, 62 << 10, 97 << 10} {
		if s := slidePooled(letters, model.Shape{Height: 12, Width: 12, Channels: 64}, 2, 576, most); s.name == "" || s.shared > most {
			t.Errorf("of %d bytes: %s with %d", most, told(s.sliding), s.shared)
		}
	}
	for most, want := range map[int]int{sharedBytes: 0, 97 << 10: 0, 161 << 10: 8, 225 << 10: 16} {
		if m := merge(secondBack, first, true, most); int(m.shape.chunk) != want || 2*m.shared > most {
			t.Errorf("of %d bytes: %q, %d channels at a time, %d bytes", most, m.name, m.shape.chunk, m.shared)
		}
	}
	m := merge(secondBack, first, true, 225<<10)
	if got, want := fmt.Sprint(told(m.sliding), " by ", m.taps.parts), "merged_4_13_8 columns 2 groups 4 parts 1 each 1 chunk 16 threads 224 by 14"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}
