package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/sim"
)

// TestLossIsCalledByItsName: pictures are judged by cross entropy and accuracy, rows
// by RMSE, and a page with both says neither in its table.
func TestLossIsCalledByItsName(t *testing.T) {
	rows := made(paperShape("group-private"))
	images := made(paperShape("group-private"))
	low, high := event.Number(0.871), event.Number(0.942)
	images.Metrics.Accuracy, images.Metrics.WorstDistance = &metrics.Figure{Value: 0.913, Low: &low, High: &high}, nil
	images.Config = "name: x\ndata: {kind: writers, set: mnist}\nmodel: {kind: network, name: femnist}\n" +
		"algorithm: {kind: group-private, local: {loss: cross-entropy, batch: 10, limit: 50}}\n"
	mirrored := made(paperShape("fedavg"))
	mirrored.Judge, mirrored.Metrics.MSE, mirrored.Metrics.RMSE, mirrored.Metrics.WorstDistance = "test", &metrics.Figure{Value: 0.0091}, nil, nil
	mirrored.Config = "name: x\ndata: {kind: fashion-mnist, task: reconstruct}\nalgorithm: {kind: fedavg}\n"
	ranged := made(paperShape("fedavg"))
	ranged.Judge, ranged.Metrics.WorstDistance, ranged.Metrics.RMSE = "test", nil, &metrics.Figure{Value: 11.4}
	ranged.Config = "name: x\ndata: {kind: table, target: score, task: number, target_range: [0, 45]}\nalgorithm: {kind: fedavg}\n"
	bare := made(paperShape("fedavg"))
	bare.Judge, bare.Metrics.WorstDistance = "test", nil
	clients := ranged
	clients.Judge = "clients"
	for _, c := range []struct {
		name        string
		results     []sim.Result
		has, hasNot []string
	}{
		{"rows", []sim.Result{rows}, []string{"Validation RMSE", "in units of y"}, []string{"cross entropy", "Accuracy"}},
		{"pictures", []sim.Result{images}, []string{"Validation cross entropy", "in nats", "91.3 %", "87.1 % to 94.2 %", "10 out of at most 50 pictures", "MNIST, 10 classes"}, []string{"RMSE", "in units of y", "all their rows"}},
		{"pictures given back", []sim.Result{mirrored}, []string{"Test MSE", "of pixels from 0 to 1", "100 × MSE", "0.91"}, []string{"RMSE", "in squared units of y", "Accuracy"}},
		{"a target with a range", []sim.Result{ranged}, []string{">Test MSE, in squared shares of the target’s range<", "11.4"}, []string{"units of y"}},
		{"a target with a range, judged by clients", []sim.Result{clients}, []string{">Validation RMSE, in shares of the target’s range<"}, []string{"units of y"}},
		{"a target without a range", []sim.Result{bare}, []string{">Test MSE, in squared units of y<"}, []string{"target’s range"}},
		{"a target with a range beside one without", []sim.Result{ranged, bare}, []string{">Test MSE, in squared units of y<", ">Test MSE, in squared shares of the target’s range<"}, nil},
		{"both", []sim.Result{rows, images}, []string{"Validation loss", "Validation RMSE", "Validation cross entropy", "91.3 %"}, nil},
	} {
		page := render(t, c.name, c.results...)
		for _, text := range c.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is missing", c.name, text)
			}
		}
		for _, text := range c.hasNot {
			if strings.Contains(page, text) {
				t.Errorf("%s: says %q", c.name, text)
			}
		}
	}
	var table bytes.Buffer
	if err := Table(&table, []sim.Summary{images.Summary}); err != nil || !strings.Contains(table.String(), "91.3 %") {
		t.Errorf("%v\n%s", err, table.String())
	}
}

func TestLayersAreOnTheLabel(t *testing.T) {
	r := made(paperShape("group-private"))
	if page := render(t, "whole", r); !strings.Contains(page, "every update as one vector") {
		t.Error("an update in one piece is not called so")
	}
	radius := event.Number(0.2)
	r.Privacy.Layers = []fl.LayerTerms{{Name: "0", Parameters: 320, EpsilonPerRelease: 64}, {Name: "1", Parameters: 18, EpsilonPerRelease: 3.6, Radius: &radius}}
	page := render(t, "layers", r)
	for _, text := range []string{"every layer apart", "layer 0: 320 parameters, epsilon 64", "at radius 0.2"} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is missing", text)
		}
	}
}
