package fl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
)

// Method is one way of training together, both its halves. It says nothing of privacy:
// what depends on a participant's data goes through a Guard.
type Method interface {
	// Outline is what a protection must know of the method.
	Outline() Outline
	// Begin fills the server's state before the first round.
	Begin(st *State)
	// Tell adds to a broadcast what the method sends beside the models.
	Tell(st *State, b *Broadcast)
	// Respond is the participant's half of a round: it chooses and trains through g, and
	// has g send the result. It reports whether something was sent.
	Respond(g Guard, w *Worker, b *Broadcast, p *Participant, out []float64) (released bool, err error)
	// Aggregate is the server's half: it moves the models on.
	Aggregate(st *State, r Releases) Outcome
	// Adopt sets dst to the model that a participant uses once the server is where b
	// says; with a learner, which may be nil, it can ask the participant's own examples.
	// It changes nothing.
	Adopt(dst []float64, b *Broadcast, p *Participant, l model.Learner)
}

// Outline is what a protection must know of a method.
type Outline struct {
	Models    int  // that the server keeps, and participants may choose from
	Passes    int  // over a participant's examples in a round
	Chooses   int  // rounds, from the first one, in which participants choose a model
	Sends     int  // rounds, from the first one, in which something is sent
	Declares  bool // releases end with a Declaration
	Personal  bool // participants keep a model of their own
	Single    bool // the server needs every participant's release, not their sum alone
	Continues bool // a participant's training goes on in every round from where it was, optimiser and all
	// Moments is how many features examples have whose second moments, summed over all of
	// a participant's examples, are released instead of a model; 0: models are.
	Moments int
}

// MethodKind is what a method registers: one value in one file.
type MethodKind struct {
	Name  string
	Words string // what it is, in half a sentence
	// Common says what the server's model is, where it keeps one for all, to somebody who
	// was not there.
	Common Common
	// Keys are paths of the run file that it reads and not all methods do: docs/run-file.md.
	Keys []string
	// Central says that it needs all examples in one place: it is no federation.
	Central bool
	// Settings is what it needs otherwise than the data's papers have it; nil: nothing.
	Settings func(run *config.Run)
	// Check holds the run file against what the method can do.
	Check func(c *config.Checker, run config.Run)
	New   func(s Setup) (Method, error)
}

// Common is what one model of the server is to somebody who was not there.
type Common string

// The server's one model is trained for everybody, is the mean of everybody's own, or
// is nothing: none is trained there.
const (
	CommonGlobal  Common = "global"
	CommonMean    Common = "mean"
	CommonNothing Common = ""
)

// Setup is what a method or a protection is built from.
type Setup struct {
	Run          config.Run
	Model        model.Model
	Parameters   int // of Model
	Participants int
}

var methods = map[string]MethodKind{}

// RegisterMethod makes a method known to run files. It is called from init functions.
func RegisterMethod(k MethodKind) {
	if _, twice := methods[k.Name]; twice {
		panic("fl: the method " + k.Name + " is registered twice")
	}
	methods[k.Name] = k
	config.RegisterMethod(config.Choice{Name: k.Name, Keys: k.Keys, Settings: k.Settings})
}

// Methods are the names of the registered methods, sorted.
func Methods() []string { return names(methods) }

func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// MethodWords is what a method is, in half a sentence; empty: it is not registered.
func MethodWords(kind string) string { return methods[kind].Words }

// CommonOf is what the server's one model is under a method.
func CommonOf(kind string) Common { return methods[kind].Common }

// IsCentral says whether a method needs all examples in one place.
func IsCentral(kind string) bool { return methods[kind].Central }

func methodOf(run config.Run) (MethodKind, error) {
	k, ok := methods[run.Algorithm.Kind]
	if !ok {
		return k, fmt.Errorf("algorithm.kind %q is not among the registered methods: %s", run.Algorithm.Kind, strings.Join(Methods(), ", "))
	}
	return k, nil
}
