package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// runFile is a run's own file, resolved as it was when it began.
func (f *Folder) runFile(t thing) (config.Run, error) {
	return load(f, t, sim.RunFile, "run ", true, func(text []byte) (config.Run, error) { return config.Resolve(text, nil) })
}

// parseAs reads JSON.
func parseAs[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

// summary is what a finished run came to, and result all of it.
func (f *Folder) summary(t thing) (sim.Summary, error) {
	return load(f, t, sim.ResultFile, "summary ", true, parseAs[sim.Summary])
}

func (f *Folder) result(t thing) (*sim.Result, error) {
	return load(f, t, sim.ResultFile, "result ", false, parseAs[*sim.Result])
}

// describeRun fills in a row of the list.
func (f *Folder) describeRun(t thing, r *row) error {
	if t.finished {
		s, err := f.summary(t)
		if err != nil {
			return err
		}
		r.Name = s.Name
		r.Lines = []string{
			fmt.Sprintf("%s, %s, seed %d: %s, %s", prose.Method(s.Algorithm), s.Dataset, s.Seed, prose.Counted(s.Rounds, "round", "rounds"), figure(s.Metrics)),
			"epsilon " + prose.Cost(float64(s.Privacy.Epsilon)) + " (" + layout.Claimed(s.Privacy.Statement) + ")",
		}
		return nil
	}
	run, err := f.runFile(t)
	if err != nil {
		return err
	}
	r.Name = run.Name
	c := f.course(t, run)
	r.State = c.state
	r.Lines = []string{fmt.Sprintf("%s, %s, seed %d: %s", prose.Method(run.Algorithm.Kind), run.Data.Kind, run.Seed, c.words)}
	r.Meter = c.meter
	return nil
}

// figure is the one that a run is judged by.
func figure(m sim.Metrics) string {
	if m.Error != nil {
		return "error " + prose.Rounded(float64(*m.Error))
	}
	return "loss " + prose.Rounded(float64(m.Loss))
}

// standing is how far a run is that has no result yet.
type standing struct {
	state state
	words string
	meter *meter
	lines []sim.Progress
}

// course says where a run is that goes on, or was stopped.
func (f *Folder) course(t thing, run config.Run) standing {
	c := standing{state: stateOf(t, time.Now()), lines: f.progress(t.id), words: "it has not said anything yet"}
	methods := append([]string{run.Algorithm.Kind}, run.Judge.Compare...)
	at, lines := 0, c.lines
	for i, method := range run.Judge.Compare { // they come one after the other
		if others := f.progress(path.Join(t.id, sim.CompareFolder(method))); len(others) > 0 {
			at, lines = i+1, others
		}
	}
	if len(lines) == 0 {
		return c
	}
	last := lines[len(lines)-1]
	if last.Doing == "stopped" && c.state != finished {
		c.state = stopped
	}
	c.words = fmt.Sprintf("round %s of %s", prose.Count(min(last.Round+1, last.Rounds)), prose.Count(last.Rounds))
	within := 0.0
	switch {
	case last.Doing == "finishing":
		c.words = "the last figures"
	case last.Step > 0 && last.Steps > 0:
		c.words += fmt.Sprintf(", step %s of %s", prose.Count(last.Step), prose.Count(last.Steps))
		within = float64(last.Step) / float64(last.Steps)
	case last.Of > 1 && last.Record == nil:
		c.words += fmt.Sprintf(", %s, client %s of %s", last.Doing, prose.Count(last.Clients), prose.Count(last.Of))
	}
	if len(methods) > 1 {
		c.words += fmt.Sprintf(", %s (method %d of %d)", prose.Method(last.Method), at+1, len(methods))
	}
	done := (float64(at) + min(1, (float64(last.Round)+within)/float64(max(1, last.Rounds)))) / float64(len(methods))
	c.meter = newMeter(done, 1, fmt.Sprintf("%.0f %% done", 100*done))
	return c
}

// shownRun is all that a run's view is made of.
type shownRun struct {
	name     string
	run      config.Run
	known    bool // run is read
	state    state
	words    string
	meter    *meter
	curves   []curve
	privacy  *event.Statement
	ceiling  *event.Number
	people   []sim.Line
	history  sim.History
	summary  *sim.Summary
	seconds  float64
	declined int
}

// curve is one method's rounds.
type curve struct {
	method  string
	records []sim.RoundRecord
	spreads map[int][2]float64 // by round: the loss's interval
	errors  map[int][2]float64 // by round: that of the share of wrong answers
}

// gather reads what there is of a run.
func (f *Folder) gather(t thing) (s shownRun, err error) {
	if s.run, err = f.runFile(t); err == nil {
		s.known, s.name = true, s.run.Name
	} else if !t.finished {
		return s, err
	}
	if !t.finished {
		c := f.course(t, s.run)
		s.state, s.words, s.meter = c.state, c.words, c.meter
		s.curves = append(s.curves, curveOf(s.run.Algorithm.Kind, c.lines))
		for _, p := range c.lines {
			s.seconds = p.Seconds
			if p.Privacy != nil {
				s.privacy, s.ceiling = p.Privacy, p.Ceiling
			}
			if p.Record != nil {
				s.declined += p.Record.Declined
			}
		}
		for _, method := range s.run.Judge.Compare {
			folder := path.Join(t.id, sim.CompareFolder(method))
			if lines := f.progress(folder); len(lines) > 0 {
				s.curves = append(s.curves, curveOf(method, lines))
			} else if other, err := f.result(thing{id: folder}); err == nil && other != nil {
				s.curves = append(s.curves, curve{method: method, records: other.History.Rounds})
			}
		}
		s.history.Rounds = s.curves[0].records
		return s, nil
	}
	res, err := f.result(t)
	if err != nil {
		return s, err
	}
	if res == nil || res.Algorithm == "" {
		return s, errors.New("its result.json is of something else, or of an earlier version")
	}
	s.name, s.state, s.words, s.seconds = res.Name, finished, figure(res.Metrics), res.WallSeconds
	s.summary, s.people, s.history = &res.Summary, res.Participants, res.History
	s.privacy, s.ceiling, s.declined = &res.Privacy.Statement, res.Privacy.Ceiling, res.Privacy.DeclinedRequests
	s.curves = []curve{{method: res.Algorithm, records: res.History.Rounds}}
	if a := res.Metrics.Accuracy; a != nil && a.Low != nil && a.High != nil {
		returned := res.Rounds
		if res.Returned == "best" {
			returned = res.BestRound
		}
		s.curves[0].errors = map[int][2]float64{returned: {1 - float64(*a.High), 1 - float64(*a.Low)}}
	}
	for _, c := range res.Comparison {
		if other, err := f.result(thing{id: path.Join(t.id, sim.CompareFolder(c.Algorithm))}); err == nil && other != nil {
			s.curves = append(s.curves, curve{method: c.Algorithm, records: other.History.Rounds})
		}
	}
	return s, nil
}

func curveOf(method string, lines []sim.Progress) curve {
	c := curve{method: method, spreads: map[int][2]float64{}}
	for _, p := range lines {
		if p.Record == nil {
			continue
		}
		c.records = append(c.records, *p.Record)
		if p.Low != nil && p.High != nil {
			c.spreads[p.Record.Round] = [2]float64{float64(*p.Low), float64(*p.High)}
		}
	}
	return c
}

// duration is a time in words.
func duration(seconds float64) string {
	if !(seconds >= 0) || math.IsInf(seconds, 0) {
		return prose.Unknown
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Duration(max(1, math.Pow(10, math.Floor(math.Log10(max(seconds, 1e-3)))-1)*1e9))).String()
}
