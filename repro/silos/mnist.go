package silos

import (
	"cmp"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var rotatedMNIST = lab.Experiment{
	ID: "silo-rotated-mnist", Title: "Silos of rotated digits: clusters first, then personal models",
	Paper: "paper 002, figure 1.6",
	Needs: []string{"mnist"}, Quick: "2 min", Full: "a second (with --anew 8 h a seed)",
	Device: true,
	// 30 runs of 200 rounds a seed, each half an hour on a core: finished ones come with the program.
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 1, lab.Full: 3},
	Launch: apartly(runRotatedMNIST),
}

// figure16 is what is run at a scale. The paper does not give epsilon, lambda or the
// masks; the authors' scripts start at epsilon 1, clip 1, step 0.1, 100 rounds.
type figure16 struct {
	silos, limit, rounds int
	masks                []float64
	epsilon, step        float64
	lambdas              []float64
	warm                 float64 // share of the rounds that a warm start gives to IFCA
	few                  bool    // two methods only
	tests                bool    // of what may explain that warm MR-MTL is behind
}

func figure16At(l *lab.Lab) figure16 {
	switch l.Scale {
	case lab.Smoke:
		return figure16{silos: 4, limit: 50, rounds: 1, masks: []float64{0}, epsilon: 10, step: 0.3, lambdas: []float64{0.1}, warm: 0.1, few: true}
	case lab.Quick: // a tenth of twelve rounds: with less there is no choice at all
		return figure16{silos: 8, limit: 150, rounds: 12, masks: []float64{0, 0.1, 0.25, 0.5}, epsilon: 10, step: 1, lambdas: []float64{0.3}, warm: 0.1}
	}
	return figure16{silos: 40, limit: 0, rounds: 200, masks: []float64{0, 0.1, 0.25, 0.5}, epsilon: 3, step: 0.3, lambdas: []float64{1}, warm: 0.05, tests: true}
}

// warmed is the name of a method that begins with a few rounds of IFCA.
func (f figure16) warmed(method string) string {
	return fmt.Sprintf("%s (IFCA %.0f %%)", method, 100*f.warm)
}

// run is a method's at a mask, with the share of the rounds that a warm start gives to IFCA.
func (f figure16) run(mask float64, method string, warm float64) config.Run {
	r := methodRun("rotated-mnist", method, f.epsilon)
	r.Data.Silos, r.Data.TrainLimit, r.Data.Mask = f.silos, f.limit, mask
	r.Algorithm.Rounds, r.Algorithm.Stop.Every, r.Algorithm.Local.Step = f.rounds, max(1, f.rounds/12), f.step
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

func (f figure16) contenders(mask float64) []contender {
	at := func(method string, warm float64) config.Run { return f.run(mask, method, warm) }
	warm := overLambdas(f.warmed("MR-MTL"), at("mr-mtl", f.warm), f.lambdas)
	if f.few {
		return []contender{alone("FedAvg", at("fedavg", 0)), warm}
	}
	all := []contender{
		warm, alone("IFCA", at("ifca", 0)), alone("local", at("local", 0)), alone("FedAvg", at("fedavg", 0)),
		overLambdas("MR-MTL", at("mr-mtl", 0), f.lambdas), alone(f.warmed("local"), at("local", f.warm)),
	}
	return append(all, f.trials(mask)...)
}

func runRotatedMNIST(l *lab.Lab) (study.Study, error) {
	f := figure16At(l)
	outcomes, err := contestOver(f.masks, false, f.contenders, func(runs []config.Run) ([][]cell, error) { return turnedCells(l, runs) })
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"MNIST is shared among silos, whose digits are turned by one of four quarters and, at will, masked by white patches of the silo's own. Silos of one quarter belong together: clustering finds them, training alone does not need them.",
			"The paper's claims: without masks, MR-MTL that begins with a few rounds of IFCA matches IFCA, while training alone gains nothing from the same start; with masks it stays best.",
		},
		Caveats: caveats(
			fmt.Sprintf("%d silos, %d pictures each, %d rounds, epsilon %v, delta 1e-4, clip 1, batch 100, step %v, lambda from %v. The paper gives clip and batch, 40 silos, 200 rounds, four panels and a warm start of 5 %%; epsilon, delta, step, lambda and masks are ours.", f.silos, cmp.Or(f.limit, 1500), f.rounds, f.epsilon, f.step, f.lambdas),
			"A model that no silo chose takes over half of a cluster (empty: split), which the paper does not have: with random starts alone some quarters share a model to the end.",
			"MR-MTL draws models to the mean after the round (prox: server). With the regulariser in the steps, against the last round's mean, a lambda that shares enough also holds all models back.",
		),
	}
	if l.Scale == lab.Full {
		s.Caveats = append(s.Caveats, "The settings come from a small search that is not charged, on a seed that is not among the study's, over the first 10 to 12 of 50 rounds and with empty clusters kept: error of IFCA 24 % with step 0.3 (21 % with step 1, whose loss no longer fell); of warm MR-MTL 24 % with prox server and lambda 1, 29, 34 and 37 % with the regulariser in the steps and lambda 0.3, 1 and 2.5. They were not searched again for 200 rounds, whose noise is larger.")
	} else {
		s.Caveats = append(s.Caveats, "At this scale silos are few and small, and the budget is large to make up for it (the step is the better of 0.3 and 1): the rows show that everything runs, not what the paper claims, and cannot be compared.")
	}
	tried := make([][]outcome, len(outcomes)) // trials are of no method of the figure
	for i, mask := range f.masks {
		few := len(outcomes[i]) - len(f.trials(mask))
		outcomes[i], tried[i] = outcomes[i][:few:few], outcomes[i][few:]
	}
	for i, mask := range f.masks {
		section := fmt.Sprintf("Figure 1.6 %c: masked with probability %v", 'a'+i, mask)
		s.Rows = append(s.Rows, plainRows(section, "test accuracy", f.epsilon, outcomes[i], "the text lacks the figure")...)
		s.Rows = append(s.Rows, plainRows(section, "test accuracy", f.epsilon, tried[i], "a test of what may hold warm MR-MTL back; no method of the figure")...)
		s.Rows = append(s.Rows, epsilonRows(section, outcomes[i][0].cells, f.epsilon)...)
		if !f.few {
			s.Rows = append(s.Rows, f.told(l, f.clusterClaims(section, mask, outcomes[i], tried[i]))...)
		}
		s.Charts = append(s.Charts, f.panel(i, outcomes[i]))
	}
	if !f.few {
		s.Rows = append(s.Rows, f.told(l, []study.Row{f.dropping(outcomes)})...)
	}
	s.Charts = append(s.Charts, study.Chart{
		Title: "Figure 1.6: accuracy at the end, by masks", XTitle: "probability of a patch", YTitle: "test accuracy",
		Note: "mean and one standard deviation over seeds", Series: methodSeries(f.masks, outcomes),
	})
	return s, nil
}

// told judges claims at the paper's size alone.
func (f figure16) told(l *lab.Lab, rows []study.Row) []study.Row {
	if l.Scale == lab.Full {
		return rows
	}
	for i := range rows {
		rows[i] = apart(rows[i], fmt.Sprintf("%d silos of %d pictures and %d rounds", f.silos, f.limit, f.rounds))
	}
	return rows
}

// panel is one of the figure's four: accuracy round by round at one mask.
func (f figure16) panel(i int, row []outcome) study.Chart {
	c := study.Chart{
		Title: fmt.Sprintf("Figure 1.6 %c: %s", 'a'+i, maskLabel(f.masks[i])), XTitle: "round", YTitle: "test accuracy",
		Note: fmt.Sprintf("epsilon %v (heuristic, add-remove); mean and one standard deviation over seeds", f.epsilon),
	}
	for _, o := range row {
		c.Series = append(c.Series, o.curve())
	}
	return c
}

func maskLabel(mask float64) string {
	if mask == 0 {
		return "no masks"
	}
	return fmt.Sprintf("patches with probability %v", mask)
}

// clusterClaims are the text's of one panel.
func (f figure16) clusterClaims(section string, mask float64, row, tried []outcome) []study.Row {
	warm, local := named(row, f.warmed("MR-MTL")), named(row, "local")
	if mask > 0 {
		rival := bestNamed(false, row, "IFCA", "local", "FedAvg", "MR-MTL", f.warmed("local"))
		r := gain(section, "warm MR-MTL over "+rival.name+", the best of the others", "section 1.5: MR-MTL remains optimal across different levels of silo-specific heterogeneity", fewSeeds)
		r.Note = "agrees: the whole 95 % interval over seeds above -0.01"
		r = effect(r, gains(false, warm, rival), -nearly)
		if r.Verdict == study.Differs && len(tried) > 0 {
			r.Why = f.behind(warm, rival, tried)
		}
		return []study.Row{r}
	}
	matches := gain(section, "warm MR-MTL over IFCA", "section 1.5, figure 1.6 (a): the preconditioning allows MR-MTL to match IFCA", fewSeeds)
	matches.Note = "agrees: the whole 95 % interval over seeds above -0.01"
	return []study.Row{
		effect(matches, gains(false, warm, named(row, "IFCA")), -nearly),
		lab.AtMost(gain(section, "local after the same start, over local", "section 1.5, figure 1.6 (a): local training does not benefit from the same preconditioning", fewSeeds),
			gains(false, named(row, f.warmed("local")), local), nearly),
		effect(gain(section, "warm MR-MTL over MR-MTL from the start", "section 1.5: the preconditioning enables MR-MTL to excel", fewSeeds), gains(false, warm, named(row, "MR-MTL")), 0),
	}
}

// dropping is what the text says across panels.
func (f figure16) dropping(outcomes [][]outcome) study.Row {
	by := func(row []outcome) []float64 {
		return gains(false, named(row, f.warmed("MR-MTL")), named(row, "MR-MTL"))
	}
	first, last := outcomes[0], outcomes[len(outcomes)-1]
	return effect(gain("Figure 1.6: what the text claims across panels", fmt.Sprintf("gain of a warm start: %s less %s", maskLabel(f.masks[0]), maskLabel(f.masks[len(f.masks)-1])),
		"section 1.5, figure 1.6 (b, c, d): the gains from warm-start gradually drop", fewSeeds), less(by(first), by(last)), 0)
}
