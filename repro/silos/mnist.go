package silos

import (
	"cmp"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var rotatedMNIST = lab.Experiment{
	ID: "silo-rotated-mnist", Title: "Silos of rotated digits: clusters first, then personal models",
	Paper: "paper 002, figure 1.6",
	Needs: []string{"mnist"}, Quick: "2 min", Full: "4 h",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 1, lab.Full: 3},
	Launch: runRotatedMNIST,
}

// figure16 is what is run at a scale. The paper does not give epsilon, lambda or the
// masks; the authors' scripts start at epsilon 1, clip 1, step 0.1, 100 rounds.
type figure16 struct {
	silos, limit, rounds int
	masks                []float64
	epsilon, step        float64
	lambdas              []float64
	few                  bool // two methods only
}

func figure16At(l *lab.Lab) figure16 {
	switch l.Scale {
	case lab.Smoke:
		return figure16{silos: 4, limit: 50, rounds: 1, masks: []float64{0}, epsilon: 10, step: 0.3, lambdas: []float64{0.1}, few: true}
	case lab.Quick:
		return figure16{silos: 8, limit: 300, rounds: 12, masks: []float64{0}, epsilon: 10, step: 1, lambdas: []float64{0.3}}
	}
	return figure16{silos: 40, limit: 0, rounds: 50, masks: []float64{0, 0.1}, epsilon: 3, step: 0.3, lambdas: []float64{1}}
}

// warmShare is the share of rounds that a warm start gives to IFCA: five rounds of
// fifty, where the paper has ten of two hundred.
const warmShare = 0.1

func (f figure16) contenders(mask float64) []contender {
	at := func(method string, warm float64) config.Run {
		r := methodRun("rotated-mnist", method, f.epsilon)
		r.Data.Silos, r.Data.TrainLimit, r.Data.Mask = f.silos, f.limit, mask
		r.Algorithm.Rounds, r.Algorithm.Stop.Every, r.Algorithm.Local.Step = f.rounds, f.rounds, f.step
		r.Algorithm.WarmStart = warm
		if method == "mr-mtl" {
			r.Algorithm.Prox = "server"
		}
		if warm > 0 || method == "ifca" {
			// Random models may leave two quarters in one cluster, and then for good.
			r.Algorithm.Hypotheses, r.Algorithm.Empty = 4, "split"
		}
		return r
	}
	warm := overLambdas("MR-MTL (IFCA 10 %)", at("mr-mtl", warmShare), f.lambdas)
	if f.few {
		return []contender{alone("FedAvg", at("fedavg", 0)), warm}
	}
	return []contender{
		warm, alone("IFCA", at("ifca", 0)), alone("local", at("local", 0)), alone("FedAvg", at("fedavg", 0)),
		overLambdas("MR-MTL", at("mr-mtl", 0), f.lambdas), alone("local (IFCA 10 %)", at("local", warmShare)),
	}
}

func runRotatedMNIST(l *lab.Lab) (study.Study, error) {
	f := figure16At(l)
	outcomes, err := contest(l, f.masks, false, f.contenders)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"MNIST is shared among silos, whose digits are turned by one of four quarters and, at will, masked by white patches of the silo's own. Silos of one quarter belong together: clustering finds them, training alone does not need them.",
			"The paper's claims: without masks, MR-MTL that begins with a few rounds of IFCA matches IFCA, while training alone gains nothing from the same start; with masks it stays best.",
		},
		Caveats: caveats(
			fmt.Sprintf("%d silos, %d pictures each, %d rounds, epsilon %v, delta 1e-4, clip 1, batch 100, step %v, lambda from %v. The paper gives clip and batch, 40 silos and 200 rounds; epsilon, delta, step, lambda and masks are ours.", f.silos, cmp.Or(f.limit, 1500), f.rounds, f.epsilon, f.step, f.lambdas),
			"A model that no silo chose takes over half of a cluster (empty: split), which the paper does not have: with random starts alone some quarters share a model to the end.",
			"MR-MTL draws models to the mean after the round (prox: server). With the regulariser in the steps, against the last round's mean, a lambda that shares enough also holds all models back.",
		),
	}
	if l.Scale == lab.Full {
		s.Caveats = append(s.Caveats, "The settings come from a small search that is not charged, on a seed that is not among the study's, over the first 10 to 12 of 50 rounds and with empty clusters kept: error of IFCA 24 % with step 0.3 (21 % with step 1, whose loss no longer fell); of warm MR-MTL 24 % with prox server and lambda 1, 29, 34 and 37 % with the regulariser in the steps and lambda 0.3, 1 and 2.5.")
	} else {
		s.Caveats = append(s.Caveats, "At this scale silos are few and small, and the budget is large to make up for it (the step is the better of 0.3 and 1): the rows show that everything runs, not what the paper claims.")
	}
	for i, mask := range f.masks {
		section := fmt.Sprintf("Figure 1.6, masked with probability %v", mask)
		s.Rows = append(s.Rows, plainRows(section, "test accuracy", f.epsilon, outcomes[i], "the text lacks the figure")...)
		s.Rows = append(s.Rows, epsilonRows(section, outcomes[i][0].cells, f.epsilon)...)
		if l.Scale == lab.Full {
			s.Rows = append(s.Rows, clusterClaims(section, mask, outcomes[i])...)
		}
	}
	s.Charts = append(s.Charts, study.Chart{
		Title: "Figure 1.6: accuracy by masks", XTitle: "probability of a patch", YTitle: "test accuracy",
		Note: "mean and one standard deviation over seeds", Series: methodSeries(f.masks, outcomes),
	})
	return s, nil
}

// clusterClaims are the text's, with noise judged by the spread over seeds.
func clusterClaims(section string, mask float64, row []outcome) []study.Row {
	warm := named(row, "MR-MTL (IFCA 10 %)")
	against := func(name string) (study.Row, bool) {
		d := paired(warm, named(row, name))
		noise := math.Max(0.005, d.High-d.Middle)
		return claimRow(section, "warm MR-MTL minus "+name, "difference", "accuracy", d, d.Middle >= -noise, "section 1.5: warm MR-MTL matches IFCA without masks and remains optimal at all levels of heterogeneity", "agrees: not below by more than one standard deviation, or 0.005"), d.Middle > noise
	}
	ifca, _ := against("IFCA")
	rows := []study.Row{ifca}
	for _, name := range []string{"local", "FedAvg", "MR-MTL"} {
		r, beats := against(name)
		if mask == 0 && name != "MR-MTL" {
			r.Note, r.Verdict = "agrees: above by more than one standard deviation, or 0.005", study.Differs
			if beats {
				r.Verdict = study.Agrees
			}
		}
		rows = append(rows, r)
	}
	return rows
}
