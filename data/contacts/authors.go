package contacts

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// The kinds of inputs. All but the first are the authors': a person's own values, and those
// of some neighbours one after another. They are scaled by the population itself, so nothing
// can be proved of what is trained on them.
const (
	PooledInputs  = "pooled"
	AuthorsInputs = "authors" // neighbours with time, length and place of the contact: 1,671 of 20
	NodeInputs    = "authors-node"
	DoingInputs   = "authors-activity"          // neighbours with time, length and what was done
	WholeInputs   = "authors-activity-location" // and the place
)

// usualNeighbours is how many the authors have.
const usualNeighbours = 20

// values of a neighbour beside its own: the states of a window, and of the contact.
const (
	historyValues = 3 * Window
	timeValues    = 2 // when it began, how long it was
	doingValues   = 7 // what was done, one of seven kinds
	placeValues   = 8 // longitude, latitude, what the place is for
	ownValues     = nodeValues + 1
)

// layout is which values an input has.
type layout struct {
	neighbours          int
	time, doing, places bool
}

// layoutOf is that of a kind of inputs; ok is false for pooled ones.
func layoutOf(kind string, neighbours int) (l layout, ok bool) {
	l.neighbours = neighbours
	switch kind {
	case NodeInputs:
	case DoingInputs:
		l.time, l.doing = true, true
	case WholeInputs:
		l.time, l.doing, l.places = true, true, true
	case AuthorsInputs:
		l.time, l.places = true, true
	default:
		return layout{}, false
	}
	return l, true
}

// each is how many values a neighbour has.
func (l layout) each() int {
	n := nodeValues + historyValues
	if l.time {
		n += timeValues
	}
	if l.doing {
		n += doingValues
	}
	if l.places {
		n += placeValues
	}
	return n
}

// scenes says whether inputs tell when or where contacts took place.
func (l layout) scenes() bool { return l.time || l.places }

// inputs is how many there are, with the constant.
func (l layout) inputs() int { return ownValues + l.neighbours*l.each() + 1 }

// neighbourhoods are persons as the authors see them: with some neighbours, always the same,
// in one window. Whoever was ill in the window has an example, too, of no illness to come.
type neighbourhoods struct {
	g      *Graph
	whole  *Graph // what g is a part of; nil: g is whole
	fitted *fitted
	kept   *Kept
	layout layout
	// windows of training are drawn for every step anew, by draws; the last days are foretold.
	draws    stream
	step     uint64
	foretold bool
}

// starts is how many windows have labels.
func (g *Graph) starts() int { return g.Days - Window - Ahead + 1 }

// errTooFewDays: there is no window to train on.
func (g *Graph) errTooFewDays() error {
	if g.starts() > 0 {
		return nil
	}
	return fmt.Errorf("%d days are known, and no window of %d with the %d days after it fits in; %d or more would do", g.Days, Window, Ahead, Window+Ahead)
}

func (h neighbourhoods) Persons() int   { return h.g.Persons() }
func (h neighbourhoods) ID(i int) int64 { return h.g.ID[i] }
func (h neighbourhoods) Inputs() int    { return h.layout.inputs() }
func (h neighbourhoods) Windows() int   { return 1 }

// InStep are the same people in the windows of one step.
func (h neighbourhoods) InStep(step uint64) data.People {
	h.step = step
	return h
}

// Input is a person's; window is not read.
func (h neighbourhoods) Input(dst []float32, person, _ int) int {
	end := h.g.Days
	if !h.foretold {
		end = Window + h.draws.of(h.step).below(h.g.starts(), uint64(h.g.ID[person]))
	}
	h.fill(dst, person, end)
	if susceptible, infected := h.g.Label(person, end); susceptible && infected {
		return 1
	}
	return 0
}

// Under draws other neighbours, by a rule. The authors' own are those that are there.
func (h neighbourhoods) Under(r data.NodeRule) (data.People, int, bool, error) {
	rule := Rule(r)
	if rule.Relation == Authors && rule.Most == h.layout.neighbours {
		return h, rule.Most, false, nil
	}
	rule.Longest = rule.Longest && rule.Relation != Authors
	kept, err := rule.Of(h.g)
	if err != nil {
		return nil, 0, false, err
	}
	most, _ := rule.Examples()
	h.kept = &kept
	return h, most, false, nil // scaled by everybody: no rule proves anything
}

// fill writes a person's input for the window that ends before day end.
func (h neighbourhoods) fill(dst []float32, i, end int) {
	g := h.g
	dst = dst[:h.layout.inputs()]
	clear(dst)
	copy(dst, h.fitted.nodes[i*nodeValues:(i+1)*nodeValues])
	dst[nodeValues] = indicator(windowOf(g.Infected[i]|g.Recovered[i], end) == 0)
	from, to := h.kept.Offsets[i], h.kept.Offsets[i+1]
	each := h.layout.each()
	for slot := range min(h.layout.neighbours, int(to-from)) {
		at := from + int64(slot)
		of := dst[ownValues+slot*each : ownValues+(slot+1)*each]
		j := int(h.kept.Other[at])
		copy(of, h.fitted.nodes[j*nodeValues:(j+1)*nodeValues])
		g.fillStates(of[nodeValues:nodeValues+historyValues], j, end)
		h.fillContact(of[nodeValues+historyValues:], at)
	}
	dst[len(dst)-1] = 1
}

// allSusceptible are the states of a window without illness.
var allSusceptible = func() (of [historyValues]float32) {
	for day := range Window {
		of[3*day] = 1
	}
	return of
}()

// fillStates writes a person's state on every day of a window, one of three.
func (g *Graph) fillStates(of []float32, j, end int) {
	copy(of, allSusceptible[:])
	infected, recovered := windowOf(g.Infected[j], end), windowOf(g.Recovered[j], end)
	if infected|recovered == 0 {
		return
	}
	for day := range Window {
		switch bit := uint64(1) << day; {
		case infected&bit != 0:
			of[3*day], of[3*day+1] = 0, 1
		case recovered&bit != 0:
			of[3*day], of[3*day+2] = 0, 1
		}
	}
}

// fillContact writes what is known of a contact that was kept.
func (h neighbourhoods) fillContact(of []float32, at int64) {
	how := h.kept.How[at]
	if h.layout.time {
		of[0] = float32(h.kept.Start[at]) * Tick / daySeconds
		of[1] = float32(how.Seconds()) / daySeconds
		of = of[timeValues:]
	}
	if h.layout.doing {
		of[how.Kind()-Home] = 1
		of = of[doingValues:]
	}
	if h.layout.places {
		place := h.g.Places[h.kept.Where[at]]
		of[0] = h.fitted.longitude.of(float64(place.Longitude))
		of[1] = h.fitted.latitude.of(float64(place.Latitude))
		for bit := range 6 {
			of[2+bit] = float32(place.For >> bit & 1)
		}
	}
}

// neighbourly gives a graph's persons their neighbours and the authors' inputs: those who
// train, and those who are judged.
func (g *Graph) neighbourly(l layout, f *fitted, seed uint64) (trains, judged neighbourhoods, err error) {
	if err := g.errTooFewDays(); err != nil {
		return trains, judged, err
	}
	kept, err := Rule{Relation: Authors, Most: max(1, l.neighbours), Key: seed}.Of(g)
	if err != nil {
		return trains, judged, err
	}
	trains = neighbourhoods{g: g, fitted: f, kept: &kept, layout: l, draws: streamOf(seed, 95)}
	judged = trains
	judged.foretold = true
	return trains, judged, nil
}

// settleAuthors is how the authors train, as far as a file does not say otherwise.
func settleAuthors(r *config.Run, given func(path string) bool) {
	l := &r.Algorithm.Local
	usually := func(path string, set func()) {
		if !given(path) {
			set()
		}
	}
	usually("data.neighbours", func() { r.Data.Neighbours = usualNeighbours })
	usually("model.bias", func() { r.Model.Bias = 0 })
	usually("algorithm.local.loss", func() { l.Loss = "focal" })
	usually("algorithm.local.batch", func() { l.Batch = 512 })
	usually("algorithm.local.step", func() { l.Step = 0.2 })
	usually("algorithm.local.optimiser", func() { l.Optimiser = "sgd" })
	usually("algorithm.local.steps", func() { l.Steps = 0 })
	usually("algorithm.local.epochs", func() { l.Epochs = 2 })
	usually("privacy.clip", func() { r.Privacy.Clip = 15 })
	usually("privacy.nodes.examples", func() {
		if r.Privacy.Nodes.Contacts == "drawn" {
			r.Privacy.Nodes.Examples = r.Data.Neighbours
		}
	})
}
