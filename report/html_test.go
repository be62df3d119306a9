package report

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
	"github.com/coterie-fl/coterie/sim"
)

func render(t *testing.T, title string, results ...sim.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, title, results); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportOfThePapersMethods(t *testing.T) {
	results := paperRuns()
	page := render(t, "Demo", results...)
	for _, f := range layouttest.Faults(page) {
		t.Error(f)
	}
	for _, want := range []string{
		"Content-Security-Policy", "default-src 'none'", "<h1>Demo</h1>", "This is a simulation.",
		"FedAvg", "IFCA", "Group-private", `id="early-3"`, `id="late-3"`, `id="loss-3"`, `id="leakage-3"`, `id="budgets-3"`,
		"prefers-color-scheme: dark", "@media print", "epsilon at the radius",
	} {
		// Charts carry their name in the ids of title and description.
		want = strings.Replace(want, `-3"`, `-3-t"`, 1)
		if !strings.Contains(page, want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
	for _, r := range results {
		for _, want := range append([]string{r.Command, r.Config, r.ModelSHA256, r.ConfigSHA256, r.Kernel, r.Version}, r.Privacy.NotCovered...) {
			if !strings.Contains(page, html.EscapeString(want)) {
				t.Errorf("%s: the report does not contain %q", r.Name, want)
			}
		}
	}
	if n := strings.Count(page, `class="label"`); n != 3 {
		t.Errorf("%d privacy labels, want 3", n)
	}
	if n := strings.Count(page, `class="badge `); n != 6 {
		t.Errorf("%d badges, want one for every method in the table and in figure 1", n)
	}
}

// Every claim has its word, its own shape and its own sentence.
func TestClaimsCannotBeMistaken(t *testing.T) {
	icons, sentences := map[string]event.Claim{}, map[string]event.Claim{}
	for _, c := range []event.Claim{event.ClaimNone, event.ClaimHeuristic, event.ClaimMetric, event.ClaimProved} {
		r := made(paperShape("group-private"))
		r.Privacy.Claim = c
		got := layout.ClaimOf(r.Privacy.Statement)
		if other, ok := icons[string(got.Icon)]; ok {
			t.Errorf("%s has the shape of %s", c, other)
		}
		if other, ok := sentences[got.Sentence]; ok {
			t.Errorf("%s has the sentence of %s", c, other)
		}
		icons[string(got.Icon)], sentences[got.Sentence] = c, c
		page := render(t, "claims", r)
		for _, want := range []string{
			fmt.Sprintf(`<small>Claim</small> %s</span>`, c), got.Sentence, fmt.Sprintf(`class="badge %s"`, c),
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the report does not contain %q", c, want)
			}
		}
	}
	r := made(paperShape("group-private"))
	r.Privacy.Claim = "certified"
	if got := layout.ClaimOf(r.Privacy.Statement); got.Word != "certified" || !strings.Contains(got.Sentence, "Treat it as none") {
		t.Errorf("an unknown claim reads %q, %q", got.Word, got.Sentence)
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	const evil = "<script>alert('x')</script>\"><img src=x onerror=\"y\"> \x00\x1b\xff --> ]]> ${x} https://example.org"
	r := made(paperShape("group-private"))
	r.Name, r.Algorithm, r.Command, r.RunID, r.Kernel, r.Version = evil, evil, evil, evil, evil, evil
	r.ModelSHA256, r.ConfigSHA256, r.Stopped, r.Config = evil, evil, evil, evil
	r.Privacy.Claim, r.Privacy.Unit, r.Privacy.Relation, r.Privacy.Trust = evil, evil, evil, evil
	r.Privacy.Sampling, r.Privacy.NotCovered = evil, []string{evil}
	page := render(t, evil, r, r)
	for _, bad := range []string{"<script", "<img"} {
		if strings.Contains(page, bad) {
			t.Errorf("the report contains %q", bad)
		}
	}
	for _, f := range layouttest.SVGFaults(page) {
		t.Error(f)
	}
}

func TestChartTextIsEscaped(t *testing.T) {
	var c chart.Canvas
	c.Text("tick", "end", 1, 1, "<a href=\"x\">&\x00")
	page := string(c.SVG("id", "<title>", "<desc>"))
	if err := layouttest.CheckSVG(page); err != nil || strings.Contains(page, "<a") {
		t.Errorf("%v in %s", err, page)
	}
}

func TestSameResultsGiveSameBytes(t *testing.T) {
	results := append(paperRuns(), made(shape{algorithm: "group-private", mode: "sound", hypotheses: 9, parameters: 4, rounds: 30, clients: 50, scale: 1, noise: 2}))
	first := render(t, "Demo", results...)
	for range 6 {
		if render(t, "Demo", results...) != first {
			t.Fatal("the same results gave another report")
		}
	}
}

func TestEdgeCases(t *testing.T) {
	base := paperShape("group-private")
	with := func(change func(*shape)) []sim.Result {
		s := base
		change(&s)
		return []sim.Result{made(s)}
	}
	cases := map[string][]sim.Result{
		"nothing at all":      {{}},
		"one parameter":       with(func(s *shape) { s.parameters = 1 }),
		"many parameters":     with(func(s *shape) { s.parameters = 11 }),
		"one hypothesis":      with(func(s *shape) { s.hypotheses = 1 }),
		"ten hypotheses":      with(func(s *shape) { s.hypotheses = 10 }),
		"sixty hypotheses":    with(func(s *shape) { s.hypotheses = 60 }),
		"one round":           with(func(s *shape) { s.rounds = 1 }),
		"4096 rounds":         with(func(s *shape) { s.rounds = 4096 }),
		"one client":          with(func(s *shape) { s.clients, s.hypotheses = 1, 1 }),
		"10,000 clients":      with(func(s *shape) { s.clients = 10000 }),
		"no truth":            with(func(s *shape) { s.truth = false }),
		"no noise":            with(func(s *shape) { s.noise = 0 }),
		"tiny":                with(func(s *shape) { s.scale = 1e-9 }),
		"large":               with(func(s *shape) { s.scale = 1e6 }),
		"much noise":          with(func(s *shape) { s.noise = 1e9 }),
		"little noise":        with(func(s *shape) { s.noise = 1e-9 }),
		"ceiling":             with(func(s *shape) { s.ceiling = 1.2 }),
		"sound":               with(func(s *shape) { s.mode = "sound" }),
		"different scales":    append(with(func(s *shape) { s.scale = 1e-9 }), with(func(s *shape) { s.scale = 1e6 })...),
		"different lengths":   append(with(func(s *shape) { s.rounds = 2 }), with(func(s *shape) { s.rounds = 2000 })...),
		"different sizes":     append(with(func(s *shape) { s.parameters = 1 }), with(func(s *shape) { s.hypotheses = 7 })...),
		"six of one name":     append(append(with(func(*shape) {}), with(func(*shape) {})...), append(paperRuns(), made(base))...),
		"unreadable run file": func() []sim.Result { r := with(func(*shape) {}); r[0].Config = "a: [b"; return r }(),
	}
	for name, results := range cases {
		t.Run(name, func(t *testing.T) {
			page := render(t, name, results...)
			for _, f := range layouttest.Faults(page) {
				t.Error(f)
			}
			if len(page) > 1<<20 {
				t.Errorf("the report has %d bytes", len(page))
			}
			seen := map[string]bool{}
			for _, r := range runsOf(results) {
				if seen[r.label] {
					t.Errorf("two methods are called %q", r.label)
				}
				seen[r.label] = true
			}
		})
	}
}

// Damaged results must not stop the report nor spoil it.
func TestDamagedResults(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1e300, -1e300, 1e-300, 0, -1, 1e-9, 1e6}
	pick := func(v float64) float64 {
		if random.IntN(4) == 0 {
			return odd[random.IntN(len(odd))]
		}
		return v
	}
	for range 30 {
		r := made(shape{algorithm: "group-private", mode: "paper", hypotheses: 1 + random.IntN(4), parameters: 1 + random.IntN(3),
			rounds: 1 + random.IntN(12), clients: 1 + random.IntN(20), scale: 1, noise: 5, truth: true, ceiling: 1})
		h := &r.History
		for _, vectors := range [][][]float64{h.Start, h.Returned, h.Truth} {
			for j := range vectors {
				for i := range vectors[j] {
					vectors[j][i] = pick(vectors[j][i])
				}
				vectors[j] = vectors[j][:random.IntN(len(vectors[j])+1)]
			}
		}
		for i := range h.Early {
			h.Early[i].At[0], h.Early[i].Cluster = pick(h.Early[i].At[0]), random.IntN(9)-4
		}
		for i := range h.Rounds {
			h.Rounds[i].Loss = event.Number(pick(float64(h.Rounds[i].Loss)))
			h.Rounds[i].MaxLeakage[0] = event.Number(pick(1))
			h.Rounds[i].Hypotheses = h.Rounds[i].Hypotheses[:random.IntN(len(h.Rounds[i].Hypotheses)+1)]
			h.Rounds[i].Round = random.IntN(20) - 3
		}
		for i := range h.Budgets {
			h.Budgets[i] = event.Number(pick(float64(h.Budgets[i])))
		}
		for _, n := range []*event.Number{&r.Privacy.MaxEpsilon, &r.Privacy.MedianEpsilon, r.Privacy.EpsilonPerRelease,
			&r.Privacy.Delta, r.Privacy.Ceiling, &r.Metrics.Loss} {
			*n = event.Number(pick(float64(*n)))
		}
		for _, f := range layouttest.Faults(render(t, "damaged", r)) {
			t.Error(f)
		}
	}
}

func TestNoResults(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, "x", nil); err == nil || b.Len() > 0 {
		t.Errorf("HTML without results: error %v, %d bytes written", err, b.Len())
	}
}

func TestWriterFails(t *testing.T) {
	if err := HTML(layouttest.BrokenWriter{}, "x", paperRuns()); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("HTML on a broken writer: %v", err)
	}
}

func TestWhatIsSaid(t *testing.T) {
	s := paperShape("group-private")
	s.parameters, s.ceiling = 11, 8
	page := render(t, "said", made(s))
	for _, want := range []string{
		"3 of 100 clients declined at least once (7 requests)",
		"epsilon 8 a client",
		"the best by validation",
		"not public",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(page, "Released in") || strings.Contains(page, "released, cluster") {
		t.Error("vectors of 11 parameters are drawn in a plane")
	}
	s = paperShape("ifca")
	s.parameters, s.truth = 1, false
	page = render(t, "said", made(s))
	for _, want := range []string{"There is one parameter", "unlimited", "Without noise the leakage is unlimited"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	exact := made(paperShape("group-private"))
	exact.Config += "privacy:\n  noise: exact\n"
	if page := render(t, "said", exact); !strings.Contains(page, "cannot be repeated") || strings.Contains(page, "to the last bit") {
		t.Error("the report promises the same models although the noise cannot be repeated")
	}
	if page := render(t, "said", exact, made(paperShape("ifca"))); !strings.Contains(page, "Except Group-private: exact noise") {
		t.Error("the report does not say which run cannot be repeated")
	}
	if strings.Contains(page, "Worst distance") || strings.Contains(page, "true parameters of a group") {
		t.Error("the report speaks of a truth that is not known")
	}
}
