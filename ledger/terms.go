package ledger

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Terms are what the releases under one ceiling share. Who adds the noise is one of
// them: a number that holds against everybody but the server is another promise than
// one that holds against the server, too. On different terms nothing is added up.
type Terms struct {
	account.Terms
	Trust event.Trust
}

// termsOf are the terms of a release. Without noise there is nobody who adds it.
func termsOf(r event.Release) Terms {
	t := Terms{account.TermsOf(r), r.Trust}
	if t.Claim == event.ClaimNone {
		t.Trust = event.TrustNobody
	}
	return t
}

// The words for who adds the noise, in policies and commands.
const (
	TrustParticipant = "participant"
	TrustServer      = "server"
)

// TrustNamed is what a word means; an empty one is the participant's own noise.
func TrustNamed(word string) (event.Trust, error) {
	switch word {
	case "", TrustParticipant:
		return event.TrustLocal, nil
	case TrustServer:
		return event.TrustServer, nil
	}
	return "", fmt.Errorf("trust is %q; allowed: %s (the default), %s", clip(word), TrustParticipant, TrustServer)
}

// describe names terms to people.
func describe(t Terms) string {
	who := map[event.Trust]string{event.TrustLocal: TrustParticipant, event.TrustServer: TrustServer, event.TrustHolder: "whoever holds all examples", event.TrustNobody: "nobody"}[t.Trust]
	return fmt.Sprintf("unit %q, relation %q, claim %q, noise added by %q", t.Unit, t.Relation, t.Claim, who)
}

// uncovered refuses terms that no ceiling names.
func uncovered(t Terms) error {
	hint := "; only a ceiling in the policy that names these terms allows it"
	if t.Trust == event.TrustServer {
		hint = "; the update itself would leave this participant, and only a ceiling with trust: server allows that"
	}
	return fmt.Errorf("%w: the policy has no ceiling for %s%s", ErrRefused, describe(t), hint)
}
