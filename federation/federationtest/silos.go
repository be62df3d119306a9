package federationtest

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/ledger"
)

// SiloRun trains personal models under example-level privacy.
const SiloRun = `name: silos
seed: 3
data: {kind: vehicle, standardise: none}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 1, local: {epochs: 1, step: 0.01, batch: 64}}
privacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}
`

// SiloPolicy allows SiloRun and PaidRun.
const SiloPolicy = `ceilings:
  - {unit: example, relation: replace-one, claim: heuristic, epsilon: 7, delta: 1.0e-4} # Vehicle was scaled at its source
  - {unit: example, relation: replace-one, claim: proved, epsilon: 7, delta: 1.0e-4}
methods: [mr-mtl, mocha]
`

// PaidRun has the silos pay for the moments of their features.
const PaidRun = `name: paid
seed: 3
data: {kind: school, standardise: paid}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, lambda: 1, local: {epochs: 1, step: 0.01, batch: 32}}
privacy: {epsilon: 6, delta: 1.0e-4, clip: 1, noise: exact-seeded}
`

// Schools are made-up ones.
func Schools(t *testing.T) *data.Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "school"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "school", "school.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := gzip.NewWriter(f)
	fmt.Fprint(text, "school")
	for j := range 28 {
		fmt.Fprintf(text, ",f%02d", j)
	}
	fmt.Fprintln(text, ",score")
	family := rng.NewFamily(8, "made-up schools")
	for school := range 3 {
		s := family.Stream(0, school)
		for range 60 {
			fmt.Fprint(text, school)
			for range 28 {
				fmt.Fprintf(text, ",%d", s.Below(2))
			}
			fmt.Fprintf(text, ",%d\n", 1+s.Below(70))
		}
	}
	if err := text.Close(); err != nil {
		t.Fatal(err)
	}
	return data.NewFolder(dir)
}

// MomentNoises are the noises of a charge's moments.
func MomentNoises(e ledger.Entry) (noises []float64) {
	for _, part := range e.Release.What.(event.Composed).Parts {
		if g, ok := part.(event.Gaussian); ok {
			noises = append(noises, g.Noise)
		}
	}
	return noises
}
