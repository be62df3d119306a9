package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/ledger"
)

// status asks a server that has no network yet.
func (b *bench) status(a *identity.Authority) Status {
	b.t.Helper()
	st, err := New(b.c, a, plan.Limits{}, b.log).Status()
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

// statusWith waits until the server is in a state.
func (b *bench) statusWith(a *identity.Authority, state State, round int) Status {
	b.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		st := b.status(a)
		if st.State == state && st.Round == round {
			return st
		}
		if time.Now().After(end) {
			b.t.Fatalf("the server says %q in round %d; want %q in round %d", st.State, st.Round, state, round)
		}
	}
}

// TestStatusFollowsARun: from the first round over its answers to the end, and through a
// restart, with everything by name.
func TestStatusFollowsARun(t *testing.T) {
	b, _, a := served(t, func(p *plan.Plan) { p.Quorum, p.Minimum = 3, 1 })
	b.work("north")
	st := b.statusWith(a, StateOpen, 1)
	if st.RunID != "r" || st.Name != "test" || st.Federation != "f" || st.Rounds != 5 || st.Asked != 3 || st.Quorum != 3 || st.Minimum != 1 || st.RunSecondsLeft != nil {
		t.Errorf("at the beginning: %+v", st)
	}
	if left := *st.RoundSecondsLeft; left < 50 || left > 60 || st.Deadline.Sub(*st.Opened).Round(time.Second) != time.Minute {
		t.Errorf("%v seconds are left of 60; opened %v, until %v", left, st.Opened, st.Deadline)
	}
	b.mustSend("north", 0, 1, 2)
	b.decline("south", 0)
	check := func(when string) {
		t.Helper()
		st := b.statusWith(a, StateOpen, 1)
		north, south, west := st.Participants[0], st.Participants[1], st.Participants[2]
		if st.Released != 1 || st.Declined != 1 || st.Asked != 3 {
			t.Errorf("%s: %d released and %d declined of %d", when, st.Released, st.Declined, st.Asked)
		}
		if north.Name != "north" || north.Answer != AnswerReleased || north.Released != 1 || north.Word != "" {
			t.Errorf("%s: %+v", when, north)
		}
		if south.Name != "south" || south.Answer != AnswerDeclined || south.Word != "policy" || south.Released != 0 || len(south.Spent) != 0 {
			t.Errorf("%s: %+v", when, south)
		}
		if west.Name != "west" || west.Answer != AnswerNotYet || !west.Asked || west.Released != 0 {
			t.Errorf("%s: %+v", when, west)
		}
		if len(north.Spent) != 1 || north.Spent[0].Round != 1 || north.Spent[0].RunID != "r" || north.Spent[0].Privacy.Unit != event.UnitNeighbourhood ||
			north.Spent[0].Privacy.Epsilon <= 0 || north.Spent[0].Enforcement != ledger.Enforced {
			t.Errorf("%s, north has spent %+v", when, north.Spent)
		}
	}
	check("after two answers")
	b.mustSend("north", 0, 1, 2) // the same again counts once
	check("after a repeated release")
	opened := b.status(a).Opened
	b.stop()
	b.begin()
	check("after a restart")
	if again := b.status(a).Opened; again.Sub(*opened).Abs() > time.Second {
		t.Errorf("the round was opened at %v, and after the restart at %v", opened, again)
	}
	if err := b.c.decline(t.Context(), "west", b.slot(0), true, "budget"); err != nil {
		t.Fatal(err)
	}
	for st = b.statusWith(a, StateOpen, 2); st.Declined == 0; st = b.statusWith(a, StateOpen, 2) { // which follows at once
		time.Sleep(time.Millisecond)
	}
	west := st.Participants[2]
	if !west.Left || west.Answer != AnswerDeclined || west.Word != leftRun || st.Closed != 1 || st.RunSecondsLeft == nil {
		t.Errorf("after west has left: %+v of %+v", west, st)
	}
	b.mustSend("north", 1, 1, 2)
	if spent := b.status(a).Participants[0].Spent; len(spent) != 1 || spent[0].Round != 2 {
		t.Errorf("after two releases north has spent %+v; want what it said at round 2", spent)
	}
	if err := b.c.decline(t.Context(), "south", b.slot(1), true, "budget"); err != nil {
		t.Fatal(err)
	}
	if err := b.c.decline(t.Context(), "north", b.slot(2), true, "budget"); err != nil {
		t.Fatal(err)
	}
	end := b.finished("north")
	st = b.statusWith(a, StateFinished, 2)
	if st.Stopped != StoppedBudget || st.ModelSHA256 != end.ModelSHA256 || st.Opened != nil || st.RunSecondsLeft != nil || st.Participants[0].Fetched {
		t.Errorf("at the end: %+v", st)
	}
	if _, err := b.c.content("north", b.plan.Run, end.models.sum[:]); err != nil {
		t.Fatal(err)
	}
	if p := b.status(a).Participants; !p[0].Fetched || p[1].Fetched || p[0].Released != 2 {
		t.Errorf("north has fetched the models, and the status says %+v", p)
	}
	b.stop()
	b.begin()
	if st = b.statusWith(a, StateFinished, 2); st.Closed != 2 || st.Participants[0].Released != 2 || st.Participants[0].LastHeard == nil {
		t.Errorf("served again: %+v", st)
	}
}

// TestSpendingIsToldByTerms: of one kind the last word stands, and another kind stands
// beside it.
func TestSpendingIsToldByTerms(t *testing.T) {
	h := newChronicle(2)
	say := func(round int, unit event.Unit) {
		h.says(1, Spending{Round: round, Privacy: event.Statement{Unit: unit, Epsilon: event.Number(round)}})
	}
	for round := range 3 {
		say(round+1, event.UnitClient)
	}
	before := h.people[1].spent
	say(4, event.UnitExample)
	say(5, event.UnitClient)
	got := h.people[1].spent
	if len(got) != 2 || got[0].Round != 4 || got[1].Round != 5 || len(h.people[0].spent) != 0 {
		t.Errorf("%+v", got)
	}
	if len(before) != 1 || before[0].Round != 3 {
		t.Errorf("what was told before has changed: %+v", before)
	}
}

// TestTimeLeftIsTheMedian of the closed rounds for every one that is left, less what the
// open one has taken already.
func TestTimeLeftIsTheMedian(t *testing.T) {
	c, now := &Coordinator{chronicle: newChronicle(0)}, time.Now()
	left := func(opened time.Duration) float64 {
		t.Helper()
		if c.round = newRound(3, nil, content{}, now); opened < 0 {
			c.round = nil
		} else {
			c.round.opened = now.Add(-opened)
		}
		st := Status{Rounds: 5}
		if c.tellRun(&st, now); st.RunSecondsLeft == nil {
			return -1
		}
		return *st.RunSecondsLeft
	}
	if got := left(0); got != -1 {
		t.Errorf("before any round was closed: %v", got)
	}
	for _, lasted := range []time.Duration{10 * time.Second, 90 * time.Second, 20 * time.Second} {
		c.chronicle.ended(false, lasted)
	}
	for opened, want := range map[time.Duration]float64{-1: 40, 0: 40, 5 * time.Second: 35, time.Hour: 20} {
		if got := left(opened); got != want {
			t.Errorf("two rounds are left, one of them open for %v: %v seconds, want %v", opened, got, want)
		}
	}
}

// TestStatusOfAnEvaluation, also after a restart.
func TestStatusOfAnEvaluation(t *testing.T) {
	b, _, a := served(t, evaluatedPlan(t, evaluateJudge))
	b.train()
	b.asked("north")
	st := b.statusWith(a, StateEvaluating, 1)
	if st.Asked != 3 || st.Released != 0 || st.Rounds != 1 || st.RunSecondsLeft != nil {
		t.Errorf("%+v", st)
	}
	if p := st.Participants[0]; p.Released != 1 || p.Answer != AnswerNotYet || len(p.Spent) != 1 {
		t.Errorf("%+v", p)
	}
	b.mustSend("north", 1, 1, 2, 3, 4, 5)
	b.stop()
	b.begin()
	if p := b.statusWith(a, StateEvaluating, 1).Participants[0]; p.Released != 2 || p.Answer != AnswerReleased || len(p.Spent) != 1 || p.Spent[0].Round != 2 {
		t.Errorf("after a restart: %+v", p)
	}
}

// TestStatusBeforeAnybodyIsThere.
func TestStatusBeforeAnybodyIsThere(t *testing.T) {
	b, s, a := served(t, nil)
	b.stop()
	c, err := NewCoordinator(t.Context(), Terms{Plan: federationtest.Plan(t), Names: federationtest.Names, Start: 3, Store: b.store, Signer: federationtest.Signer(b.signer), Log: b.log})
	if err != nil {
		t.Fatal(err)
	}
	b.c = c
	if st := b.status(a); st.State != StateOpen { // the round that the first coordinator had opened
		t.Errorf("%+v", st)
	}
	s.draining.Store(true)
	if st, err := s.Status(); err != nil || st.State != StateDraining {
		t.Errorf("a server that stops says %q, %v", st.State, err)
	}
	late := newBench(t, func(p *plan.Plan) { p.Run = "late" })
	late.stop()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if late.c, err = NewCoordinator(ctx, Terms{Plan: late.plan, Names: []string{"x", "y", "z"}, Start: 3, Store: b.store, Signer: federationtest.Signer(b.signer), Log: b.log}); err != nil {
		t.Fatal(err)
	}
	if st := late.status(a); st.State != StateBetween || st.Round != 0 {
		t.Errorf("before it runs: %+v", st)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = late.c.Run(ctx) // interrupted
		close(ended)
	}()
	defer func() { stop(); <-ended }()
	st := late.statusWith(a, StateWaiting, 0)
	for _, p := range st.Participants {
		if p.Connected || p.Since != nil || p.LastHeard != nil || p.Asked || p.Answer != "" || p.CertificateExpires != nil || p.Spent == nil {
			t.Errorf("%+v", p)
		}
	}
}

// TestOperatorsAreToldOverTheNetwork: by certificate, with every participant's, and the
// gauges say the same.
func TestOperatorsAreToldOverTheNetwork(t *testing.T) {
	b, s, a := served(t, nil)
	b.work("north")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), l) }()
	t.Cleanup(func() { <-ended })
	north := memberTLS(t, a, "north")
	operator, _, err := a.OperatorTLS()
	if err != nil {
		t.Fatal(err)
	}
	get := func(client *http.Client, path string) (int, string) {
		t.Helper()
		reply, err := client.Get("https://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	watching := &http.Client{Transport: &http.Transport{TLSClientConfig: operator, ForceAttemptHTTP2: true}}
	member := &http.Client{Transport: &http.Transport{TLSClientConfig: north, ForceAttemptHTTP2: true}}
	if code, text := get(member, StatusPath); code != http.StatusForbidden || !strings.Contains(text, "is for operators") {
		t.Errorf("a participant: %d %s", code, text)
	}
	code, text := get(watching, StatusPath)
	var st Status
	if err := json.Unmarshal([]byte(text), &st); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if p := st.Participants[0]; !p.Connected || p.CertificateExpires == nil || p.CertificateExpires.Before(time.Now()) || st.Connected != 1 {
		t.Errorf("north is connected: %+v", st)
	}
	if p := st.Participants[1]; p.Connected || p.CertificateExpires != nil {
		t.Errorf("south is not: %+v", p)
	}
	w := httptest.NewRecorder()
	s.Admin().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`coterie_participant_connected{participant="north"} 1`, `coterie_participant_connected{participant="south"} 0`,
		`coterie_certificate_expires_timestamp_seconds{holder="north"} `, "coterie_round 1\n",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("/metrics lacks %q:\n%s", want, w.Body)
		}
	}
	for _, wrong := range []string{`holder="operator"`, `holder="south"`, `participant="operator"`} {
		if strings.Contains(w.Body.String(), wrong) {
			t.Errorf("/metrics has %s", wrong)
		}
	}
	watching.CloseIdleConnections()
	member.CloseIdleConnections()
}

// TestWhoDoesNotComeBackIsMissed: after a restart, those who had taken part have a minute.
func TestWhoDoesNotComeBackIsMissed(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	if err := b.c.decline(t.Context(), "west", b.slot(0), true, "budget"); err != nil {
		t.Fatal(err)
	}
	words := new(federationtest.Log)
	b.stop()
	b.log = slog.New(slog.NewTextHandler(words, nil))
	c, err := NewCoordinator(t.Context(), Terms{Plan: b.plan, Names: federationtest.Names, Store: b.store, Signer: federationtest.Signer(b.signer), Log: b.log})
	if err != nil {
		t.Fatal(err)
	}
	a := newAttendance(c)
	a.contact = func(name string) contact { // north is back at once
		return contact{open: name == "north", came: a.started, heard: a.started.Add(returnTime)}
	}
	a.review(a.started.Add(returnTime - time.Second))
	if text := words.String(); strings.Contains(text, "missing") || !strings.Contains(text, `msg="participant is there" participant=north`) {
		t.Errorf("within a minute:\n%s", text)
	}
	for range 3 { // said once
		a.review(a.started.Add(returnTime))
	}
	if text := words.String(); strings.Count(text, "participant is missing") != 1 || !strings.Contains(text, `msg="participant is missing" participant=south`) {
		t.Errorf("after a minute:\n%s", text)
	}
}
