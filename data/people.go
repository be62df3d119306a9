package data

// People are a population, one example a person, whose examples hold something of others:
// their contacts. What an example holds is computed when it is read; which others enter it
// is settled by a rule before anything is trained.
type People interface {
	Persons() int
	ID(person int) int64 // the person's number in the files
	// Inputs is how many values an input has, the constant included.
	Inputs() int
	// Windows is how many inputs a person has. All of them are one example: their gradients
	// add up before anything is clipped.
	Windows() int
	// Input sets dst to one of a person's inputs and returns its label: 1 or 0, or -1 if the
	// input does not count. It may be called by several goroutines.
	Input(dst []float32, person, window int) int
	// Under is the population with examples by a rule, and how many examples change at most
	// when a unit of its relation goes; proved says whether that is a theorem.
	Under(r NodeRule) (limited People, examples int, proved bool, err error)
}

// stepwise are people whose windows are drawn for every step of training anew.
type stepwise interface {
	// InStep are the same people as one step sees them: the same step, the same windows.
	InStep(step uint64) People
}

// InStep are people as one step of training sees them.
func InStep(p People, step uint64) People {
	if r, ok := p.(stepwise); ok {
		return r.InStep(step)
	}
	return p
}

// NodeRule says which contacts enter whose example: package contacts tells what its rules
// are worth.
type NodeRule struct {
	Relation string
	Most     int      // examples that a person is in, its own included
	Take     int      // of those offered, that an example takes
	Keep     float64  // share of contacts that is kept
	Degree   int      // contacts that nobody has more of: a promise
	Key      uint64   // of hashes
	Secret   [16]byte // that contacts are thinned by: of one step, and known to nobody
	Longest  bool     // the longest contacts come first
}

// Redrawn are people whose examples hold other contacts in every step of training: each is
// kept with a chance, by a secret of the step's own. Until they are redrawn they hold none.
type Redrawn interface {
	People
	Redraw(secret [16]byte, keep float64) (People, error)
}

// somePeople are persons of a population, by their places.
type somePeople struct {
	People
	places []int
}

func (s somePeople) Persons() int { return len(s.places) }

func (s somePeople) ID(person int) int64 { return s.People.ID(s.places[person]) }

func (s somePeople) Input(dst []float32, person, window int) int {
	return s.People.Input(dst, s.places[person], window)
}

func (s somePeople) InStep(step uint64) People {
	return somePeople{InStep(s.People, step), s.places}
}

func (s somePeople) Under(r NodeRule) (People, int, bool, error) {
	limited, examples, proved, err := s.People.Under(r)
	some := somePeople{limited, s.places}
	if _, ok := limited.(Redrawn); ok {
		return someRedrawn{some}, examples, proved, err
	}
	return some, examples, proved, err
}

// someRedrawn are persons of a population whose contacts are drawn anew.
type someRedrawn struct{ somePeople }

func (s someRedrawn) Redraw(secret [16]byte, keep float64) (People, error) {
	drawn, err := s.People.(Redrawn).Redraw(secret, keep)
	return somePeople{drawn, s.places}, err
}
