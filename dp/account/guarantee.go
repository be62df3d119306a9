package account

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
)

// Guarantee is a privacy number with everything that it depends on.
type Guarantee struct {
	Claim      event.Claim
	Unit       event.Unit
	Relation   event.Relation
	Trust      event.Trust
	Epsilon    float64
	Delta      float64
	Sampling   string
	Radius     float64 // metric privacy only
	NotCovered []string
	Order      float64 // the Rényi order that gave epsilon; 0 where there is none
	Optimistic float64 // an epsilon that certainly does not hold; 0 where none is known, as of choices and shuffled batches
	Accountant string
}

// Statement is the part of the guarantee that every output shares.
func (g Guarantee) Statement() event.Statement {
	s := event.Statement{
		Claim: g.Claim, Unit: g.Unit, Relation: g.Relation, Trust: g.Trust,
		Epsilon: event.Number(g.Epsilon), Delta: event.Number(g.Delta), Sampling: g.Sampling,
		NotCovered: append([]string{}, g.NotCovered...),
	}
	if g.Radius != 0 {
		radius := event.Number(g.Radius)
		s.Radius = &radius
	}
	return s
}

// MarshalJSON writes the statement, the order and the accountant.
func (g Guarantee) MarshalJSON() ([]byte, error) { return json.Marshal(g.Fields()) }

// Fields are the keys and values of MarshalJSON, for a caller that adds its own.
func (g Guarantee) Fields() map[string]any {
	s := g.Statement()
	fields := map[string]any{
		"claim": s.Claim, "unit": s.Unit, "relation": s.Relation, "trust": s.Trust,
		"epsilon": s.Epsilon, "delta": s.Delta, "sampling": s.Sampling,
		"radius": s.Radius, "not_covered": s.NotCovered,
		"order": nil, "optimistic_epsilon": nil, "accountant": g.Accountant,
	}
	if g.Optimistic != 0 {
		fields["optimistic_epsilon"] = event.Number(g.Optimistic)
	}
	if g.Order != 0 {
		fields["order"] = event.Number(g.Order)
	}
	return fields
}

// Sentence is what one may publish: who is protected, against whom, under which
// relation, by how much, and what is not covered.
func (g Guarantee) Sentence() string {
	var s strings.Builder
	unit := map[event.Unit]string{
		event.UnitExample: "Every single example", event.UnitClient: "Every client with all its data",
		event.UnitNode: "Every node with all its examples", event.UnitNeighbourhood: "Every neighbourhood of the given radius",
	}[g.Unit]
	relation := map[event.Relation]string{
		event.AddRemove: "whether it is in the data or not", event.ReplaceOne: "against its replacement by any other",
		event.Metric: "against any other point in it", event.OwnRecord: "whether its own record is there or empty; what others report of it is theirs",
		event.Removal: "whether it is in the data, and in everybody's reports, or not",
	}[g.Relation]
	switch {
	case g.Claim == event.ClaimNone || math.IsInf(g.Epsilon, 1):
		fmt.Fprintf(&s, "Nothing is promised at delta = %.6g: epsilon is infinite for %s, %s (%s).",
			g.Delta, lowerFirst(unit), relation, g.Relation)
	case g.Claim == event.ClaimHeuristic:
		fmt.Fprintf(&s, "By a heuristic that no proof covers, epsilon = %s at delta = %.6g for: %s, %s.",
			Upward(g.Epsilon), g.Delta, lowerFirst(unit), relation)
	default:
		fmt.Fprintf(&s, "%s is protected with epsilon = %s and delta = %.6g, %s (%s).",
			unit, Upward(g.Epsilon), g.Delta, relation, g.Relation)
	}
	fmt.Fprintf(&s, " Claim: %s. Unit: %s. Relation: %s.", g.Claim, g.Unit, g.Relation)
	if g.Radius != 0 {
		fmt.Fprintf(&s, " Radius: %.6g.", g.Radius)
	}
	if g.Trust != "" {
		fmt.Fprintf(&s, " Trust: %s.", g.Trust)
	}
	if g.Sampling != "" {
		fmt.Fprintf(&s, " Sampling: %s.", g.Sampling)
	}
	if len(g.NotCovered) > 0 {
		fmt.Fprintf(&s, " Not covered: %s.", strings.Join(g.NotCovered, "; "))
	}
	return s.String()
}

// InTerms is all that a statement's number depends on, in a few words.
func InTerms(s event.Statement) string {
	words := Terms{s.Unit, s.Relation, s.Claim}.String()
	if s.Radius != nil {
		words += fmt.Sprintf(", radius %.6g", float64(*s.Radius))
	}
	if s.Relation != event.Metric {
		words += fmt.Sprintf(", delta %.6g", float64(s.Delta))
	}
	return words
}

// Told is the epsilon with its terms: none is told without.
func (g Guarantee) Told() string {
	return fmt.Sprintf("epsilon %s (%s)", Upward(g.Epsilon), InTerms(g.Statement()))
}

// Upward writes six digits, never fewer than the cost: what is published must hold.
func Upward(x float64) string { return sixDigits(x, 1) }

// Downward writes six digits, never more than x: of what does not hold.
func Downward(x float64) string { return sixDigits(x, -1) }

// sixDigits rounds in a direction, but for a rounding error of 1e-12 relative.
func sixDigits(x, direction float64) string {
	if math.IsInf(x, 1) {
		return "inf"
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 5, 64), 64)
	if err == nil && (x-short)*direction > x*1e-12 {
		short += direction * math.Pow(10, math.Floor(math.Log10(x))-5)
	}
	return strconv.FormatFloat(short, 'g', 6, 64)
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// guarantee fills in what the account knows about its number.
func (a *account) guarantee(epsilon, delta, order float64, accountant string) Guarantee {
	g := Guarantee{
		Claim: a.terms.Claim, Unit: a.terms.Unit, Relation: a.terms.Relation, Trust: a.trust,
		Epsilon: epsilon, Delta: delta, Order: order, Accountant: accountant,
	}
	names := make([]string, len(a.sampling))
	for i, s := range a.sampling {
		names[i] = string(s)
	}
	g.Sampling = strings.Join(names, ", ")
	g.NotCovered = a.notCovered()
	return g
}

// UncoveredTuning is what a price leaves out unless tuning is part of it.
const UncoveredTuning = "hyper-parameter tuning"

// UncoveredScore is what a price of tuning leaves out.
const UncoveredScore = "the score that picked the best trial, unless it is part of what was charged"

func (a *account) notCovered() []string {
	var list []string
	switch {
	case a.tuned:
		list = append(list, "the number of trials, which must stay secret", UncoveredScore)
	case a.counted:
		list = append(list, UncoveredScore)
	default:
		list = append(list, UncoveredTuning)
	}
	beside := "counts, losses and timings sent beside the releases"
	if a.trust == event.TrustHolder {
		beside = "counts, losses and timings told beside the models, as in a report"
	}
	list = append(list, "early stopping and validation data", beside)
	if slices.Contains(a.sampling, event.Shuffle) && a.terms.Relation == event.AddRemove {
		list = append(list, "the number of examples: a removed example must leave an empty place in its batch")
	}
	if a.terms.Claim == event.ClaimHeuristic {
		list = append(list, "everything: the claim is heuristic")
	}
	return list
}
