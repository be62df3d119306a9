package federation_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

const peoplePolicy = `degree: 120
ceilings:
  - {unit: node, relation: own-record, claim: proved, epsilon: 3.5, delta: 2.5e-4}
  - {unit: node, relation: full-removal, claim: proved, epsilon: 3.5, delta: 2.5e-4}
`

// authorities writes a population for each of some health authorities.
func (l *loopback) authorities(n int) {
	l.t.Helper()
	for i := range n {
		p, err := contacts.Generate(l.t.Context(), contacts.Settings{Persons: 300 + 50*i, Seed: uint64(i + 1)})
		if err == nil {
			_, err = p.Write(l.t.Context(), filepath.Join(l.dir, "populations", fmt.Sprintf("silo-%d", i)), contacts.Writing{})
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// peopleFile is a run among authorities that bring files of their own.
func peopleFile(kind, nodes string) string {
	return fmt.Sprintf(`name: people
seed: 4
data: {kind: pandemic, partition: own}
algorithm: {kind: %s, mode: sound, rounds: 2, local: {steps: 3}}
privacy: {epsilon: 3, delta: 2.5e-4, noise: exact-seeded, public_size: 400, nodes: %s, silos: [{name: silo-1, public_size: 350, epsilon: 2}]}
`, kind, nodes)
}

// joinPeople takes part with the files in a folder.
func (l *loopback) joinPeople(ctx context.Context, name, policy string) (participant.JoinResult, error) {
	f, err := plan.LoadJoinFile([]byte(fmt.Sprintf("data: {kind: own, run: ../run.yaml, source: {path: ../populations/%s}}\n", name)), filepath.Join(l.dir, name))
	if err != nil {
		l.t.Fatal(err)
	}
	allowed, err := plan.LoadPolicy([]byte(policy))
	if err != nil {
		l.t.Fatal(err)
	}
	return participant.Join(ctx, participant.JoinOptions{File: f, Policy: allowed, Seeded: true, Log: l.log})
}

// TestPeopleOverTheNetwork: health authorities with people and contacts of their own train
// what the simulation does, bit for bit, and each one's ledger is charged for persons, by
// its own size and target.
func TestPeopleOverTheNetwork(t *testing.T) {
	const authorities = 3
	for name, c := range map[string]struct {
		file     string
		relation event.Relation
		step     func(noise float64) event.Event
	}{
		"fedavg, thinned":   {peopleFile("fedavg", "{contacts: thinned, keep: 0.1, degree: 150}"), event.Removal, func(s float64) event.Event { return event.NodeThinned{Degree: 150, Keep: 0.1, Noise: s} }},
		"mr-mtl, nominated": {peopleFile("mr-mtl", "{contacts: nominated}"), event.OwnRecord, func(s float64) event.Event { return event.NodeSum{Examples: 6, Noise: s} }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoopback(t)
			l.authorities(authorities)
			l.write("run.yaml", c.file)
			run, err := config.Resolve([]byte(c.file), []string{"data.source.path=" + filepath.Join(l.dir, "populations")}, sim.Checks()...)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sim.New(run, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			d, err := sim.CreateDirectory(filepath.Join(l.dir, "simulated"), []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			simulated, err := s.Execute(t.Context(), d, func(sim.Moment) {})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			a, names, server := l.serveSilos(ctx, nil, authorities)
			joined := make(chan error, len(names))
			for _, name := range names {
				l.enrol(ctx, a, name)
				go func() {
					_, err := l.joinPeople(ctx, name, peoplePolicy)
					joined <- err
				}()
			}
			for range names {
				if err := <-joined; err != nil {
					t.Fatal(err)
				}
			}
			if err := <-server; err != nil {
				t.Fatal(err)
			}
			wanted := map[string][]float64{}
			for _, one := range tensors(t, d.File(sim.ModelFile)) {
				wanted[one.Name] = one.Values
			}
			compare(t, filepath.Join(l.dir, "server", "model.safetensors"), wanted["hypothesis.0"])
			for i, name := range names {
				if own := wanted[fmt.Sprintf("client.%d", i)]; run.Algorithm.Kind == "mr-mtl" {
					compare(t, filepath.Join(l.dir, name, "out", "personal.safetensors"), own)
				}
				l.chargedFor(t, name, c.relation, c.step(float64(simulated.Participants[i].Noise)), float64(simulated.Participants[i].Epsilon))
			}
			if one, other := simulated.Participants[0], simulated.Participants[1]; float64(one.Epsilon) < 2.99 || float64(other.Epsilon) > 2 || other.Batch != 350 {
				t.Errorf("epsilon %v, and %v at size %d, of one with its own target", one.Epsilon, other.Epsilon, other.Batch)
			}
		})
	}
}

// chargedFor: two rounds of three steps stand in a participant's ledger, on the terms and
// with the noise of the simulation, and add up to what it spent there.
func (l *loopback) chargedFor(t *testing.T, name string, relation event.Relation, step event.Event, epsilon float64) {
	t.Helper()
	book, err := ledger.Read(filepath.Join(l.dir, name, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	entries := book.Entries()
	if len(entries) != 2 {
		t.Fatalf("%s was charged %d times", name, len(entries))
	}
	sum, err := account.NewRDP(account.Terms{Unit: event.UnitNode, Relation: relation, Claim: event.ClaimProved}, account.WithExactNoise())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		of := e.Release.What.(event.Composed).Parts[0].(event.Repeated)
		if of.Times != 3 || of.Of.(event.Sampled).Of != step || e.Status != ledger.Committed {
			t.Errorf("%s was charged for %s, %s", name, event.Describe(e.Release.What), e.Status)
		}
		if err := sum.Compose(e.Release); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if g, err := sum.Guarantee(2.5e-4); err != nil || g.Epsilon != epsilon {
		t.Errorf("%s: the ledger has epsilon %v, the simulation %v (%v)", name, g.Epsilon, epsilon, err)
	}
}

// TestPromisesAreOnesOwn: a server cannot learn from a refusal whether people keep a promise
// of its choice. Data that break the policy's own are refused before anybody is asked; a
// plan that promises less than the policy, or that the policy has no promise for, is refused
// whatever the data are.
func TestPromisesAreOnesOwn(t *testing.T) {
	l := newLoopback(t)
	l.authorities(1)
	l.write("run.yaml", peopleFile("fedavg", "{contacts: thinned, keep: 0.1, degree: 100}")) // nobody has so many
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, names, ended := l.serveSilos(ctx, nil, 1)
	l.enrol(ctx, a, names[0])
	if _, err := l.joinPeople(ctx, names[0], peoplePolicy); !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "promises no less than 120") {
		t.Errorf("a plan that promises less: %v", err)
	}
	cancel()
	<-ended
	run, err := plan.Read(filepath.Join(l.dir, "run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shape, _ := data.ShapeOf(run.Data)
	risk, err := model.Of(run, shape)
	if err != nil {
		t.Fatal(err)
	}
	if err := (plan.Policy{}).Allows(plan.Plan{}, run, risk); !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "this policy promises nothing") {
		t.Errorf("no promise: %v", err)
	}
	if err := (plan.Policy{Degree: 100}).Allows(plan.Plan{}, run, risk); err != nil {
		t.Errorf("the same promise: %v", err)
	}
	broken := strings.Replace(peoplePolicy, "degree: 120", "degree: 5", 1)
	if _, err := l.joinPeople(t.Context(), names[0], broken); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "nobody has more than 5 contacts") {
		t.Errorf("people with more contacts than their owner promises: %v", err)
	}
}
