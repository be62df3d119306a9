package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// StatusPath is where operators ask how the server stands.
const StatusPath = "/status"

// State is what a server is doing.
type State string

// The states of a server.
const (
	StateWaiting    State = "waiting for participants"
	StateOpen       State = "round open"
	StateBetween    State = "between rounds"
	StateEvaluating State = "evaluating"
	StateFinished   State = "finished, lingering"
	StateDraining   State = "draining"
)

// The answers of a participant in the open round.
const (
	AnswerNotYet   = "not yet"
	AnswerReleased = "released"
	AnswerDeclined = "declined"
)

// Status is how a server stands: who is there, and what it waits for. It tells nothing
// that the server does not know anyway. Its keys are stable.
type Status struct {
	Federation string    `json:"federation"`
	RunID      string    `json:"run_id"`
	Name       string    `json:"name"`
	State      State     `json:"state"`
	Now        time.Time `json:"now"`     // by the server's clock
	Started    time.Time `json:"started"` // this server, not the run

	Round     int        `json:"round"` // that is open, or the last one; from 1, 0 before the first
	Rounds    int        `json:"rounds"`
	Closed    int        `json:"closed"`
	Abandoned int        `json:"abandoned"`
	Opened    *time.Time `json:"opened"` // the open round; null: none is open
	Deadline  *time.Time `json:"deadline"`
	// RoundSecondsLeft is until the deadline. RunSecondsLeft is an estimate: the median of
	// the closed rounds for every one that is left; null before the first and after the end.
	RoundSecondsLeft *float64 `json:"round_seconds_left"`
	RunSecondsLeft   *float64 `json:"run_seconds_left"`

	Asked       int    `json:"asked"` // in the open round
	Released    int    `json:"released"`
	Declined    int    `json:"declined"`
	Quorum      int    `json:"quorum"`
	Minimum     int    `json:"minimum"`
	Connected   int    `json:"connected"` // participants that are there
	Stopped     string `json:"stopped"`   // why the run ended; empty: it has not
	ModelSHA256 string `json:"model_sha256"`

	Participants []ParticipantStatus `json:"participants"`
	Recent       []RoundEnd          `json:"recent"` // rounds of training that have ended, the last 200
}

// ParticipantStatus is how one participant stands.
type ParticipantStatus struct {
	Name      string     `json:"name"`
	Connected bool       `json:"connected"`
	Since     *time.Time `json:"since"`      // it is connected or missing; null: it has not come yet since the server was started
	LastHeard *time.Time `json:"last_heard"` // anything at all from it; null: never
	Asked     bool       `json:"asked"`      // in the open round
	Answer    string     `json:"answer"`     // not yet, released, declined; empty: not asked
	Word      string     `json:"word"`       // of who declined
	Released  int        `json:"released"`   // accepted in this run so far
	Left      bool       `json:"left"`       // it has declined the rest of the run
	Fetched   bool       `json:"fetched"`    // it has the models
	// Spent is what it says that it has spent, one entry for each kind of terms.
	Spent []Spending `json:"spent"`
	// CertificateExpires is the end of its certificate; null: it has none that is valid.
	CertificateExpires *time.Time `json:"certificate_expires"`
}

// statusHandler answers operators. The guard has checked that they are.
func (s *Server) statusHandler(shares *shares) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, _ := identity.PeerFrom(r.Context())
		end, err := shares.request(r.Context(), doorName(peer))
		if err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer end()
		status, err := s.Status()
		if err != nil {
			s.log.Error("the status cannot be told", "error", err)
			http.Error(w, transfer.ToWire(err).Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status) // the connection may be gone
	})
}

// Status is how the server stands now.
func (s *Server) Status() (Status, error) {
	held, err := s.authority.Holders()
	if err != nil {
		return Status{}, err
	}
	c, now := s.coordinator, time.Now()
	st := Status{
		Federation: c.plan.Federation, RunID: c.plan.Run, Name: c.run.Name, Now: now.UTC(), Started: s.attendance.started.UTC(),
		Rounds: c.run.Algorithm.Rounds, Quorum: c.plan.Quorum, Minimum: c.plan.Minimum,
		Participants: make([]ParticipantStatus, len(c.names)),
	}
	here := s.attendance.all()
	out, home := c.presence.standing()
	for i, name := range c.names {
		p := &st.Participants[i]
		p.Name, p.Connected, p.Left, p.Fetched = name, here[i].here, out[i], home[i]
		p.Since, p.LastHeard = moment(here[i].since), moment(here[i].heard)
		if h, ok := held[name]; ok && h.Role == identity.Participant {
			p.CertificateExpires = moment(h.Expires)
		}
		if p.Connected {
			st.Connected++
		}
	}
	c.tellRun(&st, now)
	if s.draining.Load() {
		st.State = StateDraining
	}
	return st, nil
}

// moment is a time as JSON tells it; the zero time is null.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// tellRun fills in what the coordinator knows.
func (c *Coordinator) tellRun(st *Status, now time.Time) {
	median := c.chronicle.median()
	waiting := c.chronicle.tell(st)
	c.gate.RLock()
	r, finished := c.round, c.finished
	c.gate.RUnlock()
	st.Round = min(st.Closed+st.Abandoned, st.Rounds)
	left := time.Duration(st.Rounds-st.Round) * median
	switch {
	case finished != nil:
		st.State, st.Stopped, st.ModelSHA256 = StateFinished, finished.Stopped, finished.ModelSHA256
		return
	case r != nil:
		left -= min(median, now.Sub(r.opened))
		r.tell(st, now)
		if st.State = StateOpen; c.isEvaluation(r.number) {
			st.State, left = StateEvaluating, 0
		}
		st.Round = min(r.number+1, st.Rounds)
	case waiting:
		st.State = StateWaiting
	default:
		st.State = StateBetween
	}
	if median > 0 && left > 0 {
		seconds := left.Seconds()
		st.RunSecondsLeft = &seconds
	}
}

// tell fills in the run so far, and says whether the server waits for participants.
func (h *chronicle) tell(st *Status) (waiting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st.Closed, st.Abandoned = h.closed, h.abandoned
	st.Recent = append([]RoundEnd{}, h.recent[max(0, len(h.recent)-mostRecent):]...)
	for i, d := range h.people {
		p := &st.Participants[i]
		p.Released, p.Spent = d.released, append([]Spending{}, d.spent...)
		if p.LastHeard == nil {
			p.LastHeard = moment(d.lastSeen)
		}
	}
	return h.waiting
}

// tell fills in the open round.
func (r *openRound) tell(st *Status, now time.Time) {
	left := max(0, r.deadline.Sub(now).Seconds())
	st.Opened, st.Deadline, st.RoundSecondsLeft = moment(r.opened), moment(r.deadline), &left
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, kind := range r.answers {
		p := &st.Participants[i]
		p.Asked = true
		st.Asked++
		switch kind {
		case store.Released:
			p.Answer = AnswerReleased
			st.Released++
		case store.Declined:
			p.Answer, p.Word = AnswerDeclined, r.words[i]
			st.Declined++
		default:
			p.Answer = AnswerNotYet
		}
	}
}
