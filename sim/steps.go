package sim

import (
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// watchSteps has noised steps recorded where somebody wants to see what they do: in one
// place, or if the clip moves. Elsewhere steps are too short and too many. They are
// counted, too, where noise is simulated: exact noise is for examples that nobody may look at.
func (s *Simulation) watchSteps() {
	p := s.run.Privacy
	rule := p.Clipping.Rule
	moves := rule != "" && rule != "fixed" || p.Clipping.Decay != 0
	server, atServer := s.rounds.Algorithm.Protection().(fl.ServerClip)
	switch {
	case atServer && moves:
		s.recordSteps = func() *StepsRecord {
			made, clip, step := server.ServerClip(s.rounds.State)
			return &StepsRecord{Made: made, Clip: event.Number(clip), Step: event.Number(step)}
		}
	case (p.Protects == "example" || p.Protects == "node") && (moves || fl.IsCentral(s.run.Algorithm.Kind)):
		s.recordSteps = s.stepsRecord
		if p.Noise != "simulated" {
			return
		}
		s.traces = make([]mech.StepTrace, len(s.rounds.Participants))
		for i := range s.rounds.Participants {
			s.rounds.Participants[i].Watch = &s.traces[i]
		}
	}
}

// stepsRecord is what the steps of the rounds since the last record were seen to do, and
// begins to count anew.
func (s *Simulation) stepsRecord() *StepsRecord {
	var all mech.StepTrace
	var clips, steps []float64
	most := int64(0)
	for i := range s.traces {
		all.Add(s.traces[i])
		s.traces[i] = mech.StepTrace{}
	}
	for i := range s.rounds.Participants {
		p := &s.rounds.Participants[i]
		clip, pace := p.Plan.Clip, 1.0
		if state := &p.Training.Clip; state.Steps > 0 {
			clip, pace = state.Clip, state.Pace
		}
		clips, steps = append(clips, clip), append(steps, s.stepSize()*pace)
		most = max(most, int64(p.Paid.Rounds)*int64(p.Plan.Steps))
	}
	clip, _ := fl.MedianAndMax(clips)
	step, _ := fl.MedianAndMax(steps)
	r := &StepsRecord{
		Made: int(most), Clip: event.Number(clip), Step: event.Number(step),
		Clipped:   shareOf(all.Beyond, all.Inside+all.Beyond),
		ClipUp:    shareOf(all.ClipUp, all.ClipSigns),
		StepUp:    shareOf(all.StepUp, all.StepSigns),
		ClipAgree: shareOf(all.ClipAgree, all.Compared),
		StepAgree: shareOf(all.StepAgree, all.Compared),
	}
	if s.traces == nil {
		return r
	}
	r.Norms = make([]int, NormBins)
	for i, n := range all.Norms {
		r.Norms[i] = int(n)
	}
	return r
}

// stepSize is that of the last round by the schedule, before anything learned.
func (s *Simulation) stepSize() float64 {
	pass, err := model.NewPass(s.run.Algorithm.Local, s.run.Algorithm.Rounds)
	if err != nil {
		return s.run.Algorithm.Local.Step
	}
	pass.At(s.rounds.State.Round - 1)
	return pass.StepSize
}

// shareOf is a part of so many; null of none.
func shareOf(part, of int64) *event.Number {
	return numberIf(of > 0, float64(part)/float64(max(1, of)))
}
