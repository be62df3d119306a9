package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
)

// The lies that are simulated.
const (
	signFlip  = "sign-flip"
	scaleUp   = "scale"
	labelFlip = "label-flip"
)

// checkHostile finds lies that cannot be told.
func checkHostile(run config.Run) config.Faults {
	var c config.Checker
	h := run.Judge.Hostile
	c.Require((h.Attack == "") == (h.Share == 0), "judge.hostile", "has the attack %q by a share of %v of the clients; give both, or neither", h.Attack, h.Share)
	if h.Attack == "" {
		return c.Faults()
	}
	shape, whole := data.ShapeOf(run.Data)
	if h.Attack == labelFlip {
		c.Require(!whole || shape.Classes > 1 && shape.Vocabulary == 0 && shape.Windows == 0, "judge.hostile.attack", "is label-flip, but the examples have no classes that could be turned; allowed: sign-flip, scale")
		return c.Faults()
	}
	c.Require(run.Privacy.Protects != "client", "judge.hostile.attack", "is %s, but the server sees no single update under privacy.protects client, and what they may be is not checked here; allowed: label-flip", h.Attack)
	c.Require(!fl.IsCentral(run.Algorithm.Kind), "judge.hostile.attack", "is %s, but in %s nobody sends anything; allowed: none", h.Attack, run.Algorithm.Kind)
	return c.Faults()
}

// liars are the hostile clients of a simulation.
type liars struct {
	config.Hostile
	n    int    // parameters of a model
	lies []bool // by client
}

// newLiars draws who lies, by the seed; nil: nobody does.
func newLiars(run config.Run, a *fl.Algorithm, parameters, clients int) (*liars, error) {
	h := run.Judge.Hostile
	switch {
	case h.Attack == "":
		return nil, nil
	case h.Attack != labelFlip && a.ReleaseLength() == 0:
		return nil, fmt.Errorf("judge.hostile.attack is %s, but in %s nobody sends anything; allowed: label-flip", h.Attack, run.Algorithm.Kind)
	case int(h.Share*float64(clients)+1e-9) == 0:
		return nil, fmt.Errorf("judge.hostile.share is %v, which of %d clients is nobody; allowed: %.3g or more", h.Share, clients, 1/float64(clients))
	}
	l := &liars{h, parameters, make([]bool, clients)}
	order := make([]int, clients)
	for i := range order {
		order[i] = i
	}
	family := rng.NewFamily(run.Seed, "hostile clients")
	stream := family.Stream(0, 0)
	stream.Shuffle(order)
	for _, i := range order[:int(h.Share*float64(clients)+1e-9)] {
		l.lies[i] = true
	}
	return l, nil
}

// turn gives hostile clients turned labels: class c of k becomes k-1-c. Their own data stay
// as they were for whoever judges.
func (l *liars) turn(participants []fl.Participant, classes int) {
	if l.Attack != labelFlip {
		return
	}
	turned := map[*data.Images]*data.Images{}
	for i := range participants {
		if !l.lies[i] {
			continue
		}
		own := *participants[i].Data
		if own.Images == nil {
			own.Y = slices.Clone(own.Y)
			for j, y := range own.Y {
				own.Y[j] = float64(classes-1) - y
			}
		} else {
			if turned[own.Images] == nil {
				images := *own.Images
				images.Labels = slices.Clone(images.Labels)
				for j, y := range images.Labels {
					images.Labels[j] = classes - 1 - y
				}
				turned[own.Images] = &images
			}
			own.Images = turned[own.Images]
		}
		participants[i].Data = &own
	}
}

// forge changes what a hostile client releases: its distance to the model that it was
// given is turned round, or made larger.
func (l *liars) forge(b *fl.Broadcast, p *fl.Participant, release []float64) {
	n, factor := l.n, cmp.Or(l.Factor, 1)
	switch {
	case !l.lies[p.ID] || l.Attack == labelFlip:
		return
	case l.Attack == signFlip:
		factor = -factor
	default:
		factor = cmp.Or(l.Factor, 10)
	}
	at := max(0, min(p.Cluster, len(b.Hypotheses)/n-1)) * n
	for j, from := range b.Hypotheses[at : at+n] {
		release[j] = from + factor*(release[j]-from)
	}
}
