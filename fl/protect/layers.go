package protect

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// layer is a part of the update that is sanitised on its own: one layer of a
// network (thesis 001, section 2.5.1), or all of the update.
type layer struct {
	model.Span
	share float64 // of the public radius
	most  float64 // in paper mode: the largest radius that an update's own length can be
}

// newLayers cuts a model's update as the run file says. Without shares the public
// radius C goes to layers as C*sqrt(n_l/n): the same noise on every parameter.
func newLayers(p config.Privacy, m model.Model) ([]layer, error) {
	spans := []model.Span{{Name: "all", To: m.Parameters()}}
	if p.Sanitise == fl.SanitiseLayers {
		spans = model.Layers(m)
	}
	var c config.Checker
	c.Require(len(p.LayerShares) == 0 || p.Sanitise == fl.SanitiseLayers && p.Accounting == "sound", "privacy.layer_shares",
		"are given, but only sound mode with privacy.sanitise: layers has public radii for layers; allowed: none")
	c.Require(len(p.LayerShares) == 0 || p.Sanitise != fl.SanitiseLayers || len(p.LayerShares) == len(spans), "privacy.layer_shares",
		"has %d values, but the model has %d layers with parameters; allowed: one for each", len(p.LayerShares), len(spans))
	for i, share := range p.LayerShares {
		c.Require(share > 0 && share <= 1, fmt.Sprintf("privacy.layer_shares[%d]", i), "is %v; allowed: above 0, at most 1", share)
	}
	if faults := c.Faults(); faults != nil {
		return nil, faults
	}
	out := make([]layer, len(spans))
	for i, s := range spans {
		out[i] = layer{Span: s, share: math.Sqrt(float64(s.Len()) / float64(m.Parameters()))}
		if len(p.LayerShares) > 0 {
			out[i].share = p.LayerShares[i]
		}
	}
	return out, nil
}

// mostRadius is beyond what an update's own length can mean where noise is of floats.
const mostRadius = 1e150

// settleMost finds the largest radius that paper mode gives a layer.
func (u *update) settleMost() error {
	for i := range u.layers {
		part := &u.layers[i]
		part.most = mostRadius
		if u.sound() || !u.exact() {
			continue
		}
		l, err := u.lattice(part, 0)
		if err != nil {
			return err
		}
		part.most = u.laplace.MostRadius(part.Len(), l)
	}
	return nil
}
