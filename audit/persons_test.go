package audit

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// personsRun trains on people, of whom each is in six examples, in ten steps on everybody.
func personsRun(t *testing.T, seed uint64, privacy string) config.Run {
	t.Helper()
	run, err := config.Resolve([]byte("data: {kind: pandemic, persons: 2000}\nalgorithm: {mode: sound}\nprivacy: {epsilon: 6, delta: 1.0e-5"+privacy+"}\n"), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	run.Seed = seed
	return run
}

// TestMechanismOfPersons: nothing is found in the steps as shipped, with float noise and on
// the lattice, where six examples turn round with a person; the three faults are found, and
// a fourth, that a person is in more examples than were charged. Three plays of each; a play as
// shipped exceeds the claim with the chance FalseAlarm, below 1e-3 as is held.
func TestMechanismOfPersons(t *testing.T) {
	const each = 600
	more := func(_ int, noised []float64, clean func(float64) []float64, clip float64) {
		for j, v := range clean(clip) {
			noised[j] += 1.2 * v
		}
	}
	honest := play(t, personsRun(t, 1, ""), each, nil)
	if honest.round.nodes != 6 || honest.victim.People.Persons() != each*(6+5) || len(honest.still) != 10 {
		t.Fatalf("%d examples a person, %d in all, %d steps", honest.round.nodes, honest.victim.People.Persons(), len(honest.still))
	}
	plan, err := honest.plan(personsRun(t, 1, ""), CanaryOptions{Runs: each, Delta: 1e-5, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	if plan.falseAlarm > 1e-3 || plan.halfPower < 0.99 {
		t.Errorf("false alarms %v, power at half the noise %v", plan.falseAlarm, plan.halfPower)
	}
	for name, fault := range map[string]sabotage{"": nil, "more examples": more, "noise times 0.5": faults["noise times 0.5"], "clip ignored": faults["clip ignored"], "one step without noise": faults["one step without noise"]} {
		found, err := play(t, personsRun(t, 2, ""), each, fault).judge(plan)
		if err != nil {
			t.Fatal(err)
		}
		if found.Exceeds != (fault != nil) || found.Privacy.Unit != event.UnitNode || found.Privacy.Relation != event.OwnRecord {
			t.Errorf("%q: %+v %s", name, found.Privacy, found.Verdict)
		}
		for seed := range uint64(2) { // what makes judge say so, without its searches
			g := play(t, personsRun(t, seed+3, ""), each, fault)
			if share, _ := quietest(g.noises(plan.level())); (g.sides().guess(plan.o) >= plan.overAt || share < 0.1) != (fault != nil) {
				t.Errorf("%q, seed %d: found is not %v", name, seed+3, fault != nil)
			}
		}
	}
	exact, err := PlayGradients(context.Background(), personsRun(t, 3, ", noise: exact, nodes: {contacts: home}"), CanaryOptions{Runs: 100})
	if err != nil || exact.Exceeds || exact.Privacy.Relation != event.Removal || !slices.Contains(exact.Assumes, personAssumes) {
		t.Errorf("exact noise: %+v, %v", exact.Privacy, err)
	}
}

// TestPersonsThatCannotBeAudited: what the audit does not know is named.
func TestPersonsThatCannotBeAudited(t *testing.T) {
	thinned := personsRun(t, 1, ", nodes: {contacts: thinned, degree: 200}")
	batches := personsRun(t, 1, "")
	batches.Algorithm.Local.Batch = 64
	for want, run := range map[string]config.Run{"privacy.nodes.contacts": thinned, "algorithm.local.batch": batches} {
		if err := CheckMechanism(run); len(err) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if faults := CheckMechanism(siloRun(1)); len(faults) > 0 {
		t.Errorf("examples: %v", faults)
	}
}
