package silos

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/repro/lab"
)

// TestTrials: warm MR-MTL is tried with a start twice as long and with one model a cluster, at
// full scale and where silos have masks alone.
func TestTrials(t *testing.T) {
	f := figure16At(&lab.Lab{Options: lab.Options{Scale: lab.Full}})
	tried := f.trials(0.5)
	if len(tried) != 2 || tried[0].name != "MR-MTL (IFCA 10 %)" || tried[0].settings[0].Algorithm.WarmStart != 0.1 || tried[0].settings[0].Algorithm.Lambda != "1" {
		t.Fatalf("%+v", tried)
	}
	if one := tried[1].settings[0]; tried[1].labels[0] != "lambda inf" || one.Algorithm.Lambda != "inf" || one.Algorithm.WarmStart != 0.05 || one.Data.Mask != 0.5 {
		t.Errorf("%+v", one)
	}
	quick := figure16At(&lab.Lab{Options: lab.Options{Scale: lab.Quick}})
	if len(f.trials(0)) != 0 || len(quick.trials(0.5)) != 0 {
		t.Error("trials where nothing has to be explained")
	}
}

// TestBehind: what is believed is what gains, or is as good as the rival, by its whole interval; the
// longer start comes first.
func TestBehind(t *testing.T) {
	f := figure16{warm: 0.05}
	warm, rival := of("warm", 0.7, 0.71, 0.7), of("IFCA", 0.8, 0.81, 0.8)
	gains, loses, unclear := []float64{0.79, 0.81, 0.8}, []float64{0.6, 0.61, 0.6}, []float64{0.9, 0.6, 0.7}
	for _, c := range []struct {
		longer, tied []float64
		want         string
	}{
		{gains, loses, "too few to find"}, {gains, gains, "too few to find"}, {loses, gains, "lambda is too small"}, {unclear, gains, "lambda is too small"},
		{loses, loses, "do not know why"}, {unclear, unclear, "do not know why"},
	} {
		why := f.behind(warm, rival, []outcome{of("longer", c.longer...), of("tied", c.tied...)})
		if !strings.Contains(why, c.want) || strings.Index(why, "longer gains") > strings.Index(why, "tied gains") {
			t.Errorf("%v, %v: %s", c.longer, c.tied, why)
		}
	}
	spread := of("warm", 0.7, 0.9, 0.5) // on which nothing gains by its whole interval
	if why := f.behind(spread, rival, []outcome{of("longer", 0.8, 0.81, 0.8), of("tied", loses...)}); !strings.Contains(why, "too few to find") {
		t.Error("as good as the rival: ", why)
	}
}
