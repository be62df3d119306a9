package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
	"github.com/coterie-fl/coterie/sim"
)

func number(v float64) *event.Number { n := event.Number(v); return &n }

// centrally is a made-up private run on one data set: 59 rounds of 20 steps. Gradients
// grow while the clip of the rule falls.
func centrally(rule string) sim.Result {
	random := rand.New(rand.NewPCG(3, 3))
	var r sim.Result
	r.Command, r.Config = "coterie run run.yaml", fmt.Sprintf("name: mnist-private\nseed: 1\ndata:\n  kind: mnist\nalgorithm:\n  kind: fedavg\nprivacy:\n  protects: example\n  epsilon: 3\n  clipping: {rule: %s}\n", rule)
	r.RunID, r.Name, r.Algorithm, r.Mode, r.Dataset, r.Judge, r.Seed = "20261116-mnist", "mnist-"+rule, "central", "sound", "mnist", "test", 1
	r.Rounds, r.BestRound, r.Returned, r.Stopped, r.Clients, r.Hypotheses, r.Parameters = 59, 58, "last", sim.StoppedRounds, 1, 1, 551322
	p := &r.Privacy
	p.Protects, p.Claim, p.Unit, p.Relation, p.Trust = "example", event.ClaimProved, event.UnitExample, event.AddRemove, event.TrustHolder
	p.Epsilon, p.MaxEpsilon, p.MedianEpsilon, p.Delta, p.Sampling = 2.9996, 2.9996, 2.9996, 1e-5, "poisson"
	clip, step := 0.1, 0.5
	r.History.Stride = 1
	for t := 1; t <= r.Rounds; t++ {
		share := float64(t) / float64(r.Rounds)
		record := sim.RoundRecord{Round: t, Loss: event.Number(0.2 + 2*math.Exp(-6*share)), Epsilon: number(2.9996 * math.Sqrt(share))}
		record.Error = number(0.06 + 0.8*math.Exp(-8*share) + 0.004*random.Float64())
		s := &sim.StepsRecord{Made: 20 * t, Clip: event.Number(clip), Step: event.Number(step), Clipped: number(0.95 - 0.6*share), Norms: make([]int, sim.NormBins)}
		for range 2000 {
			at := 2*(12+(math.Log10(2)+0.4*random.NormFloat64()-1.2*share-0.5*random.ExpFloat64()*share)) + 0
			s.Norms[min(sim.NormBins-1, max(0, int(at)))]++
		}
		if rule == "online" {
			s.ClipUp, s.StepUp = number(math.Round(20*(0.4+0.1*random.Float64()))/20), number(math.Round(20*(0.75-0.5*share+0.1*random.Float64()))/20)
			s.ClipAgree, s.StepAgree = number(0.5+0.1*random.Float64()), number(0.9-0.3*share+0.05*random.Float64())
			clip *= math.Exp(0.05 * (2*float64(*s.ClipUp) - 1))
			step *= math.Exp(0.05 * (2*float64(*s.StepUp) - 1))
		}
		record.Steps = s
		r.History.Rounds = append(r.History.Rounds, record)
	}
	last := r.History.Rounds[r.Rounds-1]
	r.Metrics.Loss, r.Metrics.Error, r.Steps = last.Loss, last.Error, last.Steps
	r.Metrics.Accuracy = &metrics.Figure{Value: 1 - *last.Error}
	r.Participants = []sim.Line{{Name: "all", Examples: 60000, Target: sim.Target{Epsilon: 3, Delta: 1e-5, RecordsPerPerson: 1}, Noise: 0.8, Batch: 512, Steps: 20,
		Epsilon: 2.9996, Delta: 1e-5, Claim: p.Claim, Unit: p.Unit, Relation: string(p.Relation), Trust: p.Trust, Sampling: "poisson", Comparable: true}}
	return r
}

// TestCourseOfPrivateSteps: what happened on the way is drawn over steps, epsilons have
// their terms, and what no guarantee covers says so.
func TestCourseOfPrivateSteps(t *testing.T) {
	page := render(t, "MNIST", centrally("online"))
	for _, f := range layouttest.Faults(page) {
		t.Error(f)
	}
	section := courseSection(t, page)
	for _, want := range []string{
		`id="course-learnt-1-t"`, `id="course-epsilon-1-t"`, `id="course-clip-1-t"`, `id="course-step-1-t"`,
		`id="course-clipped-1-t"`, `id="course-up-1-t"`, `id="course-agree-1-t"`, `id="norms-1-t"`,
		"From 0 at step 0 to 3 at step 1180.", "Epsilon spent <small>proved, unit example, relation add-remove, delta 1×10⁻⁵</small>", "target 3",
		"Test accuracy", "From 0.24 at step 20 to 0.936 at step 1180.", "Clip: from 0.1 at step 20",
		"Shortened examples <small class=\"unseen\">simulation only</small>", "Norms of gradients <small class=\"unseen\">simulation only</small>", "Moves that agree <small class=\"unseen\">simulation only</small>",
		"no guarantee covers these, and whoever may not see the examples may not see them", "a coin", "first: clip 0.1", "last: clip 0.0771", "Round 30, the middle: most gradients", "Round 59, the last:",
		">step</text>", "largest norm of an example’s gradient (log scale)",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("the section does not contain %q", want)
		}
	}
	if strings.Contains(section, "stayed at") || strings.Contains(section, ">round</text>") {
		t.Error("a clip that moved is said to stay, or steps are called rounds")
	}
}

func courseSection(t *testing.T, page string) string {
	t.Helper()
	_, after, found := strings.Cut(page, `<section id="course"`)
	section, _, _ := strings.Cut(after, "</section>")
	if !found || !strings.Contains(page, `<a href="#course">`) {
		t.Fatal("the report does not say how training went")
	}
	return section
}

// TestCourseTellsOnlyWhatIsKnown: constants are told in words, what a rule does not learn
// has no panel, the quantile's aim is drawn in, and a run whose steps are not counted has
// its epsilon over rounds.
func TestCourseTellsOnlyWhatIsKnown(t *testing.T) {
	fixed := courseSection(t, render(t, "fixed", centrally("fixed")))
	if !strings.Contains(fixed, "The clip stayed at 0.1 and the step size stayed at 0.5.") || strings.Count(fixed, ">clip 0.1</text>") != 1 {
		t.Error("a fixed clip is not told, or not marked once")
	}
	if n := strings.Count(fixed, "<li>"); n != 4 || strings.Contains(fixed, "</svg>step size</li>") {
		t.Errorf("%d lines of a legend: wanted are the clip and three rounds", n)
	}
	for _, absent := range []string{`id="course-clip-`, `id="course-step-`, `id="course-up-`, `id="course-agree-`, ">aim<"} {
		if strings.Contains(fixed, absent) {
			t.Errorf("a fixed clip has %s", absent)
		}
	}
	for rule, height := range map[string]float64{"quantile": 0.5, "quantile, quantile: 0.8": 0.2} { // what is left above the clip
		at := chart.Coordinate(chart.PlotBottom + height*(chart.PlotTop-chart.PlotBottom))
		quantile := courseSection(t, render(t, "quantile", centrally(rule)))
		if line := fmt.Sprintf(`<line class="chance" x1="50" y1="%s" x2="346" y2="%s"/>`, at, at); !strings.Contains(quantile, ">aim<") || !strings.Contains(quantile, line) {
			t.Errorf("%s: the aim is not drawn at %v", rule, height)
		}
	}
	rounds := centrally("fixed")
	for i := range rounds.History.Rounds {
		rounds.History.Rounds[i].Steps = nil
	}
	exact := courseSection(t, render(t, "exact", rounds)) // steps are known, but nobody watched them
	if !strings.Contains(exact, `id="course-learnt-1-t"`) || !strings.Contains(exact, "From 0 at step 0 to 3 at step 1180.") || strings.Contains(exact, "simulation only") {
		t.Error("central training that nobody watched is not drawn over its steps, or with more than is known")
	}
	rounds.Algorithm = "mr-mtl"
	section := courseSection(t, render(t, "rounds", rounds))
	for _, absent := range []string{"simulation only", "course-learnt", "norms-", `class="legend"`} {
		if strings.Contains(section, absent) {
			t.Errorf("a run without private steps has %s", absent)
		}
	}
	if !strings.Contains(section, "From 0 at round 0 to 3 at round 59.") {
		t.Error("epsilon is not drawn over rounds")
	}
	if page := render(t, "papers", paperRuns()...); strings.Contains(page, `id="course"`) {
		t.Error("runs whose epsilon has a figure of its own have a second one")
	}
}

// TestEveryFigureHasItsPlace: no figure of a record stands for another, on the page and on
// a terminal.
func TestEveryFigureHasItsPlace(t *testing.T) {
	r := centrally("online")
	r.History.Rounds = r.History.Rounds[:2]
	for i := range r.History.Rounds {
		more := 0.01 * float64(i)
		r.History.Rounds[i].Steps = &sim.StepsRecord{Made: 10 * (i + 1), Clip: event.Number(0.11 + more), Step: event.Number(0.21 + more), Clipped: number(0.31 + more),
			ClipUp: number(0.41 + more), StepUp: number(0.51 + more), ClipAgree: number(0.61 + more), StepAgree: number(0.71 + more)}
	}
	page := courseSection(t, render(t, "figures", r))
	for panel, want := range map[string]string{
		"course-clip": "Clip: from 0.11 at step 10 to 0.12 at step 20.", "course-step": "Step size: from 0.21 at step 10 to 0.22 at step 20.", "course-clipped": "Clip: from 0.31 at step 10 to 0.32 at step 20.",
		"course-up":    "Clip: from 0.41 at step 10 to 0.42 at step 20. Step size: from 0.51 at step 10 to 0.52 at step 20.",
		"course-agree": "Clip: from 0.61 at step 10 to 0.62 at step 20. Step size: from 0.71 at step 10 to 0.72 at step 20.",
	} {
		if want = fmt.Sprintf(`<desc id="%s-1-d">%s</desc>`, panel, want); !strings.Contains(page, want) {
			t.Errorf("the section does not contain %q", want)
		}
	}
	var b strings.Builder
	if err := Course(&b, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if got := strings.Join(strings.Fields(lines[3]), " "); !strings.Contains(got, " 0.1200 0.2200 32.0 % 42.0 % 62.0 % 52.0 % 72.0 % ") {
		t.Errorf("%s\n%s", lines[1], got)
	}
}

// TestCoursesSideBySide have one row a run, and common axes.
func TestCoursesSideBySide(t *testing.T) {
	page := render(t, "rules", centrally("online"), centrally("fixed"), made(paperShape("fedavg")))
	for _, f := range layouttest.Faults(page) {
		t.Error(f)
	}
	if n := strings.Count(courseSection(t, page), "<figure"); n != 2 {
		t.Errorf("%d rows of 2", n)
	}
	long, rounds := centrally("online"), centrally("fixed")
	for i := range long.History.Rounds {
		long.History.Rounds[i].Steps.Made *= 2
		rounds.History.Rounds[i].Steps = nil
	}
	rounds.Algorithm = "mr-mtl"
	end := func(axis string, results ...sim.Result) int {
		return strings.Count(courseSection(t, render(t, "axes", results...)), ">"+axis+"</text>")
	}
	// The last tick of 2360 steps is 2000, on every axis of the two runs if they share it;
	// 59 rounds are no steps and end at 50.
	if alone, both := end("2000", long), end("2000", long, centrally("fixed")); alone != 7 || both != 10 {
		t.Errorf("%d panels of one run end at 2000, %d of both", alone, both)
	}
	if mixed := end("50", long, rounds); mixed != 1 {
		t.Errorf("%d panels over 59 rounds end at 50", mixed)
	}
}

// TestNormsAreDrawnToScale: of a hundred examples in two bins, 25 and 75 high, with the
// clip where it is.
func TestNormsAreDrawnToScale(t *testing.T) {
	r := centrally("fixed")
	r.History.Rounds = r.History.Rounds[:1]
	s := r.History.Rounds[0].Steps
	s.Norms = make([]int, sim.NormBins)
	s.Norms[24], s.Norms[25], s.Clip = 25, 75, event.Number(sim.NormEdge(25)) // from 1 to 10
	p, ok := normsPanel("x", runsOf([]sim.Result{r})[0])
	const top = chart.PlotTop + 46.0
	ground, quarter := chart.Coordinate(chart.PlotBottom), chart.Coordinate(chart.PlotBottom+(top-chart.PlotBottom)/3)
	middle := chart.Coordinate((chart.PlotLeft + chart.PlotRight) / 2)
	edge := fmt.Sprintf(`d="M50 %sV%sH%sV%sH346V%s"`, ground, quarter, middle, chart.Coordinate(top), ground)
	clip := fmt.Sprintf(`<line class="clip-at" x1="%s"`, middle)
	if page := string(p.Chart); !ok || !strings.Contains(page, edge) || !strings.Contains(page, clip) {
		t.Errorf("no %s or no %s in %s", edge, clip, page)
	}
}

// TestDamagedCourses: a result that was changed by hand is drawn as far as it can be.
func TestDamagedCourses(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 1e-300, 5e-324, 0, -1, 7}
	for range 12 {
		r := centrally("online")
		r.History.Rounds = r.History.Rounds[:1+random.IntN(6)]
		for i := range r.History.Rounds {
			c := &r.History.Rounds[i]
			for _, n := range []*event.Number{&c.Steps.Clip, &c.Steps.Step, c.Steps.Clipped, c.Steps.ClipUp, c.Steps.StepAgree, c.Epsilon, c.Error, &c.Loss} {
				if random.IntN(3) == 0 {
					*n = event.Number(odd[random.IntN(len(odd))])
				}
			}
			switch random.IntN(5) {
			case 0:
				c.Steps.Norms = c.Steps.Norms[:random.IntN(sim.NormBins)]
			case 1:
				c.Steps.Norms = append(c.Steps.Norms, 5, 6)
			case 2:
				c.Steps.Norms[random.IntN(sim.NormBins)] = -9000000
			case 3:
				c.Steps, c.Epsilon = nil, nil
				continue
			}
			if random.IntN(3) == 0 {
				c.Steps.Made = random.IntN(50) - 20
			}
		}
		for _, f := range layouttest.Faults(render(t, "damaged", r, centrally("fixed"))) {
			t.Error(f)
		}
	}
}

// TestCourseOnATerminal: a few rounds from the first to the last, every epsilon with its
// terms; runs whose clip stays and that are not central print nothing.
func TestCourseOnATerminal(t *testing.T) {
	printed := func(r sim.Result) string {
		var b strings.Builder
		if err := Course(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	online := centrally("online")
	online.History.Rounds[23].Epsilon = nil // not told
	lines := strings.Split(strings.TrimSpace(printed(online)), "\n")
	if len(lines) != 8 {
		t.Fatalf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, want := range map[int][]string{
		0: {"step  test accuracy", "clip rose", "eps so far  claim"},
		1: {"  20 ", "24.0 %", "0.1000", "0.5000", "94.0 %", "0.39  proved  example  add-remove"},
		6: {"1180 ", "93.6 %", "35.0 %", "3.00  proved  example  add-remove"},
		7: {"shortened and agree: in simulation only, no guarantee covers it"},
	} {
		for _, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %d has no %q: %s", i, w, lines[i])
			}
		}
	}
	if fixed := printed(centrally("fixed")); strings.Contains(fixed, "rose") || strings.Contains(fixed, "agree") {
		t.Errorf("a fixed clip moves:\n%s", fixed)
	}
	silos := centrally("fixed")
	silos.Algorithm = "mr-mtl"
	values := centrally("online")
	values.Metrics.Error, values.Metrics.Accuracy = nil, nil
	for i := range values.History.Rounds {
		values.History.Rounds[i].Error, values.History.Rounds[i].Epsilon = nil, nil
	}
	if text := printed(values); !strings.Contains(text, "test loss") || strings.Contains(text, "eps") {
		t.Errorf("of values without an epsilon:\n%s", text)
	}
	if text := printed(silos) + printed(made(paperShape("fedavg"))) + printed(sim.Result{}); text != "" {
		t.Errorf("printed:\n%s", text)
	}
}

// TestWordsOfClipRules: every rule and arm reads differently, and names what it starts at.
func TestWordsOfClipRules(t *testing.T) {
	seen := map[string]string{}
	for _, rule := range []string{"{}", "{rule: quantile}", "{rule: quantile, quantile: 0.8}", "{rule: online}", "{rule: online, learn: clip}", "{rule: online, learn: step}",
		"{rule: online, learn: nothing}", "{rule: online, learn: random}", "{rule: online, gradient_noise: 1.02}", "{rule: adam-wosm}", "{rule: fixed, decay: 0.001}"} {
		for _, protects := range []string{"example", "client"} {
			r := centrally("fixed")
			r.Config = fmt.Sprintf("algorithm: {kind: fedavg, local: {step: 0.25}}\nprivacy:\n  protects: %s\n  clip: 0.7\n  update_clip: 0.9\n  clipping: %s\n", protects, rule)
			got := runsOf([]sim.Result{r})[0].trainingStory()
			if other, ok := seen[got]; ok {
				t.Errorf("%s %s reads as %s:\n%s", protects, rule, other, got)
			}
			seen[got] = protects + " " + rule
			if want := map[string]string{"example": "0.7", "client": "0.9"}[protects]; !strings.Contains(got, " "+want) || strings.Contains(got, "..") || strings.Contains(got, "  ") {
				t.Errorf("%s %s: %s", protects, rule, got)
			}
		}
	}
	r := centrally("fixed")
	r.Config = "algorithm: {kind: fedavg, local: {step: 0.25, steps: 20, batch: 512, step_decay: 0.01}}\nprivacy: {protects: example, clip: 1}\n"
	if got := runsOf([]sim.Result{r})[0].trainingStory(); !strings.HasPrefix(got, "In every round the model trains for 20 steps with step 0.25 on batches of 512 rows. Every example’s gradient is clipped to 1. The step size is multiplied by exp(−0.01) after every step") {
		t.Error(got)
	}
}

// TestCourseOfARealRun: what the simulator writes is what the report draws.
func TestCourseOfARealRun(t *testing.T) {
	file := "data: {kind: synthetic, test_share: 0.3}\nalgorithm: {kind: central, rounds: 6, local: {steps: 5, batch: 64}}\nprivacy: {protects: example, epsilon: 3, delta: 0.001, clip: 0.5, clipping: {rule: online}}\njudge: {by: test}\n"
	run, err := config.Resolve([]byte(file), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/run"
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.CreateDirectory(dir, text)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := sim.New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := Run(t.Context(), d, s, "test", func(sim.Moment) {})
	if err != nil {
		t.Fatal(err)
	}
	if res.Steps == nil || res.Steps.Made != 30 || res.Steps.ClipUp == nil || res.Steps.ClipAgree == nil || res.Steps.Clipped == nil {
		t.Fatalf("the last steps are %+v", res.Steps)
	}
	if res.Privacy.Assumes != nil {
		t.Errorf("one data set assumes %q", res.Privacy.Assumes)
	}
	if again, err := Load(dir); err != nil || !reflect.DeepEqual(again.History.Rounds, res.History.Rounds) {
		t.Errorf("result.json holds other rounds: %v", err)
	}
	page, err := os.ReadFile(d.File(sim.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	section := courseSection(t, string(page))
	for _, want := range []string{`id="course-learnt-1-t"`, `id="course-epsilon-1-t"`, `id="course-clip-1-t"`, `id="course-step-1-t"`, `id="course-clipped-1-t"`,
		`id="course-up-1-t"`, `id="course-agree-1-t"`, `id="norms-1-t"`, "at step 30."} {
		if !strings.Contains(section, want) {
			t.Errorf("the section does not contain %q", want)
		}
	}
}

// TestCentralRunsHaveNoClients to speak of.
func TestCentralRunsHaveNoClients(t *testing.T) {
	page := render(t, "MNIST", centrally("online"))
	for _, want := range []string{"Central training on one data set; the model has 551,322 parameters", "All examples were trained on together", "the model on the examples that were held out"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, absent := range []string{"1 client", "One client", "most exposed client", "Median epsilon", ">Clients<", "everybody’s"} {
		if strings.Contains(page, absent) {
			t.Errorf("the report says %q", absent)
		}
	}
	var b strings.Builder
	if err := Table(&b, []sim.Summary{centrally("online").Summary}); err != nil || strings.Contains(b.String(), "clients") || strings.Contains(b.String(), "median") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}
