package live

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

// Federation shows how a federation's server stands: what the server knows, and no more.
type Federation struct {
	ask func(context.Context) (server.Status, error)

	mu     sync.Mutex
	asked  time.Time
	last   server.Status
	fault  error
	rounds []seenRound // that the page has seen, in order
}

// seenRound is how a round ended, or how far it is.
type seenRound struct{ round, asked, released, declined int }

// NewFederation shows what ask is told, which is asked once a second at most, and only while
// somebody looks.
func NewFederation(ask func(context.Context) (server.Status, error)) *Federation {
	return &Federation{ask: ask}
}

const (
	askEvery   = time.Second
	askTime    = 15 * time.Second
	mostRounds = 2000
)

// status is the server's, not older than a second.
func (f *Federation) status() (server.Status, []seenRound, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.asked) >= askEvery*9/10 {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		st, err := f.ask(ctx)
		f.asked, f.fault = time.Now(), err
		if err == nil {
			f.last = st
			f.note(st)
		}
	}
	return f.last, slices.Clone(f.rounds), f.fault
}

// note keeps what is seen of the open round.
func (f *Federation) note(st server.Status) {
	if st.Asked == 0 {
		return
	}
	now := seenRound{st.Round, st.Asked, st.Released, st.Declined}
	if n := len(f.rounds); n > 0 && f.rounds[n-1].round == now.round {
		f.rounds[n-1] = now
		return
	}
	f.rounds = append(f.rounds, now)
	if len(f.rounds) > mostRounds {
		f.rounds = f.rounds[1:]
	}
}

// Report: what a server leaves lies in its folder, not here.
func (f *Federation) Report(url.Values) (io.ReadCloser, error) { return nil, ErrNotThere }

// View is the whole federation; participants by pages.
func (f *Federation) View(place url.Values) (View, error) {
	st, rounds, err := f.status()
	if err != nil {
		return View{}, err
	}
	v := View{Title: st.Name, Lead: st.RunID, Status: fmt.Sprintf("%s: %s; %s of %s connected.", st.Name, st.State, prose.Count(st.Connected), prose.Counted(len(st.Participants), "participant", "participants"))}
	var p parts
	p.add("stand", standTemplate, standOf(st))
	if ends := endingOf(st); len(ends) > 0 {
		p.add("ending", endingTemplate, ends)
	}
	if panels, err := study.Panels(roundCharts(rounds)); err != nil {
		return View{}, err
	} else if len(panels) > 0 {
		p.add("curves", curvesTemplate, curves{ID: "curves-h", Name: "Rounds", Note: "Since this page began to look.", Panels: panels})
	}
	page := pageOf(place, "participants", len(st.Participants))
	p.add("people", peopleTemplate, peopleOf(st, place, page))
	v.Parts = p.list
	return v, p.err
}

var (
	endingTemplate = layout.Parse(partsText + `{{template "ending" .}}`)
	peopleTemplate = layout.Parse(partsText + `{{template "people" .}}`)
)

// standOf is the federation in short.
func standOf(st server.Status) stand {
	s := stand{State: state{string(st.State), "running"}}
	if st.State == server.StateFinished || st.State == server.StateDraining || st.State == server.StateWaiting {
		s.State.Class = "stopped"
	}
	s.Words = fmt.Sprintf("round %s of %s", prose.Count(st.Round), prose.Count(st.Rounds))
	s.Meter = newMeter(float64(st.Closed+st.Abandoned), float64(st.Rounds), fmt.Sprintf("%d of %d rounds ended", st.Closed+st.Abandoned, st.Rounds))
	add := func(name, value string) { s.Facts = append(s.Facts, layout.Fact{Name: name, Value: value}) }
	add("Connected", fmt.Sprintf("%s of %s", prose.Count(st.Connected), prose.Count(len(st.Participants))))
	if st.Asked > 0 {
		add("Answered in this round", fmt.Sprintf("%s of %s", prose.Count(st.Released+st.Declined), prose.Count(st.Asked)))
		add("It closes at", prose.Counted(st.Quorum, "release", "releases"))
		add("It needs", prose.Counted(st.Minimum, "release", "releases"))
	}
	if st.RoundSecondsLeft != nil {
		add("Left of the round", duration(coarse(*st.RoundSecondsLeft)))
	}
	if st.RunSecondsLeft != nil {
		add("Left of the run, about", duration(coarse(*st.RunSecondsLeft)))
	}
	add("Rounds closed", prose.Count(st.Closed))
	if st.Abandoned > 0 {
		add("Rounds abandoned", prose.Count(st.Abandoned))
	}
	if st.Stopped != "" {
		add("Ended by", st.Stopped)
		s.Facts = append(s.Facts, layout.Fact{Name: "Models, SHA-256", Value: st.ModelSHA256, Code: true})
	}
	return s
}

// coarse is a time in steps that do not change with every look.
func coarse(seconds float64) float64 {
	if seconds > 60 {
		return float64(int(seconds/10)) * 10
	}
	return float64(int(seconds))
}

// endsSoon is a participant whose certificate is about to end.
type endsSoon struct{ Name, Words string }

func endingOf(st server.Status) (out []endsSoon) {
	for _, p := range st.Participants {
		if p.CertificateExpires == nil {
			continue
		}
		if words, warn := ending(*p.CertificateExpires, st.Now); warn {
			out = append(out, endsSoon{p.Name, words})
		}
	}
	return out
}

// roundCharts are who was asked and who released, by round.
func roundCharts(rounds []seenRound) []study.Chart {
	if len(rounds) < 2 {
		return nil
	}
	series := func(name string, of func(seenRound) int) study.Series {
		s := study.Series{Name: name}
		for _, r := range rounds {
			n := float64(of(r))
			s.Points = append(s.Points, study.Point{X: float64(r.round), Y: n, Low: n, High: n})
		}
		return s
	}
	return []study.Chart{{Title: "Answers by round", XTitle: "round", YTitle: "participants", Series: []study.Series{
		series("asked", func(r seenRound) int { return r.asked }), series("released", func(r seenRound) int { return r.released }), series("declined", func(r seenRound) int { return r.declined }),
	}}}
}

// person is a participant as the page shows it.
type person struct {
	Name        string
	Here, Asked bool
	Answer      string
	Word        string
	Released    string
	Heard       *time.Time
	Left        bool
	Spent       []spent
	Certificate string
	Warn        bool
}

// spent is what somebody says that it has spent, with its terms.
type spent struct{ Epsilon, Terms string }

type people struct {
	People []person
	Range  string
	Pages  []Link
}

func peopleOf(st server.Status, place url.Values, page int) people {
	var out people
	from, to := page*pageSize, min(len(st.Participants), (page+1)*pageSize)
	for _, p := range st.Participants[from:to] {
		one := person{Name: p.Name, Here: p.Connected, Asked: p.Asked, Answer: p.Answer, Word: p.Word, Released: prose.Count(p.Released), Heard: p.LastHeard, Left: p.Left}
		if p.Connected {
			one.Heard = nil // it is here: when it last said something changes all the time
		}
		for _, s := range p.Spent {
			one.Spent = append(one.Spent, statedIn(s.Privacy))
		}
		if p.CertificateExpires != nil {
			one.Certificate, one.Warn = ending(*p.CertificateExpires, st.Now)
		}
		out.People = append(out.People, one)
	}
	if len(st.Participants) > pageSize {
		out.Range = fmt.Sprintf("%s to %s of %s", prose.Count(from+1), prose.Count(to), prose.Count(len(st.Participants)))
		out.Pages = pages(place, "participants", page, (len(st.Participants)-1)/pageSize)
	}
	return out
}

func statedIn(s event.Statement) spent {
	return spent{"epsilon " + prose.Cost(float64(s.Epsilon)), layout.Claimed(s)}
}
