package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/server"
)

// TestFederationIsShownAsItStands: who is there, what each says, how rounds went and clusters
// formed, whose certificate ends; and the server is asked once for all who look.
func TestFederationIsShownAsItStands(t *testing.T) {
	now := time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	soon, late := now.Add(3*24*time.Hour), now.Add(80*24*time.Hour)
	st := server.Status{Name: "clinics", RunID: "run-1", State: server.StateOpen, Now: now, Round: 4, Rounds: 10, Closed: 3, Asked: 40, Released: 7, Declined: 1, Quorum: 30, Minimum: 20, Connected: 39}
	for i := range 40 {
		p := server.ParticipantStatus{Name: fmt.Sprintf("silo-%02d", i), Connected: i != 5, Asked: true, Answer: server.AnswerNotYet, CertificateExpires: &late}
		if i == 5 {
			p.LastHeard, p.CertificateExpires = &now, &soon
		}
		st.Participants = append(st.Participants, p)
	}
	if err := json.Unmarshal([]byte(`[{"run_id":"run-1","round":3,"privacy":{"claim":"proved","unit":"example","relation":"add-remove","epsilon":1.25,"delta":1e-6}}]`), &st.Participants[0].Spent); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`[{"round":1,"asked":40,"released":38,"declined":2,"seconds":3,"sizes":[20,18],"models":[[1,2],[3,4]]},
{"round":2,"asked":40,"released":40,"seconds":2,"sizes":[22,18],"models":[[1.5,2],[3,4.5]]},{"round":3,"asked":40,"released":39,"seconds":2.5,"sizes":[21,18],"models":[[1.6,2],[3,4.6]]}]`), &st.Recent); err != nil {
		t.Fatal(err)
	}
	asked := 0
	var fault error
	f := NewFederation(func(context.Context) (server.Status, error) { asked++; return st, fault })
	_, text := view(t, f, "")
	wants(t, text, "clinics: round open; 39 of 40 participants connected.", "round 4 of 10", "8 of 40", "30 releases", "20 releases",
		"silo-00", "epsilon 1.25", "proved, unit example, relation add-remove, delta 1×10⁻⁶", "away", "1 to 25 of 40",
		"Certificates about to end", "<strong>silo-05</strong> ends in 3 days", "Answers by round", "Time by round", "Releases in every cluster", "Clusters forming")
	if strings.Contains(text, "silo-30") || strings.Count(text, "about to end") != 1 {
		t.Errorf("too much is shown:\n%s", text)
	}
	_, text = view(t, f, "participants=2")
	wants(t, text, "silo-39", "26 to 40 of 40")
	if asked != 1 {
		t.Errorf("the server is asked %d times within a second", asked)
	}
	fault = errors.New("no server answers")
	f.asked = time.Time{}
	if _, err := f.View(url.Values{}); !errors.Is(err, fault) {
		t.Errorf("a server that is gone: %v", err)
	}
}
