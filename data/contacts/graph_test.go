package contacts

import (
	"errors"
	"testing"

	"github.com/coterie-fl/coterie/internal/pool"
)

func TestHow(t *testing.T) {
	for k := Home; k <= Religion; k++ {
		for _, seconds := range []int{1, 11, 12, 13, 120, 86400, longest} {
			h := howOf(k, seconds)
			if h.Kind() != k || h.Seconds() < seconds || h.Seconds() >= seconds+Tick {
				t.Errorf("%v for %d seconds became %v for %d", k, seconds, h.Kind(), h.Seconds())
			}
		}
	}
	if Kind(0).String() != "unknown" || Kind(8).String() != "unknown" || College.String() != "college" {
		t.Error("names")
	}
}

// TestDaysBetween against counting, for every pair of days around the known ones.
func TestDaysBetween(t *testing.T) {
	for first := -10; first < 75; first++ {
		for last := first; last < 80; last++ {
			var want uint64
			for d := max(0, first); d < min(knownDays, last); d++ {
				want |= 1 << d
			}
			if got := daysBetween(first, last); got != want {
				t.Fatalf("%d to %d: %b, want %b", first, last, got, want)
			}
		}
	}
}

// TestLasts against looking at every day.
func TestLasts(t *testing.T) {
	const days = 6
	for mask := range uint64(1 << days) {
		want, began := true, false
		for d := range days {
			on := mask>>d&1 == 1
			want = want && (on || !began)
			began = began || on
		}
		if lasts(mask, days) != want {
			t.Errorf("%06b: %v", mask, !want)
		}
	}
}

// TestRegions: a region's box lies in it.
func TestRegions(t *testing.T) {
	for r := range regions {
		west, south, east, north := RegionBox(r)
		for _, x := range []float64{west, east - 1e-9} {
			for _, y := range []float64{south, north - 1e-9} {
				if got := RegionAt(x, y); got != r {
					t.Errorf("%v, %v is in region %d, not %d", x, y, got, r)
				}
			}
		}
	}
	if RegionAt(-180, -90) != 0 || RegionAt(180, 90) != 9 {
		t.Error("the outer regions end")
	}
}

// TestMovedContacts: the second pass must see what the first one saw.
func TestMovedContacts(t *testing.T) {
	for name, second := range map[string][][2]uint32{"more": {{0, 1}, {0, 1}}, "less": {}, "others": {{0, 2}}} {
		p := pool.New(1)
		g := &Graph{ID: make([]int64, 3)}
		passes := [][][2]uint32{{{0, 1}}, second}
		err := g.fillRows(p, false, func(add both) error {
			for _, c := range passes[0] {
				add(c[0], c[1], howOf(Home, 60), howOf(Home, 60), scene{})
			}
			passes = passes[1:]
			return nil
		})
		if p.Close(); !errors.Is(err, errMoved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNumbers: dense ones by a table, others by searching, unknown ones by neither.
func TestNumbers(t *testing.T) {
	for _, sorted := range [][]int64{{}, {5}, {0, 1, 2, 9}, {3, 1 << 40, 1 << 52}} {
		n := newNumbers(sorted)
		known := map[int64]uint32{}
		for i, v := range sorted {
			known[v] = uint32(i)
		}
		for _, v := range append([]int64{-1, 0, 4, 5, 6, 10, 1 << 40, 1<<53 + 1, -1 << 60}, sorted...) {
			want, ok := known[v]
			if !ok {
				want = unknown
			}
			if got := n.place(v); got != want {
				t.Errorf("%d in %v: %d, want %d", v, sorted, got, want)
			}
		}
	}
}
