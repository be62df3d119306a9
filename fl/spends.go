package fl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// StateSpends is the statement about a run whose participants spent this on their
// examples, or on themselves: the largest epsilon and delta of all. Proved may hold nil;
// notCovered is what the data's preparation leaves out.
func StateSpends(run config.Run, spends []account.Guarantee, proved []*account.Guarantee, notCovered []string) (Privacy, error) {
	totals := make([]float64, len(spends))
	for i := range spends {
		totals[i] = spends[i].Epsilon
	}
	median, most := MedianAndMax(totals)
	for _, s := range spends {
		if s.Claim == event.ClaimNone { // one participant without a target leaves the federation without one
			spends, proved = []account.Guarantee{s}, []*account.Guarantee{nil}
			break
		}
	}
	all, err := together(run, spends)
	if err != nil {
		return Privacy{}, err
	}
	p := Privacy{
		Statement: all.Statement(), Protects: run.Privacy.Protects,
		NoiseMultiplier: event.Number(run.Privacy.NoiseMultiplier), MedianEpsilon: event.Number(median), MaxEpsilon: event.Number(most),
	}
	if !IsCentral(run.Algorithm.Kind) {
		p.Assumes = []string{"nobody's data lie with two participants: for such a person their numbers add up"}
	}
	if all.Unit == event.UnitClient {
		// What a participant does with its own rows is part of the participant; what
		// the run file says of them is seen by all.
		notCovered = run.Data.TakenFromData()
	}
	p.NotCovered = append(p.NotCovered, notCovered...)
	p.NotCovered = append(p.NotCovered, spendsNotCovered(run, all)...)
	if !slices.Contains(proved, nil) {
		lines := make([]account.Guarantee, len(proved))
		for i, g := range proved {
			lines[i] = *g
		}
		sound, err := together(run, lines)
		if err != nil {
			return Privacy{}, err
		}
		statement := sound.Statement()
		statement.NotCovered = append(statement.NotCovered, notCovered...)
		statement.NotCovered = append(statement.NotCovered, spendsNotCovered(run, sound)...)
		p.Proved = &statement
	}
	p.Says = saysOf(run)
	return p, nil
}

// together is what all spends promise to any one unit. In one place there are no silos that
// could share a person, but a person can have several examples there.
func together(run config.Run, spends []account.Guarantee) (account.Guarantee, error) {
	if !IsCentral(run.Algorithm.Kind) || len(spends) != 1 {
		return account.Federation(spends...)
	}
	all := spends[0]
	if run.Privacy.RecordsPerPerson <= 1 && all.Unit != event.UnitNode {
		all.NotCovered = append(slices.Clip(all.NotCovered), "persons with several examples: the number is about one of them (privacy.records_per_person)")
	}
	return all, nil
}

func spendsNotCovered(run config.Run, all account.Guarantee) []string {
	if all.Claim == event.ClaimNone {
		return nil
	}
	var list []string
	shuffled := run.Algorithm.Mode != "sound" && all.Unit == event.UnitExample
	if shuffled && all.Claim == event.ClaimHeuristic {
		list = append(list, "shuffled batches: their accounting as Poisson samples is not proved")
	}
	replaced := run.Privacy.Relation == string(event.ReplaceOne)
	switch {
	case IsCentral(run.Algorithm.Kind) && (shuffled || replaced):
		list = append(list, "the number of examples: it is declared public")
	case replaced && all.Unit == event.UnitClient:
		list = append(list, "the number of participants: it is public")
	case shuffled || replaced:
		list = append(list, "the number of a participant's examples: it is declared public")
	}
	if all.Unit == event.UnitExample && run.Algorithm.Selection.Rule == "best" && run.Algorithm.Hypotheses > 1 {
		list = append(list, "group membership: participants choose their cluster by their examples, and nobody pays for it (algorithm.selection.rule best)")
	}
	if all.Unit == event.UnitNode {
		list = append(list, "predictions: they read a person's contacts as they are, and are for that person, or for whoever holds the data")
	}
	if run.Privacy.Protects == "client" {
		list = append(list, "single updates, from the server: it sees them before the noise is added")
		if k, err := methodOf(run); err == nil {
			if o, err := outlineOf(k, run); err == nil && o.Personal {
				list = append(list, UncoveredOwnModels)
			}
		}
	}
	return append(append(list, uncoveredStart(run)...), arithmetic(run.Privacy.Noise))
}

func saysOf(run config.Run) []string {
	a, p := run.Algorithm, run.Privacy
	private, central := p.Protects == "example" || p.Protects == "node", IsCentral(a.Kind)
	says := []string{"taking part costs nothing beside what a participant's own target allows"}
	whose, bounds := "every participant's own", "every participant must bound them itself"
	if central {
		says = []string{fmt.Sprintf("the number holds for the models after all steps together%s: all of them may be given away, not the last model alone", learnedBeside(p.Clipping))}
		whose, bounds = "the examples' own", "whoever holds them must bound them"
	}
	if private && slices.Contains([]string{"mr-mtl", "mocha"}, a.Kind) {
		says = append(says, "what a participant sends reveals its own model: that model is protected by the participant's own privacy, as every step of it is noised")
	}
	if private && a.Kind == "local" {
		says = append(says, "nothing is sent: the number protects the examples from whoever uses the participant's model")
	}
	if private && run.Data.Standardise == string(data.ByPaid) {
		says = append(says, fmt.Sprintf("features are scaled by %s means and deviations, noised and paid for out of the target (by themselves %v of epsilon); rows count within public ranges, which must not be chosen by looking at them: %s",
			whose, p.MomentsShare, rangesOf(run.Data)))
	}
	if run.Data.Projection != "" {
		says = append(says, "rows are taken to components that another run released (data.projection): what that cost its rows is not in this number, and a ledger adds the two up")
	}
	if private && run.Data.Context > 0 {
		says = append(says, fmt.Sprintf("an example is a row of %d words: whoever wrote more has several, as many as privacy.records_per_person must say", run.Data.Context))
	}
	if p.Protects == "node" {
		says = append(says, saysOfNodes(p.Nodes)...)
		if run.Data.Neighbours > 0 {
			says = append(says, "inputs hold degrees and ranks, and are scaled by the whole population (data.inputs): one person less moves everybody's")
		}
	}
	if p.RecordsPerPerson > 1 {
		says = append(says, "a person may have several records: "+bounds+"; the target was converted by group privacy")
	}
	if p.Runs > 1 {
		says = append(says, fmt.Sprintf("the noise is that of %d runs that share the target: all of them together keep it, and the numbers are of this one (docs/tuning.md)", p.Runs))
	}
	if a.Lambda == config.LambdaAuto && a.Kind == "mr-mtl" {
		says = append(says, "lambda was set from what was released already: it costs nothing more")
	}
	return append(says, saysOfClip(p)...)
}

// saysOfNodes is what a claim about persons is about.
func saysOfNodes(n config.Nodes) []string {
	switch n.Contacts {
	case "thinned":
		return []string{
			fmt.Sprintf("a person is taken out of everybody's reports; the number rests on the promise, which is checked, that nobody has more than %d contacts: whoever sees that a run is refused for it learns that somebody has", n.Degree),
			"every step keeps a share of the contacts, by a secret of its own: exact noise has it from the system; in a simulation it follows from the seed, and the number holds against those who do not know that",
		}
	case "home":
		return []string{"a person is taken out of everybody's reports; of contacts only those at home are read, in households that are declared to be small enough"}
	case "pruned", "drawn":
		return []string{"nothing is proved: which contacts are read changes with who is there, for others too, and no number of examples bounds that"}
	}
	return []string{"a person is its own record: what it is, its history, and its own report of contacts; what others report of it is theirs, and is not covered"}
}

// learnedBeside is what steps on examples release besides models.
func learnedBeside(c config.Clipping) string {
	switch {
	case c.Rule == "quantile", c.Rule == "online" && c.Learn == "clip":
		return ", and for the clip that was learned"
	case c.Rule == "online" && c.Learn == "step":
		return ", and for the step size that was learned"
	case c.Rule == "online" && c.Learn != "nothing" && c.Learn != "random":
		return ", and for the clip and step size that were learned"
	}
	return ""
}

// saysOfClip is what a reader should know of how the server clips updates.
func saysOfClip(p config.Privacy) []string {
	if p.Protects != "client" {
		return nil
	}
	var says []string
	if s := p.Sector; s.Angle > 0 {
		says = append(says, fmt.Sprintf("updates are brought into a sector: lengths from %v to 1 of the clip, at most %v degrees from what was released before; the noise goes by half its diameter, and the number holds for participants that are replaced, not for ones that leave", s.Lower, s.Angle))
	}
	if p.Recentre != "" {
		says = append(says, "updates are clipped around what was released before, which costs nothing more")
	}
	if rule := p.Clipping.Rule; rule == "quantile" || rule == "online" {
		says = append(says, "the clip is learned from a second noised sum over the same updates; the noise of both together is what is charged")
	}
	return says
}

// rangesOf lists public ranges, features of the same one together.
func rangesOf(d config.Data) string {
	centre, scale := data.PublicRange(d)
	var ranges []string
	var features [][]string
	for j := range min(len(centre), len(scale)) {
		text := fmt.Sprintf("%v to %v", centre[j]-scale[j], centre[j]+scale[j])
		at := slices.Index(ranges, text)
		if at < 0 {
			at = len(ranges)
			ranges, features = append(ranges, text), append(features, nil)
		}
		features[at] = append(features[at], fmt.Sprint(j))
	}
	for i, f := range features {
		ranges[i] += " (features " + strings.Join(f, ", ") + ")"
	}
	return strings.Join(ranges, ", ")
}
