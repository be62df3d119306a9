package federation_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/ledger"
)

// TestPaidMomentsOverTheNetwork: silos that pay for their moments have the models
// and constants of the simulation, bit for bit, and their ledgers the charge, once.
func TestPaidMomentsOverTheNetwork(t *testing.T) {
	dir := agrees(t, federationtest.Folder(t), federationtest.PaidRun)
	for i := range 3 {
		book, err := ledger.Read(filepath.Join(dir, fmt.Sprintf("silo-%d", i), "ledger"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := book.Summary()
		if err != nil || len(s.Runs) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		for round := range 3 {
			e, ok := book.Entry(ledger.Slot{Federation: s.Federations[0].Federation, Run: s.Runs[0].Run, Round: round})
			if !ok || (len(federationtest.MomentNoises(e)) == 1) != (round == 0) {
				t.Errorf("silo %d, round %d is charged %+v", i, round+1, e.Release)
			}
		}
	}
}
