package progress

import (
	"strings"
	"testing"
	"time"
)

// TestLinesAreFarApart: elsewhere than on a terminal a line comes at most every five
// seconds, however often work says where it is; what must be said is said at once.
func TestLinesAreFarApart(t *testing.T) {
	var out strings.Builder
	b := New(&out, false, "training", 40)
	clock := b.shown
	b.now = func() time.Time { return clock }
	for i := range 1200 { // two minutes
		clock = clock.Add(100 * time.Millisecond)
		b.Show(float64(i)/1200, "round 1/2, client 3 of 9")
	}
	if lines := strings.Count(out.String(), "\n"); lines != 24 || !strings.HasPrefix(out.String(), "training: round 1/2, client 3 of 9\n") {
		t.Errorf("%d lines in two minutes:\n%s", lines, out.String())
	}
	out.Reset()
	for range 3 {
		b.Say("stopping")
	}
	if out.String() != "training: stopping\n" {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	clock = clock.Add(5 * time.Second)
	b.Tick(3, "runs")
	if out.String() != "training: 3 of at most 40, runs\n" {
		t.Errorf("%q", out.String())
	}
	b.Done()
	out.Reset()
	clock = clock.Add(time.Minute)
	b.Show(1, "too late")
	b.Say("too late, too")
	if out.Len() > 0 {
		t.Errorf("a bar that is done says %q", out.String())
	}
}

func TestBarsFillUp(t *testing.T) {
	var out strings.Builder
	b := New(&out, true, "training", 4)
	clock := b.shown
	b.now = func() time.Time { return clock }
	for share, want := range map[float64]string{
		-1:   "\r\x1b[Ktraining [                        ] words",
		0:    "\r\x1b[Ktraining [                        ] words",
		0.5:  "\r\x1b[Ktraining [============            ] words",
		1:    "\r\x1b[Ktraining [========================] words",
		17.5: "\r\x1b[Ktraining [========================] words",
	} {
		out.Reset()
		clock = clock.Add(time.Second)
		b.Show(share, "words")
		b.Show(share, "too soon")
		if out.String() != want {
			t.Errorf("at %v: %q", share, out.String())
		}
	}
	out.Reset()
	clock = clock.Add(time.Second)
	b.Of(2, 8, "runs")
	if want := "\r\x1b[Ktraining [======                  ] 2/8 runs"; out.String() != want {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	b.Say("stopping")
	if want := "\r\x1b[Ktraining stopping"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}
