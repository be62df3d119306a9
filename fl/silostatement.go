package fl

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// SiloPrivacy is a federation's line: the largest epsilon and delta of its silos.
type SiloPrivacy struct {
	event.Statement
	// Proved is what is proved for the same releases where the claim is heuristic.
	Proved *event.Statement `json:"proved"`
	// Assumes is what the line rests on.
	Assumes []string `json:"assumes"`
	// Says is what a reader should know beside the numbers.
	Says []string `json:"says"`
}

// StateSilos is the line of a federation whose silos spent this. Proved may hold
// nil; notCovered is what the data's preparation leaves out.
func StateSilos(run config.Run, spends []account.Guarantee, proved []*account.Guarantee, notCovered []string) (SiloPrivacy, error) {
	for _, s := range spends {
		if s.Claim == event.ClaimNone { // one silo without a target leaves the federation without one
			spends, proved = []account.Guarantee{s}, []*account.Guarantee{nil}
			break
		}
	}
	all, err := account.Federation(spends...)
	if err != nil {
		return SiloPrivacy{}, err
	}
	p := SiloPrivacy{Statement: all.Statement(), Assumes: []string{"nobody is in two silos: for such a person their numbers add up"}}
	if all.Unit == event.UnitClient {
		notCovered = nil // what a silo does with its own rows is part of the silo
	}
	p.NotCovered = append(p.NotCovered, notCovered...)
	p.NotCovered = append(p.NotCovered, siloNotCovered(run, all)...)
	if !slices.Contains(proved, nil) {
		lines := make([]account.Guarantee, len(proved))
		for i, g := range proved {
			lines[i] = *g
		}
		sound, err := account.Federation(lines...)
		if err != nil {
			return SiloPrivacy{}, err
		}
		statement := sound.Statement()
		statement.NotCovered = append(statement.NotCovered, notCovered...)
		statement.NotCovered = append(statement.NotCovered, siloNotCovered(run, sound)...)
		p.Proved = &statement
	}
	p.Says = siloSays(run)
	return p, nil
}

func siloNotCovered(run config.Run, all account.Guarantee) []string {
	if all.Claim == event.ClaimNone {
		return nil
	}
	var list []string
	shuffled := run.Algorithm.Mode != "sound" && all.Unit == event.UnitExample
	if shuffled && all.Claim == event.ClaimHeuristic {
		list = append(list, "shuffled batches: their accounting as Poisson samples is not proved")
	}
	if shuffled || run.Privacy.Relation == string(event.ReplaceOne) {
		list = append(list, "the number of a silo's examples: it is declared public")
	}
	if run.Algorithm.Kind == "dp-fedavg" {
		list = append(list, "single updates, from the server: it sees them before the noise is added")
	}
	switch run.Privacy.Noise {
	case "simulated":
		list = append(list, "arithmetic: seeded float noise, for simulation only")
	case NoiseSeeded:
		list = append(list, "everything, against whoever knows the seed: the noise is exact but repeatable")
	default:
		list = append(list, "timing: how long a release takes depends on its noise")
	}
	return list
}

func siloSays(run config.Run) []string {
	says := []string{"taking part costs nothing beside what a silo's own target allows"}
	a, p := run.Algorithm, run.Privacy
	private := p.Epsilon > 0 || p.NoiseMultiplier > 0
	if private && slices.Contains([]string{"mr-mtl", "mocha"}, a.Kind) {
		says = append(says, "what a silo sends reveals its own model: that model is protected by the silo's own privacy, as every step of it is noised")
	}
	if private && a.Kind == "local" {
		says = append(says, "nothing is sent: the number protects the examples from whoever uses the silo's model")
	}
	if private && run.Data.Standardise == string(data.ByPaid) {
		says = append(says, saysMoments(run))
	}
	if p.RecordsPerPerson > 1 {
		says = append(says, "a person may have several records: every silo must bound them itself; the target was converted by group privacy")
	}
	if a.Lambda == config.LambdaAuto && a.Kind == "mr-mtl" {
		says = append(says, "lambda was set from what was released already: it costs nothing more")
	}
	return says
}
