package population

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
)

func figures(t *testing.T, persons int) contacts.Figures {
	t.Helper()
	p, err := contacts.Generate(t.Context(), contacts.Settings{Persons: persons, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return p.Graph().Figures()
}

// TestPage: whole, with a map and a curve, for many persons and for one; nothing of a
// name becomes markup.
func TestPage(t *testing.T) {
	for _, persons := range []int{1, 3000} {
		for _, target := range []bool{true, false} {
			f := figures(t, persons)
			if !target {
				f.Target = nil
				for r := range f.Regions {
					f.Regions[r].Target = nil
				}
			}
			var out bytes.Buffer
			if err := HTML(&out, f, Made{Title: "<b>people</b>", Source: "a & b", Command: "coterie data check <x>", Version: "1"}); err != nil {
				t.Fatal(err)
			}
			page := out.String()
			for _, fault := range append(layouttest.Faults(page), layouttest.SVGFaults(page)...) {
				t.Errorf("%d persons: %s", persons, fault)
			}
			for _, want := range []string{"Epidemic curve", "region 9: ", "Asymptomatic cases", "&lt;b&gt;people", "a &amp; b", "nothing was added to hide anybody"} {
				if !strings.Contains(page, want) {
					t.Errorf("%d persons: no %q", persons, want)
				}
			}
			if strings.Contains(page, "<b>people") || strings.Contains(page, "to be foretold") != target {
				t.Errorf("%d persons, target %v: wrong words", persons, target)
			}
		}
	}
	if err := HTML(layouttest.BrokenWriter{}, figures(t, 1), Made{Title: "x"}); err == nil {
		t.Error("a broken writer is no fault")
	}
}

// TestShades: none without cases, all for the worst, some for any.
func TestShades(t *testing.T) {
	for _, c := range []struct {
		share, worst float64
		want         int
	}{{0, 0, 0}, {0, .1, 0}, {.001, .1, 1}, {.1, .1, mostShades}} {
		if got := shades(c.share, c.worst); got != c.want {
			t.Errorf("%v of %v: %d, want %d", c.share, c.worst, got, c.want)
		}
	}
}
