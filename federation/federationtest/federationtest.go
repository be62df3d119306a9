// Package federationtest holds what tests of federations share: a small run, its policy and plan, made-up schools.
package federationtest

import (
	"crypto/ed25519"
	"flag"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	_ "github.com/coterie-fl/coterie/all" // every data set, method and protection
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
)

// Soak has the long tests run.
var Soak = flag.Bool("soak", false, "run the long tests")

// Run is a run file for three participants.
const Run = `name: test
seed: 7
data: {kind: synthetic, users: 3, samples: 20}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 5, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact-seeded}
`

// Policy allows Run.
const Policy = `ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}
`

// Names are those of its participants.
var Names = []string{"north", "south", "west"}

// Plan is that of Run.
func Plan(t testing.TB) plan.Plan {
	run, err := plan.Resolve([]byte(Run))
	if err != nil {
		t.Fatal(err)
	}
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return plan.Plan{
		Version: plan.Version, Federation: "f", Run: "r", RunFile: string(text), Participants: 3, Shape: data.Shape{Features: 2},
		Quorum: 3, Minimum: 2, DeadlineSeconds: 60,
	}
}

// Signer is a key for receipts that stays.
func Signer(key ed25519.PrivateKey) func() (ed25519.PrivateKey, error) {
	return func() (ed25519.PrivateKey, error) { return key, nil }
}

// Quiet is a log that nobody reads.
func Quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// Log is a log that many write to.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write takes a line.
func (b *Log) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is all that was written.
func (b *Log) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
