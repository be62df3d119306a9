package membership

import (
	"fmt"

	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/report/prose"
)

// Uncovered is what the attacks' own figures leave open: they are of real members.
const Uncovered = "membership inference: every figure is computed from who was a member, and is an unpaid release of those members"

// Descriptive is what bounds over the examples of one model are.
const Descriptive = "Trials over the examples of one model depend on each other: intervals and the epsilon are descriptive, no proof against a claim"

// says are what a reader should know, by what was done. Newcomers says that clients have
// models of their own, and that others' were attacked by what a newcomer gets.
func says(p *population, newcomers bool, o Options, attacks []Attack) []string {
	out := []string{"An attack that fails proves nothing: another may succeed", Descriptive}
	if p.strangers {
		out = append(out, "Non-members are examples of clients that did not train: where these are of another kind, the attack tells kinds as well")
	}
	if n, all := p.run.Algorithm.ClientsPerRound, len(p.federation.Train); o.Unit == UnitClient && n > 0 && n < all && !fl.IsCentral(p.run.Algorithm.Kind) {
		out = append(out, fmt.Sprintf("A round asks %d of %d clients: one that was never asked counts as having taken part", n, all))
	}
	if newcomers {
		out = append(out, "Attacked is the model that a newcomer gets; --client attacks one client's examples by its own")
	}
	for _, a := range attacks {
		switch a.Attack {
		case Noisy:
			if a.Chosen {
				out = append(out, fmt.Sprintf("%s: sigma %v was chosen by the AUC on one half, and all its figures are of the other", a.Attack, float64(*a.Sigma)))
			}
		case Shadows:
			out = append(out, fmt.Sprintf("%s: %s, which share the target's own members, so that each was seen by one of them and non-members by none: an auditor's reference, no attacker's", a.Attack, a.How()))
		case References:
			out = append(out, fmt.Sprintf("%s: %s, trained like the target, each on as many of all %s, drawn anew", a.Attack, a.How(), drawn(p)))
		}
		for _, r := range a.Rates {
			if r.FalsePositives == 0 && a.Attack == Loss {
				out = append(out, fmt.Sprintf("A false positive rate of %v needs %.0f non-members to be seen, there are %d: that column has no false positive at all", float64(r.At), 1/float64(r.At), a.NonMembers))
			}
		}
	}
	return out
}

// drawn is what a reference's members are drawn from.
func drawn(p *population) string {
	if p.held {
		return "examples"
	}
	return "clients"
}

// summed is what was found, with a verdict.
func summed(p *population, newcomers bool, o Options, attacks []Attack) Found {
	f := Found{Unit: o.Unit, Client: o.Client, Members: attacks[0].Members, NonMembers: attacks[0].NonMembers, Attacks: attacks, NotCovered: []string{Uncovered}, Says: says(p, newcomers, o, attacks)}
	best := -1
	for i, a := range attacks {
		if a.AUC != nil && (best < 0 || a.AUC.Value > attacks[best].AUC.Value) {
			best = i
		}
	}
	if best < 0 {
		f.Verdict = "No attack has an AUC"
		return f
	}
	a := attacks[best]
	what := "one " + o.Unit + " that was trained on above one that was not"
	switch low := a.AUC.Low; {
	case low != nil && *low > 0.5:
		f.Verdict = fmt.Sprintf("Members can be told: the best attack, %s, ranks %s in %.1f %% of the pairs", a.Attack, what, 100*float64(a.AUC.Value))
	case low == nil && a.AUC.Value > 0.5:
		f.Verdict = fmt.Sprintf("The best attack, %s, ranks %s in %.1f %% of the pairs, of too few to tell how sure that is", a.Attack, what, 100*float64(a.AUC.Value))
	default:
		f.Verdict = fmt.Sprintf("None of %s does better than guessing for certain, which proves nothing", prose.Counted(len(attacks), "attack", "attacks"))
	}
	return f
}
