package repro

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
	"github.com/coterie-fl/coterie/sim"
)

// TestSmoke runs every experiment at smoke scale: each has rows, verdicts and a
// report.
func TestSmoke(t *testing.T) {
	for _, e := range List() {
		t.Run(e.ID, func(t *testing.T) {
			if len(e.Needs) > 0 && os.Getenv("COTERIE_DATA") == "" {
				t.Skip("COTERIE_DATA is not set: see README, real data")
			}
			began := time.Now()
			o := labtest.Options(t, lab.Smoke)
			s, err := Run(context.Background(), e.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Rows) == 0 || s.ID != e.ID || s.Seeds < 1 {
				t.Errorf("%+v", s)
			}
			for _, r := range s.Rows {
				switch r.Verdict {
				case study.Agrees, study.Differs: // with a number or a sentence: the page refuses others
				case study.NoNumber, study.Incomparable:
				default:
					t.Errorf("%s has the verdict %q", r.Label, r.Verdict)
				}
			}
			if _, err := os.Stat(s.Report); err != nil {
				t.Error(err)
			}
			if names := coloured(s); len(names) > 8 {
				t.Errorf("%d series share the 8 colours of the page: %q", len(names), names)
			}
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// coloured are the names of a page's series that have a colour each.
func coloured(s study.Study) (names []string) {
	for _, c := range s.Charts {
		for _, series := range c.Series {
			if name := cmp.Or(series.Of, series.Name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestOneSeed: whoever asks for one seed, which has no interval, gets a page and JSON too.
func TestOneSeed(t *testing.T) {
	for _, e := range List() {
		if e.Seeds[lab.Smoke] < 2 { // TestSmoke makes it
			continue
		}
		t.Run(e.ID, func(t *testing.T) {
			if len(e.Needs) > 0 && os.Getenv("COTERIE_DATA") == "" {
				t.Skip("COTERIE_DATA is not set: see README, real data")
			}
			o := labtest.Options(t, lab.Smoke)
			o.Seeds = 1
			s, err := Run(context.Background(), e.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			if s.Seeds != 1 {
				t.Errorf("%d seeds", s.Seeds)
			}
			if _, err := json.Marshal(s); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStopAndGoOn(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	ctx, cancel := context.WithCancel(context.Background())
	o.Workers = 1
	o.Tick = func(done, _ int) {
		if done == 5 {
			cancel()
		}
	}
	if _, err := Run(ctx, "synthetic", o); !errors.Is(err, sim.ErrInterrupted) {
		t.Fatalf("%v", err)
	}
	before, _ := filepath.Glob(filepath.Join(o.Out, "cells", "*.json"))
	if len(before) < 5 {
		t.Errorf("%d cells are left of five", len(before))
	}
	o.Tick = func(int, int) {}
	if _, err := Run(context.Background(), "synthetic", o); err != nil {
		t.Fatal(err)
	}
}

// TestSettingsAreTold: a study with other settings than its own says so first.
func TestSettingsAreTold(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	o.Set = []string{"algorithm.rounds=3"}
	changed, err := Run(context.Background(), "synthetic", o)
	if err != nil {
		t.Fatal(err)
	}
	if len(changed.Caveats) == 0 || !strings.Contains(changed.Caveats[0], "algorithm.rounds=3") {
		t.Errorf("not told: %q", changed.Caveats)
	}
	own, err := Run(context.Background(), "synthetic", labtest.Options(t, lab.Smoke))
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Caveats) != len(changed.Caveats)-1 {
		t.Errorf("%d caveats of its own, %d with a change", len(own.Caveats), len(changed.Caveats))
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Run(context.Background(), "nothing", labtest.Options(t, lab.Smoke)); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := Run(context.Background(), "synthetic", labtest.Options(t, "huge")); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("%v", err)
	}
	o := labtest.Options(t, lab.Smoke)
	o.Data = ""
	if _, err := Run(context.Background(), "hospital", o); err == nil {
		t.Error("real data are missing and nobody said so")
	}
	o.Set = []string{"algorithm.rounds=0"}
	if _, err := Run(context.Background(), "synthetic", o); err == nil {
		t.Error("a wrong setting was accepted")
	}
}
