package live

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

// Federation shows how a federation's server stands: what the server knows, and no more.
type Federation struct {
	ask func(context.Context) (server.Status, error)

	mu    sync.Mutex
	asked time.Time
	last  server.Status
	fault error
}

// NewServed is the page of a server in its own process.
func NewServed(status func() (server.Status, error)) *Federation {
	return NewFederation(func(context.Context) (server.Status, error) { return status() })
}

// NewFederation shows what ask is told, which is asked once a second at most, and only while
// somebody looks.
func NewFederation(ask func(context.Context) (server.Status, error)) *Federation {
	return &Federation{ask: ask}
}

const (
	askEvery = time.Second
	askTime  = 15 * time.Second
)

// status is the server's, not older than a second.
func (f *Federation) status() (server.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.asked) >= askEvery*9/10 {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		st, err := f.ask(ctx)
		f.asked, f.fault = time.Now(), err
		if err == nil {
			f.last = st
		}
	}
	return f.last, f.fault
}

// Report: what a server leaves lies in its folder, not here.
func (f *Federation) Report(url.Values) (io.ReadCloser, error) { return nil, ErrNotThere }

// View is the whole federation; participants by pages.
func (f *Federation) View(place url.Values) (View, error) {
	st, err := f.status()
	if err != nil {
		return View{}, err
	}
	v := View{Title: st.Name, Lead: st.RunID, Status: fmt.Sprintf("%s: %s; %s of %s connected.", st.Name, st.State, prose.Count(st.Connected), prose.Counted(len(st.Participants), "participant", "participants"))}
	var p parts
	p.add("stand", standTemplate, standOf(st))
	if ends := endingOf(st); len(ends) > 0 {
		p.add("ending", endingTemplate, ends)
	}
	one, err := roundCurves(st.Recent)
	if err != nil {
		return View{}, err
	}
	if len(one.Panels) > 0 {
		p.add("curves", curvesTemplate, one)
	}
	page := pageOf(place, "participants", len(st.Participants))
	p.add("people", peopleTemplate, peopleOf(st, place, page))
	v.Parts = p.list
	return v, p.err
}

var (
	endingTemplate = parsed(partsText + `{{template "ending" .}}`)
	peopleTemplate = parsed(partsText + `{{template "people" .}}`)
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

// roundCurves are how rounds went, and how clusters formed where there are some: what the
// server makes of releases.
func roundCurves(rounds []server.RoundEnd) (curves, error) {
	out := curves{ID: "curves-h", Name: "Rounds", MapNote: "First two parameters of every model, from the first round that is known (line) to now (ring)."}
	var known curve
	for _, r := range rounds {
		if len(r.Models) > 1 {
			known.records = append(known.records, sim.RoundRecord{Round: r.Round, Sizes: r.Sizes, Hypotheses: r.Models})
		}
	}
	formed := shownRun{curves: []curve{known}}
	var err error
	out.Panels, err = formed.drawn(roundCharts(rounds))
	out.Map = formed.clusterMap()
	return out, err
}

// roundCharts are who was asked and who answered, and how long it took, by round.
func roundCharts(rounds []server.RoundEnd) []study.Chart {
	if len(rounds) < 2 {
		return nil
	}
	series := func(name string, of func(server.RoundEnd) float64) study.Series {
		s := study.Series{Name: name}
		for _, r := range rounds {
			y := of(r)
			s.Points = append(s.Points, study.Point{X: float64(r.Round), Y: y, Low: y, High: y})
		}
		return s
	}
	return []study.Chart{
		{Title: "Answers by round", XTitle: "round", YTitle: "participants", Series: []study.Series{
			series("asked", func(r server.RoundEnd) float64 { return float64(r.Asked) }),
			series("released", func(r server.RoundEnd) float64 { return float64(r.Released) }),
			series("declined", func(r server.RoundEnd) float64 { return float64(r.Declined) }),
		}},
		{Title: "Time by round", XTitle: "round", YTitle: "seconds", Series: []study.Series{
			series("seconds", func(r server.RoundEnd) float64 { return r.Seconds }),
		}},
	}
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
