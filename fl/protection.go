package fl

import (
	"fmt"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// Protection is what a run does so that releases tell little. One value prices and
// draws: what a participant is charged is what its Guard may draw.
type Protection interface {
	// Begin fills what the server's state holds for the protection before the first round,
	// after the method's Begin.
	Begin(st *State)
	// Prepare settles what follows from a participant's public numbers, before its first
	// round.
	Prepare(p *Participant) error
	// Announce completes a broadcast with the round's public numbers.
	Announce(b *Broadcast) error
	// Guard is the protection with one worker's memory.
	Guard() (Guard, error)
	// Gather is what the server does to a round's releases before the method sees them.
	Gather(st *State, r Releases) (Releases, error)
	// Bounds are those of the values of a release's model.
	Bounds() []Bound
	// Price is what a round costs, from public numbers alone: a participant can decline
	// before it touches its data, and its declining tells nothing of them. False: rounds
	// have no price of their own, PriceAhead is for all.
	Price(b *Broadcast) (r event.Release, ok bool, err error)
	// PriceAhead is what the rounds from one on cost a participant that is asked in all
	// of them, as one release; rounds says how many that are. 0: nothing is sent any more,
	// and r is what one more would be.
	PriceAhead(p *Participant, from int) (r event.Release, rounds int, err error)
	// Spend is what a participant has spent, and, where that number is heuristic, what is
	// proved for the same releases (nil otherwise).
	Spend(p *Participant) (account.Guarantee, *account.Guarantee, error)
	// Describe adds to a run's statement what only the protection knows.
	Describe(p *Privacy)
}

// Guard does a participant's private work in a round. What it lets out, and whether it
// does, depends on the participant's data through paid mechanisms alone.
type Guard interface {
	// Open begins a round. A protection whose price is known before pays here; false
	// means that the participant declines.
	Open(b *Broadcast, p *Participant) (bool, error)
	// Choose is the server's model that the participant goes on with.
	Choose(b *Broadcast, p *Participant) (int, error)
	// Train makes one pass over the participant's examples. What leaves the finite numbers
	// ends in centre, which is public, and a Mishap.
	Train(b *Broadcast, p *Participant, theta, centre []float64, reg Pull) error
	// Send writes to out what the participant releases of theta, which it holds against
	// centre, one of the server's models. False means that it declines.
	Send(b *Broadcast, p *Participant, out, theta, centre []float64) (bool, error)
}

// SendsAsTrained is a guard whose releases are models just as Train leaves them: whatever
// they need is done to them in training, and Send never declines.
type SendsAsTrained interface{ SendsAsTrained() }

// Summer is a Guard that releases sums of second moments.
type Summer interface {
	// SecondMoments writes to out the sum of the second moments of all of the participant's
	// examples, as the protection lets it out: mech.MomentSum says in which order. False
	// means that it declines.
	SecondMoments(b *Broadcast, p *Participant, out []float64) (bool, error)
}

// ServerClip is a Protection whose server clips updates to what earlier releases led to.
type ServerClip interface {
	// ServerClip is how many sums the server has released, what it clips the next updates
	// to, and what it multiplies their mean by. All of it follows from releases.
	ServerClip(st *State) (made int, clip, step float64)
}

// Pull is a regulariser's gradient.
type Pull = model.Pull

// ProtectionKind is what a protection registers: one value in one file.
type ProtectionKind struct {
	Name  string
	Words string // what it protects, in half a sentence
	// Keys are paths of the run file that it reads and not all protections do:
	// docs/run-file.md.
	Keys []string
	// Settings is what it needs otherwise than the data's papers have it; nil: nothing.
	Settings func(run *config.Run)
	// Check holds the run file against what the protection can cover. Every fault is a
	// sentence about privacy or mathematics.
	Check func(c *config.Checker, run config.Run, o Outline)
	New   func(s Setup, o Outline) (Protection, error)
	// Sums says that Gather changes nothing: where the method needs no single release
	// either, a round's are added up as they come, and Gather is not asked.
	Sums bool
}

var protections = map[string]ProtectionKind{}

// RegisterProtection makes a protection known to run files. It is called from init
// functions.
func RegisterProtection(k ProtectionKind) {
	if _, twice := protections[k.Name]; twice {
		panic("fl: the protection " + k.Name + " is registered twice")
	}
	protections[k.Name] = k
	config.RegisterProtection(config.Choice{Name: k.Name, Keys: k.Keys, Settings: k.Settings})
}

// Protections are the names of the registered protections, sorted.
func Protections() []string { return names(protections) }

// ProtectionWords is what a protection protects, in half a sentence; empty: it is not
// registered.
func ProtectionWords(name string) string { return protections[name].Words }

func protectionOf(run config.Run) (ProtectionKind, error) {
	k, ok := protections[run.Privacy.Protects]
	if !ok {
		return k, fmt.Errorf("privacy.protects %q is not among the registered protections: %s", run.Privacy.Protects, strings.Join(Protections(), ", "))
	}
	return k, nil
}
