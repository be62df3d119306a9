package layout

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/prose"
)

// Label is one method's privacy label.
type Label struct {
	Method     string
	Claim      Badge
	Rows       []LabelRow // those without a value are left out
	NotCovered []string
	Unnamed    string // what is said where NotCovered is empty
}

// LabelRow is one line of a label; the first ones are set larger.
type LabelRow struct {
	Name, Value, Note string
	Large             bool
}

// The shapes differ without colour: a barred circle, a triangle with a warning,
// a circle with its radius, a shield.
const (
	iconNone    = `<circle class="stroke" cx="12" cy="12" r="9.2"/><path class="stroke" d="M5.6 18.4 18.4 5.6"/>`
	IconWarning = `<path class="stroke" d="M12 2.8 22.4 21H1.6z"/><path class="stroke" d="M12 9.4v5.4M12 17.4v.9"/>`
	iconMetric  = `<circle class="stroke" cx="12" cy="12" r="9.2"/><circle class="fill" cx="12" cy="12" r="2.1"/><path class="stroke" d="M12 12h9.2"/>`
	iconProved  = `<path class="fill" d="M12 1.6 21 5v6.6c0 5.2-3.7 8.9-9 10.8-5.3-1.9-9-5.6-9-10.8V5z"/><path class="check" d="m7.4 11.8 3.3 3.4 6-6.6"/>`
)

// ClaimOf is how far a statement's numbers can be trusted.
func ClaimOf(s event.Statement) Badge {
	switch s.Claim {
	case event.ClaimProved:
		return Badge{"proved", "proved", Icon(iconProved),
			"A proof covers this number for the unit, the neighbours and the trust named below."}
	case event.ClaimMetric:
		return Badge{"metric", "metric", Icon(iconMetric),
			"A proof covers updates of one hypothesis that lie close together: what a release tells about two of them grows with their distance and reaches epsilon at the public radius. It does not protect a client’s data as a whole."}
	case event.ClaimHeuristic:
		sentence := "The papers’ number. No proof covers it: read it as a measure of how much noise was added, not as a guarantee."
		if s.Unit == event.UnitNeighbourhood {
			sentence = "The papers’ number. No proof covers it, because the radius that it is measured at is itself private. Read it as a measure of how much noise was added, not as a guarantee."
		}
		return Badge{"heuristic", "heuristic", Icon(IconWarning), sentence}
	case event.ClaimNone:
		return Badge{"none", "none", Icon(iconNone),
			"Nothing is protected. The trained vectors are released as they are; what they reveal about a client’s data has no limit."}
	}
	return Badge{string(s.Claim), "none", Icon(iconNone),
		"This report does not know this claim. Treat it as none."}
}

// TermsOf is what an epsilon depends on, in the few words that stand beside it.
func TermsOf(s event.Statement) string {
	words := fmt.Sprintf("unit %s, relation %s", s.Unit, s.Relation)
	switch {
	case s.Claim == event.ClaimNone:
	case s.Radius != nil:
		words += ", radius " + prose.Rounded(float64(*s.Radius))
	case s.Unit == event.UnitNeighbourhood:
		words += ", radius not public"
	default:
		words += ", delta " + prose.Rounded(float64(s.Delta))
	}
	return words
}

// Claimed is TermsOf with the claim in front.
func Claimed(s event.Statement) string { return string(s.Claim) + ", " + TermsOf(s) }

// Protects says what a statement protects.
func Protects(s event.Statement) string {
	if s.Claim == event.ClaimNone {
		return "nothing"
	}
	if s.Claim == event.ClaimHeuristic {
		return "nothing for certain; meant is " + UnitProtected(s.Unit)
	}
	return UnitProtected(s.Unit)
}

// UnitProtected says what a unit is.
func UnitProtected(u event.Unit) string {
	switch u {
	case event.UnitNeighbourhood:
		return "which vector a client trained, among those within the radius"
	case event.UnitExample:
		return "one example in a client’s data"
	case event.UnitClient:
		return "all of a client’s data"
	case event.UnitNode:
		return "one node of the graph, with its edges"
	}
	return string(u)
}

// FromWhom says whose eyes it is protected from.
func FromWhom(s event.Statement) string {
	switch s.Trust {
	case event.TrustLocal:
		return "the server, and everybody who sees a release"
	case event.TrustServer:
		return "those who see the models; not the server"
	case event.TrustNobody:
		return "nobody"
	}
	return "as stated"
}

// UnitWords explains the unit.
func UnitWords(s event.Statement) string {
	if s.Unit == event.UnitNeighbourhood {
		return "neighbourhood: vectors within the radius of one another"
	}
	return string(s.Unit)
}

// RelationWords explains what neighbours are.
func RelationWords(s event.Statement) string {
	if s.Claim == event.ClaimNone {
		return string(s.Relation) // there is nothing to explain
	}
	switch s.Relation {
	case event.Metric:
		return "metric: the loss grows with the distance between two vectors"
	case event.AddRemove:
		return "add-remove: with the unit, or without it"
	case event.ReplaceOne:
		return "replace-one: one unit exchanged for another"
	}
	return string(s.Relation)
}
