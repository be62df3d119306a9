package federation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// chaosRun has noise that can be repeated, so that a run has one right end.
const chaosRun = `name: killed
seed: %d
data: {kind: synthetic, users: 4, samples: 10}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: %d, clients_per_round: 3, sampling: balanced}
privacy: {noise_multiplier: 5, radius: 0.3, radius_decay: 0.99, noise: exact-seeded}
`

var chaosNames = []string{"a", "b", "c", "d"}

// doomed is a federation whose server is a process that is killed again and again;
// the participants live here.
type doomed struct {
	t       *testing.T
	dir     string
	address string
	words   bytes.Buffer
}

func newDoomed(t *testing.T, seed, rounds int) *doomed {
	d := &doomed{t: t, dir: ramDisk(t), address: freeAddress(t)}
	files := map[string]string{
		"run.yaml": fmt.Sprintf(chaosRun, seed, rounds),
		"serve.yaml": fmt.Sprintf("run: run.yaml\nlisten: %s\nca: ca\nparticipants: [a, b, c, d]\nquorum: 3\nminimum: 3\n"+
			"deadline_seconds: 300\nlinger_seconds: 2\nout: out\n", d.address),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := identity.Init(filepath.Join(d.dir, "ca"), identity.Options{Server: d.address}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *doomed) server() *exec.Cmd {
	cmd := helper("server", "COTERIE_TEST_DIR="+d.dir)
	cmd.Stderr = &d.words
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return cmd
}

// join takes part as `coterie join` does, and returns the model that came home.
func (d *doomed) join(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(d.dir, name)
	f, err := plan.LoadJoinFile([]byte("{}"), dir)
	if err != nil {
		return "", err
	}
	policy, err := plan.LoadPolicy([]byte("ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 1000, epsilon_switch: 100000}\n"))
	if err != nil {
		return "", err
	}
	res, err := participant.Join(ctx, participant.JoinOptions{File: f, Policy: policy, Seeded: true, Log: chaosLog(name)})
	return res.ModelSHA256, err
}

// run lets the federation run while its server is killed at the given instants, and
// returns the hash of the models it leaves, and how often it was killed.
func (d *doomed) run(after func(kill int) time.Duration) (hash string, kills int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	a, err := identity.Open(filepath.Join(d.dir, "ca"), identity.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := d.server()
	for _, name := range chaosNames {
		enrolled(d.t, a, d.address, name, filepath.Join(d.dir, name))
	}
	homes := make([]string, len(chaosNames))
	var all sync.WaitGroup
	for i, name := range chaosNames {
		all.Go(func() {
			if homes[i], err = d.join(ctx, name); err != nil {
				d.t.Errorf("%s: %v", name, err)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	for alive := true; alive; {
		select {
		case <-ended:
			alive = false
		case <-time.After(after(kills)):
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			kills++
			cmd = d.server()
		}
	}
	if err := cmd.Wait(); err != nil { // it leaves when everybody has fetched the models
		d.t.Errorf("the server: %v: %s", err, &d.words)
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "out", "model.safetensors"))
	if err != nil {
		d.t.Fatal(err)
	}
	if hash, err = model.TensorsSHA256(text); err != nil {
		d.t.Fatal(err)
	}
	for i, home := range homes {
		if home != hash {
			d.t.Errorf("%s took home %.8s, the server has %.8s", chaosNames[i], home, hash)
		}
	}
	return hash, kills
}

// TestServerKilledAtAnyInstant: a server that is killed again and again ends with the
// models of one that was not, and every participant was charged once a round.
func TestServerKilledAtAnyInstant(t *testing.T) {
	rounds, want := 50, 20
	if *federationtest.Soak {
		want = 200
	}
	rng := rand.New(rand.NewPCG(21, 22))
	total := 0
	for seed := 1; total < want; seed++ {
		calm, _ := newDoomed(t, seed, rounds).run(func(int) time.Duration { return time.Hour })
		d := newDoomed(t, seed, rounds)
		most := min(want-total, 20)
		hash, kills := d.run(func(kill int) time.Duration {
			if kill >= most {
				return time.Hour
			}
			return time.Duration(20+rng.IntN(400)) * time.Millisecond
		})
		if hash != calm {
			t.Fatalf("seed %d: after %d kills the models are %.8s, without %.8s", seed, kills, hash, calm)
		}
		d.charged(rounds)
		total += kills
	}
	t.Logf("%d kills, %d rounds a run", total, rounds)
}

// charged: three of four are asked in every round, and each has paid once for each.
func (d *doomed) charged(rounds int) {
	var releases int
	for _, name := range chaosNames {
		book, err := ledger.Read(filepath.Join(d.dir, name, "ledger"))
		if err != nil {
			d.t.Fatal(err)
		}
		sum, err := book.Summary()
		if err != nil || len(sum.Budgets) != 1 {
			d.t.Fatal(errors.Join(err, fmt.Errorf("%d budgets", len(sum.Budgets))))
		}
		b := sum.Budgets[0]
		releases += b.Releases
		if b.Committed != b.Releases {
			d.t.Errorf("%s: %d releases, of which %d were signed for", name, b.Releases, b.Committed)
		}
	}
	if releases != 3*rounds {
		d.t.Errorf("%d releases were charged, wanted %d", releases, 3*rounds)
	}
}

// chaosLog shows a participant's warnings if the test is verbose.
func chaosLog(name string) *slog.Logger {
	if !testing.Verbose() {
		return federationtest.Quiet()
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("participant", name)
}
