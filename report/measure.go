package report

import (
	"fmt"

	"github.com/coterie-fl/coterie/sim"
)

// pictures says that a result's examples are pictures of classes: only they have
// an accuracy, and their loss is a cross entropy whatever training followed.
func pictures(r sim.Result) bool { return r.Metrics.Accuracy != nil }

func lossName(r sim.Result) string {
	if pictures(r) {
		return "cross entropy"
	}
	return "RMSE"
}

// lossUnit is what its axis says.
func lossUnit(r sim.Result) string {
	if pictures(r) {
		return "validation cross entropy, in nats"
	}
	return "validation RMSE, in units of y"
}

// sameLossKind says that the results' losses can be drawn in one frame.
func sameLossKind(results []sim.Result) bool {
	for _, r := range results {
		if pictures(r) != pictures(results[0]) {
			return false
		}
	}
	return true
}

// lossColumn heads the summary's column, and lossNote explains it.
func lossColumn(results []sim.Result) string {
	if !sameLossKind(results) {
		return "Validation loss"
	}
	return "Validation " + lossName(results[0])
}

func lossNote(results []sim.Result) string {
	const rows = "mean over the validating clients of the root mean squared error"
	const images = "mean over the validating clients of the mean cross entropy of their pictures"
	text := rows
	switch {
	case !sameLossKind(results):
		text = rows + ", for pictures of the mean cross entropy,"
	case pictures(results[0]):
		text = images
	}
	return lossColumn(results) + ": " + text + " under the model that fits each best."
}

func accuracyOf(r sim.Result) string {
	if !pictures(r) {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(*r.Metrics.Accuracy))
}

// exampleWord is what a client holds many of.
func exampleWord(r sim.Result) string {
	if pictures(r) {
		return "picture"
	}
	return "row"
}
