package panel

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout/layouttest"
)

// flags are pairs of name and value.
func flags(text string) (out [][2]string) {
	words := strings.Fields(text)
	for i := 0; i+1 < len(words); i += 2 {
		out = append(out, [2]string{words[i], words[i+1]})
	}
	return out
}

const silos = "silo,examples,batch,epochs,epsilon,delta\nyours,1000,64,10,2,1e-5\nnorth,872,64,10,0.5,1e-7\n"

func shownFor(t *testing.T, p *Panel, q Question) Shown {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return p.Ask(text)
}

// Every kind of question gets an answer and curves that are well-formed, lie in their frames
// and go through the answer.
func TestAnswersAndCurves(t *testing.T) {
	for name, c := range map[string]struct {
		q      Question
		says   []string
		curves int
	}{
		"epsilon":  {Question{Command: "dpsgd", Flags: flags("noise 1.1 rate 0.01 steps 1000 delta 1e-5 accountant rdp")}, []string{"epsilon = 1.71172", "1.712", "--steps 1000"}, 3},
		"noise":    {Question{Command: "calibrate", Flags: flags("epsilon 3 rate 0.01 steps 1000 delta 1e-5 accountant rdp")}, []string{"Noise S, at least"}, 3},
		"steps":    {Question{Command: "calibrate", Flags: flags("epsilon 3 rate 0.01 noise 1 delta 1e-5 accountant rdp unit client")}, []string{"Steps, at most", "Every client"}, 3},
		"no step":  {Question{Command: "calibrate", Flags: flags("epsilon 0.01 rate 0.5 noise 1 delta 1e-5 accountant rdp")}, []string{"steps 0"}, 0},
		"rate":     {Question{Command: "calibrate", Flags: flags("epsilon 3 steps 1000 noise 1 delta 1e-5 accountant rdp")}, []string{"Rate, at most"}, 3},
		"metric":   {Question{Command: "metric", Flags: flags("dimension 2 noise-multiplier 5 releases 6 radius 0.5 distance 1")}, []string{"epsilon = 2.4", "Epsilon at the distance", "4.8"}, 3},
		"no place": {Question{Command: "metric", Flags: flags("dimension 2 noise-multiplier 5 releases 6")}, []string{"epsilon = 2.4"}, 2},
		"tuning":   {Question{Command: "tuning", Flags: flags("noise 5 delta 1e-5 mean-trials 10 eta 0 accountant rdp")}, []string{"tuning charged", "one run alone"}, 2},
		"poisson":  {Question{Command: "tuning", Flags: flags("noise 5 delta 1e-5 mean-trials 10 distribution poisson accountant rdp")}, []string{"tuning charged"}, 2},
		"naive":    {Question{Command: "tuning", Flags: flags("noise 5 delta 1e-5 distribution naive trials 4 accountant rdp")}, []string{"tuning charged"}, 2},
		"silo":     {Question{Command: "silo", Flags: flags("accountant rdp"), File: silos}, []string{"north", "yours,1000", "silo --accountant rdp silos.csv"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var p Panel
			shown := shownFor(t, &p, c.q)
			if shown.Error != "" {
				t.Fatal(shown.Error)
			}
			for _, want := range c.says {
				if !strings.Contains(shown.HTML, want) {
					t.Errorf("no %q in %s", want, shown.HTML)
				}
			}
			if faults := layouttest.Faults(shown.HTML); len(faults) > 0 {
				t.Error(faults)
			}
			drawn := 0
			for {
				piece, more := p.More()
				if !more {
					break
				}
				if piece.Place == "" {
					continue
				}
				drawn++
				if piece.Place != fmt.Sprint("curve-", drawn) || !strings.Contains(piece.HTML, `class="returned"`) || strings.Contains(piece.HTML, "nothing to draw") {
					t.Errorf("piece %d: %s: %s", drawn, piece.Place, piece.HTML)
				}
				if faults := layouttest.Faults(piece.HTML); len(faults) > 0 {
					t.Error(faults)
				}
			}
			if drawn != c.curves {
				t.Errorf("%d curves, want %d", drawn, c.curves)
			}
		})
	}
}

// A curve has the accountant's own values at its points.
func TestCurveIsTheAccountants(t *testing.T) {
	var p Panel
	shownFor(t, &p, Question{Command: "calibrate", Flags: flags("epsilon 3 rate 0.01 steps 1000 delta 1e-5 accountant rdp")})
	curve := p.curves[1] // over steps
	for len(curve.xs) > 0 {
		p.curves = append(p.curves[:0], curve)
		p.More()
	}
	plan := account.Training{
		Terms: account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved}, Trust: event.TrustLocal,
		Sampling: event.Poisson, Rate: 0.01, Steps: 1000,
	}
	plan, _, err := plan.WithNoiseFor(account.MethodRDP, 3, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	if len(curve.points[0]) < 20 {
		t.Fatalf("%d points", len(curve.points[0]))
	}
	for _, at := range curve.points[0] {
		plan.Steps = int64(at.X)
		if g, err := plan.Guarantee(account.MethodRDP, 1e-5); err != nil || g.Epsilon != at.Y {
			t.Errorf("%v steps: %v on the curve, %v by the accountant (%v)", at.X, at.Y, g.Epsilon, err)
		}
	}
}

// What was solved for is told in all its digits: asked again as a flag, it costs no more.
func TestSolvedKeepsTheTarget(t *testing.T) {
	var p Panel
	shown := shownFor(t, &p, Question{Command: "calibrate", Flags: flags("epsilon 3 rate 0.01 steps 1000 delta 1e-5 accountant rdp")})
	a, err := (Question{Command: "dpsgd", Flags: flags("noise " + shown.Solved["noise"] + " rate 0.01 steps 1000 delta 1e-5 accountant rdp")}).ask()
	if err != nil || a.Cost.Epsilon > 3 || a.Cost.Epsilon < 3*(1-1e-6) {
		t.Errorf("solved %v: epsilon %v, %v", shown.Solved, a.Cost.Epsilon, err)
	}
}

func TestRefuses(t *testing.T) {
	var p Panel
	for want, q := range map[string]Question{
		`Noise = "x": want a number.`:                                   {Command: "dpsgd", Flags: flags("noise x rate 0.01 steps 10 delta 1e-5")},
		`Steps = "1.5": want a whole number.`:                           {Command: "dpsgd", Flags: flags("noise 1 rate 0.01 steps 1.5 delta 1e-5")},
		"--radius is not for this question: leave it out.":              {Command: "dpsgd", Flags: flags("noise 1 rate 0.01 steps 1 delta 1e-5 radius 1")},
		"--noise is given twice: leave one out.":                        {Command: "dpsgd", Flags: flags("noise 1 noise 2")},
		"The page cannot ask \"gaussian\"; ask coterie account itself.": {Command: "gaussian"},
		"want the columns":                                              {Command: "silo", File: "silo,examples\n"},
		"0 < delta < 1":                                                 {Command: "calibrate", Flags: flags("epsilon 1 rate 0.1 steps 5 delta 2 accountant rdp")},
	} {
		if shown := shownFor(t, &p, q); !strings.Contains(shown.Error, want) || shown.HTML != "" {
			t.Errorf("%+v: %q, want %q", q, shown.Error, want)
		}
		if _, more := p.More(); more {
			t.Errorf("%+v: curves of a question without an answer", q)
		}
	}
	if shown := p.Ask([]byte("{")); shown.Error == "" {
		t.Error("half a question was answered")
	}
}

// A name cannot leave its place, in the page or in the command line.
func TestNamesAreQuoted(t *testing.T) {
	var p Panel
	shown := shownFor(t, &p, Question{Command: "silo", Flags: flags("accountant rdp"), File: strings.Replace(silos, "north", "<b>&quot;", 1)})
	if shown.Error != "" || strings.Contains(shown.HTML, "<b>") {
		t.Errorf("%s%s", shown.Error, shown.HTML)
	}
	if line := (Question{Command: "dpsgd", Flags: [][2]string{{"noise", "1; ls 'x'"}}}).Line(); line != `coterie account dpsgd --noise '1; ls '\''x'\'''` {
		t.Error(line)
	}
}

func TestSpread(t *testing.T) {
	xs := spread(2, 8, 25)
	if len(xs) != 25 || xs[12] != 2 || math.Abs(xs[0]-0.25) > 1e-12 || math.Abs(xs[24]-16) > 1e-9 {
		t.Error(xs)
	}
	if got := within([]float64{0.2, 0.9, 1.1, 1.4, 2.6, 99}, 1, 10, true); fmt.Sprint(got) != "[1 3 10]" {
		t.Error(got)
	}
}
