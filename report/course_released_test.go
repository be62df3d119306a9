package report

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// releasedOnly is centrally with what is known of exact noise: clip and step size.
func releasedOnly(rule string) sim.Result {
	r := centrally(rule)
	for i := range r.History.Rounds {
		s := r.History.Rounds[i].Steps
		r.History.Rounds[i].Steps = &sim.StepsRecord{Made: s.Made, Clip: s.Clip, Step: s.Step}
	}
	r.Steps = r.History.Rounds[r.Rounds-1].Steps
	return r
}

// ofWholeClients is a made-up run in which the server clips updates.
func ofWholeClients(rule string) sim.Result {
	r := releasedOnly(rule)
	r.Config = strings.Replace(r.Config, "protects: example", "protects: client", 1)
	r.Algorithm, r.Dataset, r.Clients, r.Judge = "fedavg", "synthetic", 400, "clients"
	p := &r.Privacy
	p.Protects, p.Unit, p.Trust, p.Sampling = "client", event.UnitClient, event.TrustServer, "full"
	for i := range r.History.Rounds {
		s := *r.History.Rounds[i].Steps
		s.Made = i + 1
		r.History.Rounds[i].Steps = &s
	}
	return r
}

// TestCourseOfWhatWasReleased: with exact noise clip and step size are drawn over steps,
// of whole clients over rounds and by their own names, and nothing is shown that needs
// sums without noise.
func TestCourseOfWhatWasReleased(t *testing.T) {
	for name, c := range map[string]struct {
		result sim.Result
		page   []string
		table  string
		note   string
	}{
		"exact": {releasedOnly("online"), []string{"Clip: from 0.1 at step 20 to 0.0771 at step 1180.", "largest norm of an example’s gradient (log scale)", ">Step size<"},
			"step test accuracy clip step size eps so far claim unit relation", "clip and step size follow from sums with noise"},
		"clients": {ofWholeClients("online"), []string{"Clip: from 0.1 at round 1 to 0.0771 at round 59.", "largest norm of an update (log scale)", ">Server step<", ">round</text>"},
			"round clip server step eps so far claim unit relation", "clip and server step follow from sums with noise"},
		"clients, quantile": {ofWholeClients("quantile"), []string{"The clip stayed at 0.1 and the server step stayed at 0.5."},
			"round clip server step eps so far claim unit relation", "clip follows from sums with noise"},
	} {
		section := courseSection(t, render(t, name, c.result))
		for _, want := range append(c.page, "follow from sums with noise and cost nothing more") {
			if !strings.Contains(section, want) {
				t.Errorf("%s: the section does not contain %q", name, want)
			}
		}
		for _, absent := range []string{"simulation only", "norms-", "course-clipped", "course-agree"} {
			if strings.Contains(section, absent) {
				t.Errorf("%s: the section has %s", name, absent)
			}
		}
		if moved := strings.Contains(section, `id="course-clip-1-t"`); moved != strings.Contains(section, "</svg>clip</li>") {
			t.Errorf("%s: the clip is drawn: %v, and the legend says otherwise", name, moved)
		}
		var b strings.Builder
		if err := Course(&b, c.result); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if head := strings.Join(strings.Fields(lines[0]), " "); head != c.table || lines[len(lines)-1] != c.note {
			t.Errorf("%s: a terminal shows %q and ends with %q", name, head, lines[len(lines)-1])
		}
	}
	var b strings.Builder
	if err := Course(&b, ofWholeClients("fixed")); err != nil || b.String() != "" {
		t.Errorf("a clip of updates that nobody learned is told: %s, %v", &b, err)
	}
}
