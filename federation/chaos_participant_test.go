package federation_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/ledger"
)

// The plan's rounds fit the witnessed participant's ceilings if the hypotheses stay
// together: each release loses parameters/noise = 1 at its radius, and twice that
// between any two data sets. They do not stay together, the noise drives them about
// 150 apart, and so epsilon_switch ends the run on its way, after some 30 releases.
const (
	witnessedRounds = 1000
	witnessedSwitch = 15000
)

const witnessedParameters = 500

var witnessedRun = fmt.Sprintf(`name: witnessed
data: {kind: synthetic, users: 1, samples: 3, dimension: %[1]d, groups: 1}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: %[2]d, clients_per_round: 1}
privacy: {noise_multiplier: %[1]d, radius: 0.3, noise: exact}
`, witnessedParameters, witnessedRounds)

var witnessedPolicy = fmt.Sprintf(`ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: %v, epsilon_switch: %d}
`, witnessedRounds+0.5, witnessedSwitch)

// TestParticipantKilledAtAnyInstant kills a real participant, at named points and at
// random instants, until its budget is used up: nothing leaves that its ledger does
// not have, nothing is charged twice, the ceiling holds.
func TestParticipantKilledAtAnyInstant(t *testing.T) {
	kills := 100
	if *federationtest.Soak {
		kills = 1000
	}
	rng := rand.New(rand.NewPCG(11, 12))
	var done, releases, partial, seen, ended int
	var total int64
	for life := 0; done < kills; life++ {
		dir := ramDisk(t)
		s := newWitness(t, dir, witnessedRun, witnessedParameters)
		if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(witnessedPolicy), 0o600); err != nil {
			t.Fatal(err)
		}
		enrolled(t, s.authority, s.address, "p", dir)
		for refused := false; !refused && done < kills; {
			point := death(rng)
			cmd := helper("participant", "COTERIE_TEST_DIR="+dir, "COTERIE_TEST_SERVER="+s.address, "COTERIE_TEST_DEATH="+point)
			var words bytes.Buffer
			cmd.Stderr = &words
			if killed := s.liveAndDie(t, cmd, point == "", rng); killed {
				done++
				continue
			}
			if code := cmd.ProcessState.ExitCode(); code != 3 {
				t.Fatalf("the participant ended by itself with %d: %s", code, &words)
			}
			refused = true
			ended++
		}
		releases += s.settle(t)
		s.mu.Lock()
		partial, seen, total = partial+s.partial, seen+len(s.contents), total+s.bytes
		s.mu.Unlock()
	}
	t.Logf("%d kills: %d releases charged, %d seen by the witness, %d uploads cut short, %d bytes noted, %d budgets used up", done, releases, seen, partial, total, ended)
	if releases < done/4 || ended == 0 {
		t.Error("the participant hardly lived: this shows nothing")
	}
}

// death is a named point for half of the lives; the others die by the clock.
func death(rng *rand.Rand) string {
	if rng.IntN(2) == 0 {
		return ""
	}
	return fmt.Sprintf("%s*%d", deathPoints[rng.IntN(len(deathPoints))], 1+rng.IntN(3))
}

// liveAndDie starts a participant and kills it some time after it was first heard of,
// unless it dies or ends before.
func (s *witnessServer) liveAndDie(t *testing.T, cmd *exec.Cmd, byClock bool, rng *rand.Rand) (killed bool) {
	t.Helper()
	for len(s.requests) > 0 {
		<-s.requests
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for left := 1 + rng.IntN(12); byClock && left > 0; {
		select {
		case <-s.requests:
			left--
		case <-ended:
			left = 0
		case <-limit.C:
			t.Error("a participant did nothing for two minutes")
			left = 0
		}
	}
	if byClock {
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond) // anywhere between two requests
		_ = cmd.Process.Kill()
	}
	select {
	case <-ended:
	case <-limit.C:
		t.Error("a participant that was to die lived for two minutes")
		_ = cmd.Process.Kill()
		<-ended
	}
	return cmd.ProcessState.ExitCode() == -1
}

// settle holds what the witness saw against the ledger, and returns how many
// releases were charged.
func (s *witnessServer) settle(t *testing.T) int {
	t.Helper()
	book, err := ledger.Read(s.ledger)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := book.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Budgets) != 1 {
		t.Fatalf("%d budgets", len(sum.Budgets))
	}
	b := sum.Budgets[0]
	if b.Releases == 0 || b.Releases == witnessedRounds || *b.EpsilonSwitch > witnessedSwitch {
		t.Errorf("%d releases were charged with epsilon_switch %v, the ceiling is %v", b.Releases, *b.EpsilonSwitch, witnessedSwitch)
	}
	// Once each: a release costs 1 and the lattice's slack, which is far below 1/100.
	if lo, hi := float64(b.Releases), float64(b.Releases)*1.001; float64(b.Epsilon) < lo || float64(b.Epsilon) > hi {
		t.Errorf("%d releases were charged with %v", b.Releases, b.Epsilon)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for round, contents := range s.contents {
		if len(contents) != 1 {
			t.Errorf("round %d left in %d versions", round, len(contents))
		}
	}
	if len(s.contents) > b.Releases {
		t.Errorf("the witness saw %d releases, %d were charged", len(s.contents), b.Releases)
	}
	for _, a := range s.anomalies {
		t.Error(a)
	}
	return b.Releases
}
