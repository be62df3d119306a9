package method

import (
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestEndsOfTheSpectrum: drawn with lambda 0 MR-MTL is local training, at infinity
// FedAvg, to the last bit.
func TestEndsOfTheSpectrum(t *testing.T) {
	train, _ := fltest.Silos(5, 30, fltest.Features, 0.2)
	run := fltest.Run("mr-mtl")
	run.Algorithm.Prox = "server"
	for lambda, kind := range map[config.Lambda]string{"0": "local", "inf": "fedavg"} {
		run.Algorithm.Lambda = lambda
		got, _, _ := fltest.Federate(t, run, train)
		want, _, _ := fltest.Federate(t, fltest.Run(kind), train)
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("lambda %s: silo %d has %v, with %s %v", lambda, i, got[i], kind, want[i])
			}
		}
	}
}
