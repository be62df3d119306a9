package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestTrainersTakePart: Python trains, in the method's place and under the
// participant's own protection, beside a participant that trains here.
func TestTrainersTakePart(t *testing.T) {
	python := tier.PythonProgram(t)
	folder, err := filepath.Abs(filepath.Join("..", "..", "examples", "trainer"))
	if err != nil {
		t.Fatal(err)
	}
	trainer := "data: {kind: trainer}\npolicy: ../own.yaml\ntrainer:\n  command: [" + python + ", " +
		filepath.Join(folder, "train.py") + ", " + filepath.Join(folder, "ward.csv") + "]\n  environment: [" + strings.Join(tier.Environment(), ", ") + "]\n"
	const data = "data: {kind: synthetic, users: 2, samples: 30}\n"
	for name, c := range map[string]struct{ run, trainer, policy, other, spent string }{
		"method": {
			run: data + "algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: 3, clients_per_round: 2}\n" +
				"privacy: {noise_multiplier: 5, radius: 0.3, noise: exact}\n",
			policy: "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}\n",
			other:  "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 100000}\n",
			spent:  `"unit":"neighbourhood"`,
		},
		"update": {
			run:     data + "algorithm: {kind: fedavg, mode: sound, rounds: 3, clients_per_round: 2}\n",
			trainer: "  mode: update\n  clip: 0.5\n  noise: 4\n",
			policy:  "ceilings:\n  - {unit: client, relation: replace-one, claim: proved, epsilon: 10, delta: 1.0e-5}\nminimum_noise: 3\n",
			other:   "ceilings:\n  - {unit: client, relation: replace-one, claim: none, unlimited: true}\n",
			spent:   `"claim":"proved"`,
		},
		"per-example": {
			run:     data + "algorithm: {kind: fedavg, mode: sound, rounds: 3, clients_per_round: 2}\n",
			trainer: "  mode: per-example\n  clip: 1\n  noise: 2\n  steps: 2\n  rate: 0.2\n  batch: 20\n  step: 0.1\n",
			policy:  "ceilings:\n  - {unit: example, relation: add-remove, claim: proved, epsilon: 10, delta: 1.0e-5}\n",
			other:   "ceilings:\n  - {unit: client, relation: replace-one, claim: none, unlimited: true}\n",
			spent:   `"unit":"example"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newClinics(t, c.run, "", c.other, "here", "python")
			server := f.serve()
			f.enrol("here")
			f.enrol("python")
			f.write("own.yaml", c.policy)
			f.write("python/join.yaml", trainer+c.trainer)
			here, python := f.join("here"), f.join("python")
			if r := f.result(python); r["released"] != 3.0 {
				t.Errorf("python released %v times, want 3", r["released"])
			}
			f.result(here)
			if end := f.result(server); end["abandoned"] != 0.0 {
				t.Errorf("%v rounds were abandoned", end["abandoned"])
			}
			out, errs, code := coterie(t, "ledger", "receipts", f.path("python", "ledger"), "--output", "json")
			if code != 0 || !strings.Contains(out, c.spent) || !strings.Contains(out, `"enforced"`) {
				t.Errorf("the receipts: exit %d, want %s and enforced\n%s%s", code, c.spent, out, errs)
			}
		})
	}
}
