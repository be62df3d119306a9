// Package repro lists the papers' experiments, a package a chapter, and makes the demo.
package repro

import (
	"context"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/boundeddp"
	"github.com/coterie-fl/coterie/repro/clipping"
	"github.com/coterie-fl/coterie/repro/crossing"
	"github.com/coterie-fl/coterie/repro/fairness"
	"github.com/coterie-fl/coterie/repro/groupprivacy"
	"github.com/coterie-fl/coterie/repro/inversion"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/meanestimation"
	"github.com/coterie-fl/coterie/repro/membership"
	"github.com/coterie-fl/coterie/repro/pandemic"
	"github.com/coterie-fl/coterie/repro/pca"
	"github.com/coterie-fl/coterie/repro/robust"
	"github.com/coterie-fl/coterie/repro/silos"
)

// experiments in the order in which they are listed.
var experiments = slices.Concat(groupprivacy.Experiments, pca.Experiments, fairness.Experiments, inversion.Experiments, meanestimation.Experiments, silos.Experiments, crossing.Experiments, clipping.Experiments, membership.Experiments, boundeddp.Experiments, pandemic.Experiments, robust.Experiments)

// List is every experiment.
func List() []lab.Experiment { return slices.Clone(experiments) }

// Run makes an experiment, or what is left of it after a stop, and writes its
// report.
func Run(ctx context.Context, id string, o lab.Options) (study.Study, error) {
	for _, e := range experiments {
		if e.ID == id {
			return e.Run(ctx, o)
		}
	}
	return study.Study{}, fmt.Errorf("experiment %q: %w; coterie reproduce lists them", id, lab.ErrUnknown)
}
