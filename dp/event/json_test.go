package event

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawEvent draws any valid event, nested at most depth deep.
func drawEvent(t *rapid.T, depth int) Event {
	kinds := 9
	if depth > 0 {
		kinds = 13
	}
	scale := rapid.Float64Range(1e-9, 1e9)
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return Gaussian{scale.Draw(t, "noise")}
	case 1:
		return Laplace{scale.Draw(t, "scale")}
	case 2:
		return DiscreteGaussian{scale.Draw(t, "sigma"), rapid.Int64Range(1, 1<<40).Draw(t, "bound")}
	case 3:
		return MetricLaplace{rapid.IntRange(1, 1<<30).Draw(t, "dimension"), scale.Draw(t, "noise"), scale.Draw(t, "radius"), rapid.SampledFrom([]float64{0, 1e-9, 0.5}).Draw(t, "slack"), rapid.SampledFrom([]float64{0, 3, 1e300}).Draw(t, "spread")}
	case 4:
		mechanism := rapid.SampledFrom([]string{Exponential, PermuteAndFlip, NoisyMax}).Draw(t, "mechanism")
		return Selection{mechanism, scale.Draw(t, "epsilon")}
	case 6:
		return NodeSum{rapid.Int64Range(1, MaxOccurrences).Draw(t, "examples"), scale.Draw(t, "noise")}
	case 5:
		nodes := rapid.Int64Range(1, 1<<40).Draw(t, "nodes")
		return NodeGaussian{
			Nodes:       nodes,
			Occurrences: rapid.Int64Range(1, min(nodes, MaxOccurrences)).Draw(t, "occurrences"),
			Batch:       rapid.Int64Range(1, nodes).Draw(t, "batch"),
			Noise:       scale.Draw(t, "noise"),
			Formula:     rapid.SampledFrom([]string{Theorem, AuthorsCode}).Draw(t, "formula"),
		}
	case 7:
		return Unprotected{}
	case 8:
		return NodeThinned{rapid.Int64Range(1, MaxOccurrences).Draw(t, "degree"), rapid.Float64Range(1e-9, 1).Draw(t, "keep"), scale.Draw(t, "noise")}
	case 9:
		return drawSampled(t, depth)
	case 10:
		return Repeated{rapid.Int64Range(0, math.MaxInt64).Draw(t, "times"), drawEvent(t, depth-1)}
	case 11:
		parts := make([]Event, rapid.IntRange(1, 3).Draw(t, "parts"))
		for i := range parts {
			parts[i] = drawEvent(t, depth-1)
		}
		return Composed{parts}
	default:
		return drawTuning(t, depth)
	}
}

func drawSampled(t *rapid.T, depth int) Event {
	s := Sampled{Sampling: rapid.SampledFrom([]Sampling{FullBatch, Poisson, WithoutReplacement, Shuffle}).Draw(t, "sampling")}
	switch s.Sampling {
	case Poisson:
		s.Rate = rapid.Float64Range(0, 1).Draw(t, "rate")
	case WithoutReplacement, Shuffle:
		s.Examples = rapid.Int64Range(1, 1<<40).Draw(t, "examples")
		s.Batch = rapid.Int64Range(1, s.Examples).Draw(t, "batch")
	}
	s.Of = drawEvent(t, depth-1)
	return s
}

func drawTuning(t *rapid.T, depth int) Event {
	e := Tuning{Of: drawEvent(t, depth-1)}
	switch rapid.IntRange(0, 3).Draw(t, "distribution") {
	case 0:
		e.Distribution, e.Eta = TruncatedNegativeBinomial, rapid.Float64Range(-0.99, 9).Draw(t, "eta")
		e.Gamma = rapid.Float64Range(1e-9, 0.99).Draw(t, "gamma")
	case 1:
		e.Distribution, e.Eta = TruncatedNegativeBinomial, rapid.Float64Range(-0.99, 9).Draw(t, "eta")
		e.Mean = rapid.Float64Range(1, 1e6).Draw(t, "mean")
	case 2:
		e.Distribution, e.Mean = PoissonTrials, rapid.Float64Range(1, 1e6).Draw(t, "mean")
	default:
		e.Distribution, e.Trials = NaiveTrials, rapid.Int64Range(1, 1e9).Draw(t, "trials")
	}
	return e
}

func drawRelease(t *rapid.T) Release {
	return Release{
		Unit:     rapid.SampledFrom([]Unit{UnitExample, UnitClient, UnitNode, UnitNeighbourhood}).Draw(t, "unit"),
		Relation: rapid.SampledFrom([]Relation{AddRemove, ReplaceOne, Metric}).Draw(t, "relation"),
		Claim:    rapid.SampledFrom([]Claim{ClaimProved, ClaimMetric, ClaimHeuristic, ClaimNone}).Draw(t, "claim"),
		Trust:    rapid.SampledFrom([]Trust{TrustLocal, TrustServer, TrustNobody}).Draw(t, "trust"),
		What:     drawEvent(t, 4),
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRelease(t)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatalf("write %#v: %v", want, err)
		}
		var got Release
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("read %s: %v", data, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("wrote %#v, read %#v", want, got)
		}
		one, err := Marshal(want.What)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := Unmarshal(one); err != nil || !reflect.DeepEqual(e, want.What) {
			t.Fatalf("event: wrote %#v, read %#v, %v", want.What, e, err)
		}
	})
}

// The form is fixed: ledgers outlive the binary that wrote them.
func TestFormIsStable(t *testing.T) {
	r := Release{UnitExample, AddRemove, ClaimProved, TrustLocal,
		Repeated{10, Sampled{Sampling: Poisson, Rate: 0.5, Of: Composed{[]Event{Gaussian{1.5}, Unprotected{}}}}}}
	data, err := json.Marshal(r)
	want := `{"unit":"example","relation":"add-remove","claim":"proved",` +
		`"trust":"participant adds the noise; the server is not trusted","what":` +
		`{"kind":"repeated","times":10,"of":{"kind":"sampled","sampling":"poisson","rate":0.5,` +
		`"of":{"kind":"composed","parts":[{"kind":"gaussian","noise":1.5},{"kind":"unprotected"}]}}}}`
	if err != nil || string(data) != want {
		t.Errorf("got  %s (%v)\nwant %s", data, err, want)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat(`{"kind":"repeated","times":1,"of":`, n) + `{"kind":"gaussian","noise":1}` + strings.Repeat("}", n)
	}
	if _, err := Unmarshal([]byte(deep(maxDepth - 1))); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
	for name, data := range map[string]string{
		"nothing":          ``,
		"null":             `null`,
		"list":             `[]`,
		"no kind":          `{"noise":1}`,
		"kind not text":    `{"kind":7}`,
		"unknown kind":     `{"kind":"cauchy","noise":1}`,
		"unknown field":    `{"kind":"gaussian","noise":1,"sensitivity":1}`,
		"other case":       `{"kind":"gaussian","Noise":1}`,
		"repeated field":   `{"kind":"gaussian","noise":9,"noise":1}`,
		"missing field":    `{"kind":"gaussian"}`,
		"null field":       `{"kind":"gaussian","noise":null}`,
		"trailing data":    `{"kind":"gaussian","noise":1} {}`,
		"trailing text":    `{"kind":"gaussian","noise":1}x`,
		"truncated":        `{"kind":"gaussian","noise":1`,
		"overflow":         `{"kind":"gaussian","noise":1e999}`,
		"NaN":              `{"kind":"gaussian","noise":NaN}`,
		"negative":         `{"kind":"gaussian","noise":-1}`,
		"zero noise":       `{"kind":"gaussian","noise":0}`,
		"text number":      `{"kind":"gaussian","noise":"1"}`,
		"rate over 1":      `{"kind":"sampled","sampling":"poisson","rate":1.01,"of":{"kind":"gaussian","noise":1}}`,
		"poisson batch":    `{"kind":"sampled","sampling":"poisson","batch":5,"examples":10,"of":{"kind":"gaussian","noise":1}}`,
		"batch too large":  `{"kind":"sampled","sampling":"without-replacement","batch":11,"examples":10,"of":{"kind":"gaussian","noise":1}}`,
		"unknown sampling": `{"kind":"sampled","sampling":"stratified","rate":0.1,"of":{"kind":"gaussian","noise":1}}`,
		"nothing sampled":  `{"kind":"sampled","sampling":"poisson","rate":0.1}`,
		"fractional times": `{"kind":"repeated","times":1.5,"of":{"kind":"gaussian","noise":1}}`,
		"negative times":   `{"kind":"repeated","times":-1,"of":{"kind":"gaussian","noise":1}}`,
		"huge times":       `{"kind":"repeated","times":1e30,"of":{"kind":"gaussian","noise":1}}`,
		"no parts":         `{"kind":"composed","parts":[]}`,
		"bad part":         `{"kind":"composed","parts":[{"kind":"gaussian","noise":1},7]}`,
		"no degree":        `{"kind":"node-thinned","degree":0,"keep":0.1,"noise":1}`,
		"keeps nothing":    `{"kind":"node-thinned","degree":5,"keep":0,"noise":1}`,
		"keeps too much":   `{"kind":"node-thinned","degree":5,"keep":1.5,"noise":1}`,
		"keep is missing":  `{"kind":"node-thinned","degree":5,"noise":1}`,
		"eta -1":           `{"kind":"tuning","distribution":"tnb","eta":-1,"mean":5,"of":{"kind":"gaussian","noise":1}}`,
		"gamma and mean":   `{"kind":"tuning","distribution":"tnb","gamma":0.1,"mean":5,"of":{"kind":"gaussian","noise":1}}`,
		"too deep":         deep(maxDepth),
		"much too deep":    deep(50_000),
	} {
		if e, err := Unmarshal([]byte(data)); err == nil {
			t.Errorf("%s: read %#v, want an error", name, e)
		} else if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrRange) {
			t.Errorf("%s: error %v is neither ErrFormat nor ErrRange", name, err)
		}
	}
}

func TestReleaseRefusesAndKeepsItsValue(t *testing.T) {
	good := `{"unit":"example","relation":"add-remove","claim":"proved","trust":"` + string(TrustLocal) + `","what":{"kind":"gaussian","noise":1}}`
	var r Release
	if err := json.Unmarshal([]byte(good), &r); err != nil {
		t.Fatal(err)
	}
	before := r
	for name, change := range map[string][2]string{
		"unknown unit":     {`"example"`, `"household"`},
		"unknown relation": {`"add-remove"`, `"swap"`},
		"unknown claim":    {`"proved"`, `"promised"`},
		"unknown trust":    {string(TrustLocal), "me"},
		"missing claim":    {`"claim":"proved",`, ``},
		"unknown key":      {`"claim":`, `"epsilon":1,"claim":`},
		"bad event":        {`"noise":1`, `"noise":-1`},
	} {
		data := strings.Replace(good, change[0], change[1], 1)
		if err := json.Unmarshal([]byte(data), &r); err == nil {
			t.Errorf("%s: read %#v", name, r)
		}
		if !reflect.DeepEqual(r, before) {
			t.Errorf("%s: the refused release changed its receiver", name)
		}
	}
}

func TestMarshalRefusesWhatValidateRefuses(t *testing.T) {
	for _, e := range []Event{
		nil, Gaussian{math.NaN()}, Gaussian{math.Inf(1)}, Laplace{0}, Composed{}, Composed{[]Event{nil}},
		Repeated{1, nil}, DiscreteGaussian{1, 0}, MetricLaplace{0, 1, 1, 0, 0}, MetricLaplace{1, 1, 1, -1, 0}, MetricLaplace{1, 1, 1, math.NaN(), 0},
		MetricLaplace{1, 1, 1, 0, -1}, MetricLaplace{1, 1, 1, 0, math.NaN()}, MetricLaplace{1, 1, 1, 0, math.Inf(1)}, Selection{"best", 1},
		NodeGaussian{10, 11, 1, 1, Theorem}, NodeGaussian{1 << 40, 1 << 30, 1 << 30, 1, Theorem}, Tuning{Distribution: "geometric", Of: Gaussian{1}},
		Sampled{Sampling: FullBatch, Rate: 0.5, Of: Gaussian{1}},
	} {
		if data, err := Marshal(e); !errors.Is(err, ErrRange) {
			t.Errorf("%#v: wrote %s, %v", e, data, err)
		}
	}
}

// TestSwitchIsTheLossBetweenAnyTwoDataSets works it out by hand, and holds it against
// the density itself on a line: centres at the far ends of two hypotheses' reach.
func TestSwitchIsTheLossBetweenAnyTwoDataSets(t *testing.T) {
	e := MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.3, Slack: 0.01, Spread: 12}
	if got, want := e.Switch(), 2/(5*0.3)*(0.6+12)+0.01; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	tiny := MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 1e-6, Spread: 1000}
	if tiny.Leak() != 0.4 || tiny.Switch() < 1e8 {
		t.Errorf("at the radius %v, at a switch %v", tiny.Leak(), tiny.Switch())
	}
	one := MetricLaplace{Dimension: 1, NoiseMultiplier: 0.5, Radius: 0.25, Spread: 3}
	density := func(x, centre float64) float64 { return -one.Epsilon() * math.Abs(x-centre) }
	worst := 0.0
	for x := -10.0; x <= 10; x += 0.125 {
		worst = max(worst, density(x, -0.25)-density(x, 3.25))
	}
	if math.Abs(worst-one.Switch()) > 1e-9 {
		t.Errorf("the densities differ by %v, Switch says %v", worst, one.Switch())
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"kind":"gaussian","noise":1.5}`))
	f.Add([]byte(`{"kind":"repeated","times":3,"of":{"kind":"sampled","sampling":"shuffle","batch":5,"examples":9,"of":{"kind":"laplace","scale":2}}}`))
	f.Add([]byte(`{"kind":"tuning","distribution":"tnb","eta":-0.5,"mean":5,"of":{"kind":"composed","parts":[{"kind":"selection","mechanism":"noisy-max","epsilon":1}]}}`))
	f.Add([]byte(`{"kind":"node-gaussian","nodes":9,"occurrences":3,"batch":2,"noise":1,"formula":"theorem"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Unmarshal(data)
		if err != nil {
			return
		}
		again, err := Marshal(e)
		if err != nil {
			t.Fatalf("read %s but cannot write it: %v", data, err)
		}
		if back, err := Unmarshal(again); err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%s read as %#v, written as %s, read again as %#v, %v", data, e, again, back, err)
		}
	})
}

// Unmarshal reads one event, as strictly as Release.UnmarshalJSON does.
func Unmarshal(data []byte) (Event, error) {
	e, err := unmarshal(data, 0)
	if err != nil {
		return nil, err
	}
	return e, Validate(e)
}
