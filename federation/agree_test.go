package federation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
)

// agreePolicy allows whatever a plan asks.
const agreePolicy = `ceilings:
  - {unit: neighbourhood, relation: metric, claim: metric, epsilon: 1000, epsilon_switch: 1000000}
  - {unit: example, relation: replace-one, claim: heuristic, epsilon: 7, delta: 1.0e-4}
  - {unit: example, relation: replace-one, claim: proved, epsilon: 7, delta: 1.0e-4}
  - {unit: client, relation: add-remove, claim: proved, trust: server, epsilon: 7, delta: 1.0e-4}
  - {unit: client, relation: replace-one, claim: none, epsilon: 0, unlimited: true}
`

// agreePrivacy is what each protection asks for.
var agreePrivacy = map[string]string{
	"update":  "noise_multiplier: 5, radius: 0.3, noise: exact-seeded",
	"example": "epsilon: 6, delta: 1.0e-4, clip: 1, relation: replace-one, noise: exact-seeded",
	"client":  "epsilon: 6, delta: 1.0e-4, noise: exact-seeded",
	"nothing": "noise: exact-seeded",
}

func TestFederationAgrees(t *testing.T) {
	for _, method := range fl.Methods() {
		for _, protects := range fl.Protections() {
			text := fmt.Sprintf("name: agree\nseed: 5\ndata: {kind: synthetic, users: 3, validation_users: 3, samples: 20, test_share: 0.2}\n"+
				"algorithm: {kind: %s, mode: sound, rounds: 3, %s local: {batch: 4}}\njudge: {by: own}\nprivacy: {protects: %s, %s}\n", method, asked(method,protects), protects, agreePrivacy[protects])
			t.Run(method+"/"+protects, func(t *testing.T) {
				run, err := plan.Resolve([]byte(text))
				if err != nil {
					t.Skip(err)
				}
				_ = run
				_ = strings.Join
				siloFederation(t, nil, text)
			})
		}
	}
}
func asked(method, protects string) string {
	if protects == "client" || method == "mocha" {
		return "clients_per_round: 0,"
	}
	return "clients_per_round: 3,"
}
