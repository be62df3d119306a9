package mech

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/event"
)

// Terms says whom a release protects, under which relation, and who adds the noise.
type Terms struct {
	Unit     event.Unit
	Relation event.Relation
	Trust    event.Trust
}

// release joins the terms to a proved event. The relation must be one of those
// under which the sensitivity holds.
func (t Terms) release(what event.Event, replaceOnly bool) (event.Release, error) {
	switch {
	case t.Relation == event.ReplaceOne:
	case (t.Relation == event.OwnRecord || t.Relation == event.Removal) && ofNodes(what):
	case t.Relation == event.AddRemove && !replaceOnly:
	case t.Relation == event.AddRemove:
		return event.Release{}, fmt.Errorf("terms: the sensitivity holds under %s only, not under %s", event.ReplaceOne, t.Relation)
	default:
		return event.Release{}, fmt.Errorf("terms: relation %q; this mechanism knows %s and %s", t.Relation, event.AddRemove, event.ReplaceOne)
	}
	r := event.Release{Unit: t.Unit, Relation: t.Relation, Claim: event.ClaimProved, Trust: t.Trust, What: what}
	if err := r.Validate(); err != nil {
		return event.Release{}, fmt.Errorf("terms: %w", err)
	}
	return r, nil
}

// ofNodes says whether an event says how many examples a node is in.
func ofNodes(e event.Event) bool {
	switch e.(type) {
	case event.NodeSum, event.NodeThinned, event.NodeGaussian:
		return true
	}
	return false
}
