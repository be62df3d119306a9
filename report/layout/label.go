package layout

import (
	"cmp"
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

// claims are the icon of every claim, and what it means.
var claims = map[event.Claim]struct{ icon, sentence string }{
	event.ClaimProved:    {iconProved, "A proof covers this number for the unit, the neighbours and the trust named below."},
	event.ClaimMetric:    {iconMetric, "A proof covers updates of one hypothesis that lie close together: what a release tells about two of them grows with their distance and reaches epsilon at the public radius. It does not protect a client’s data as a whole."},
	event.ClaimHeuristic: {IconWarning, "The papers’ number. No proof covers it: read it as a measure of how much noise was added, not as a guarantee."},
	event.ClaimNone:      {iconNone, "Nothing is protected. The trained vectors are released as they are; what they reveal about a client’s data has no limit."},
}

// ClaimOf is how far a statement's numbers can be trusted.
func ClaimOf(s event.Statement) Badge {
	c, known := claims[s.Claim]
	if !known {
		return Badge{string(s.Claim), "none", Icon(iconNone), "This report does not know this claim. Treat it as none."}
	}
	if s.Claim == event.ClaimHeuristic && s.Unit == event.UnitNeighbourhood {
		c.sentence = "The papers’ number. No proof covers it, because the radius that it is measured at is itself private. Read it as a measure of how much noise was added, not as a guarantee."
	}
	return Badge{string(s.Claim), string(s.Claim), Icon(c.icon), c.sentence}
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
	switch s.Claim {
	case event.ClaimNone:
		return "nothing"
	case event.ClaimHeuristic:
		return "nothing for certain; meant is " + UnitProtected(s)
	}
	return UnitProtected(s)
}

var unitWords = map[event.Unit]string{
	event.UnitNeighbourhood: "which vector a client trained, among those within the radius",
	event.UnitExample:       "one example in a client’s data",
	event.UnitClient:        "all of a client’s data",
	event.UnitNode:          "one person of the graph, as the relation says",
}

// UnitProtected says what a statement's unit is.
func UnitProtected(s event.Statement) string {
	if s.Trust == event.TrustHolder && s.Unit == event.UnitExample {
		return "one example of those that were trained on"
	}
	return cmp.Or(unitWords[s.Unit], string(s.Unit))
}

var trustWords = map[event.Trust]string{
	event.TrustLocal:  "the server, and everybody who sees a release",
	event.TrustServer: "those who see the models; not the server",
	event.TrustHolder: "everybody who sees a model, of the last step or of one before; not whoever holds the examples",
	event.TrustNobody: "nobody",
}

// FromWhom says whose eyes it is protected from.
func FromWhom(s event.Statement) string { return cmp.Or(trustWords[s.Trust], "as stated") }

// UnitWords explains the unit.
func UnitWords(s event.Statement) string {
	if s.Unit == event.UnitNeighbourhood {
		return "neighbourhood: vectors within the radius of one another"
	}
	return string(s.Unit)
}

var relationWords = map[event.Relation]string{
	event.Metric:     "metric: the loss grows with the distance between two vectors",
	event.AddRemove:  "add-remove: with the unit, or without it",
	event.ReplaceOne: "replace-one: one unit exchanged for another",
	event.OwnRecord:  "own-record: with the person’s own record, or with an empty one; what others report stays",
	event.Removal:    "full-removal: with the person, or without it in anybody’s report",
}

// RelationWords explains what neighbours are.
func RelationWords(s event.Statement) string {
	if s.Claim == event.ClaimNone {
		return string(s.Relation) // there is nothing to explain
	}
	return cmp.Or(relationWords[s.Relation], string(s.Relation))
}
