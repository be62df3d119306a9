package federation_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl/evaluate"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/sim"
)

// evaluatedRun trains three rounds and then evaluates; its noise can be repeated, so that
// it has one right end.
const evaluatedRun = `name: evaluated
seed: 5
data: {kind: synthetic, users: 3, samples: 40, test_share: 0.3}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, clients_per_round: 0, local: {batch: 4}}
privacy: {protects: example, epsilon: 5, delta: 1.0e-4, clip: 1, relation: replace-one, noise: exact-seeded}
judge: {by: own, evaluate: {epsilon: 1, bound: 20}}
`

const evaluatedPolicy = `evaluation: true
ceilings:
  - {unit: example, relation: replace-one, claim: heuristic, epsilon: 7, delta: 1.0e-4}
`

// TestEvaluationKilledAndResumed: a participant that is killed at any point around what it
// records or sends of the evaluation, and a server that is killed with it, go on: the noised
// counts are those of the simulation, and every ledger has paid for them once.
func TestEvaluationKilledAndResumed(t *testing.T) {
	run, err := plan.Resolve([]byte(evaluatedRun))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	simulated, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	turns := make(chan struct{}, 3)
	for _, point := range deathPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			evaluateAndDie(t, fmt.Sprintf("%s*%d", point, run.Algorithm.Rounds+1), simulated.Evaluation)
		})
	}
}

// evaluateAndDie has a participant die at a point of its evaluation.
func evaluateAndDie(t *testing.T, death string, want *evaluate.Figures) {
	dir, address := ramDisk(t), freeAddress(t)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"a", "b", "c"}
	write("run.yaml", evaluatedRun)
	write("serve.yaml", fmt.Sprintf("run: run.yaml\nlisten: %s\nca: ca\nparticipants: [a, b, c]\ndeadline_seconds: 300\nlinger_seconds: 8\nout: out\n", address))
	a, err := identity.Init(filepath.Join(dir, "ca"), identity.Options{Server: address})
	if err != nil {
		t.Fatal(err)
	}
	var words bytes.Buffer
	start := func(cmd *exec.Cmd) *exec.Cmd {
		t.Helper()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, if all is well
		return cmd
	}
	serve := func() *exec.Cmd {
		cmd := helper("server", "COTERIE_TEST_DIR="+dir)
		cmd.Stderr = &words
		return start(cmd)
	}
	join := func(name, death string) *exec.Cmd {
		return start(helper("participant", "COTERIE_TEST_DIR="+filepath.Join(dir, name), "COTERIE_TEST_SERVER="+address, "COTERIE_TEST_SEEDED=1", "COTERIE_TEST_DEATH="+death))
	}
	server := serve()
	var living []*exec.Cmd
	for _, name := range names {
		write(filepath.Join(name, "policy.yaml"), evaluatedPolicy)
		enrolled(t, a, address, name, filepath.Join(dir, name))
	}
	for _, name := range names[1:] {
		living = append(living, join(name, ""))
	}
	if err := join(names[0], death).Wait(); err == nil {
		t.Fatalf("%s: the participant did not die", death)
	}
	_ = server.Process.Kill()
	_ = server.Wait()
	server = serve()
	for _, cmd := range append(living, join(names[0], "")) {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a participant ends with %v", err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("the server ends with %v: %s", err, &words)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server does not end")
	}
	compareEvaluations(t, want, event.UnitExample, filepath.Join(dir, "out", "result.json"))
	for _, name := range names {
		book, err := ledger.Read(filepath.Join(dir, name, "ledger"))
		if err != nil {
			t.Fatal(err)
		}
		if entries := book.Entries(); len(entries) != 4 || entries[3].Status != ledger.Committed || entries[3].Slot.Round != 3 {
			t.Errorf("%s: %s has %d entries, the last one %+v; want four, the last one committed", death, name, len(entries), entries[len(entries)-1])
		}
	}
}
