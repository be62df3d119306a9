package report

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// TestBatchesRow: the label shows both noises side by side, and the authors' epsilon with its
// claim, unit and relation.
func TestBatchesRow(t *testing.T) {
	row := batchesRow(&fl.Batches{
		Batch: 512, Examples: 2_600_000, Steps: 10156, MeanNoise: 387.5, FullSteps: 10, FullMeanNoise: 7.512,
		AuthorsCode: event.Statement{Claim: event.ClaimHeuristic, Unit: event.UnitNode, Relation: event.Removal, Epsilon: 2.286},
	})
	text := row.Value + row.Note
	for _, want := range []string{"388 in these 10", "7.51 in 10 steps on everybody", "epsilon 2.29", "heuristic, node, full-removal"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
