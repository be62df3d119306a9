package participant

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// customer is a participant with a real ledger and a plan before it, and no network.
type customer struct {
	*Participant
	session *session
	book    *ledger.Ledger
	said    *bytes.Buffer // its log
}

// newCustomer joins with a policy, on data of its own, and says what came of it.
func newCustomer(t *testing.T, run, policy string, shape data.Shape, own *data.Client) (customer, error) {
	t.Helper()
	allowed, err := plan.LoadPolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	book, err := ledger.Open(filepath.Join(dir, "ledger"), allowed.Budget())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	key := ledger.Key(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey))
	if err := book.Reconcile(ledger.Membership{Federation: "f", Participant: "p", Key: key}, nil); err != nil {
		t.Fatal(err)
	}
	said := new(bytes.Buffer)
	p := New(Options{
		Name: "p", Federation: "f", Ledger: book, Policy: allowed, Log: slog.New(slog.NewTextHandler(said, nil)),
		Half: func(_ context.Context, asked plan.Plan, _, private config.Run, _ int) (*Half, error) {
			m, err := model.Of(private, asked.Shape)
			if err != nil {
				return nil, err
			}
			a, err := fl.New(private, m, asked.Participants)
			return &Half{Algorithm: a, Parameters: m.Parameters(), Data: own, Enforcement: ledger.Enforced}, err
		},
		Memory: func(run string, plan ledger.Hash) (Memory, error) { return OpenMemory(dir, run, plan) },
	})
	resolved, err := plan.Resolve([]byte(run))
	if err != nil {
		t.Fatal(err)
	}
	s := &session{
		plan: plan.Plan{Version: plan.Version, Federation: "f", Run: "r", RunFile: run, Participants: 3, Shape: shape},
		run:  resolved, sum: [32]byte{1},
	}
	return customer{p, s, book, said}, p.prepare(t.Context(), s)
}

// answer is what becomes of a broadcast, from the moment that it has arrived.
func (c customer) answer(b fl.Broadcast) (bool, error) {
	if err := c.session.expects(b, b.Round); err != nil {
		return false, err
	}
	return c.respond(c.session, ledger.Slot{Federation: "f", Run: "r", Round: b.Round}, b)
}

// broadcast is one that follows from the plan, around any hypotheses.
func (c customer) broadcast(t *testing.T, round int, hypotheses ...float64) fl.Broadcast {
	t.Helper()
	b, err := c.session.half.Algorithm.Broadcast(&fl.State{Round: round, Hypotheses: hypotheses, Idle: make([]int, 2)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// groupRun is a plan in two dimensions: a release loses 2/5 at its radius.
func groupRun(rounds int, more string) string {
	return fmt.Sprintf(`data: {kind: synthetic, users: 3, samples: 20}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: %d, clients_per_round: 1}
privacy: {noise_multiplier: 5, noise: exact, %s}
`, rounds, more)
}

func metricPolicy(more string) string {
	return "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: metric, " + more + "}\n"
}

var plane = data.Shape{Features: 2}

// someRows lie on the line y = 3*x1 - 2*x2.
func someRows() *data.Client {
	c := &data.Client{Rows: data.Rows{Features: 2}}
	for i := range 20 {
		x1, x2 := float64(i%5)/5, float64(i%7)/7
		c.X, c.Y = append(c.X, x1, x2), append(c.Y, 3*x1-2*x2)
	}
	return c
}

// TestHostileServerCannotReadTheChoice is the bisection that read a participant's
// least-squares solution: with a radius of 1e-6, or hypotheses 1,000 apart, the release
// shows which of them was nearer. It is refused before data is touched: here there are
// none, and touching them would panic.
func TestHostileServerCannotReadTheChoice(t *testing.T) {
	policy := metricPolicy("epsilon: 20, distance: 2, epsilon_switch: 200")
	for name, c := range map[string]struct {
		radius     float64
		hypotheses []float64
		needed     string
	}{
		"tiny radius":             {1e-6, []float64{-25, 0, 25, 0}, ""},
		"hypotheses far apart":    {0.3, []float64{-500, 0, 500, 0}, "epsilon_switch, the loss between any two data sets, would be 1334"},
		"both":                    {1e-6, []float64{-500, 0, 500, 0}, ""},
		"far beyond all measure":  {0.3, []float64{-1e9, 0, 1e9, 0}, "epsilon_switch"},
		"one coordinate far away": {0.3, []float64{0, 0, 0, 1e5}, "epsilon_switch"},
	} {
		t.Run(name, func(t *testing.T) {
			run := groupRun(3, fmt.Sprintf("radius: %v", c.radius))
			client, err := newCustomer(t, run, policy, plane, nil)
			if c.needed == "" { // the plan alone gives it away
				if !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "epsilon at distance 2 would be") {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				released, err := client.answer(client.broadcast(t, 0, c.hypotheses...))
				if released || !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), c.needed) {
					t.Errorf("released %v: %v", released, err)
				}
			}
			if entries := client.book.Entries(); len(entries) != 0 {
				t.Errorf("the ledger has %+v", entries)
			}
		})
	}

	// Without a distance the plan of a tiny radius passes, as the documented policy once
	// let it, and is stopped by what it broadcasts.
	client, err := newCustomer(t, groupRun(3, "radius: 1.0e-6"), metricPolicy("epsilon: 20, epsilon_switch: 200"), plane, nil)
	if err != nil {
		t.Fatal(err)
	}
	released, err := client.answer(client.broadcast(t, 0, -25, 0, 25, 0))
	if released || !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "epsilon_switch") {
		t.Errorf("released %v: %v", released, err)
	}

	// An honest plan is served, at the price that is recorded and said.
	client, err = newCustomer(t, groupRun(3, "radius: 0.3"), policy, plane, someRows())
	if err != nil {
		t.Fatal(err)
	}
	for round, apart := range []float64{3, 30} {
		if released, err := client.answer(client.broadcast(t, round, 0, 0, apart, 0)); err != nil || !released {
			t.Fatalf("round %d: %v, %v", round+1, released, err)
		}
	}
	sum, err := client.book.Summary()
	if err != nil {
		t.Fatal(err)
	}
	// 2/(5*0.3)*(0.6+3) + 2/(5*0.3)*(0.6+30) = 45.6, and a little for the lattice.
	if b := sum.Budgets[0]; *b.EpsilonSwitch < 45.6 || *b.EpsilonSwitch > 45.61 || b.CeilingSwitch != 200 {
		t.Errorf("epsilon_switch %v of %v", *b.EpsilonSwitch, b.CeilingSwitch)
	}
	for _, word := range []string{"epsilon_switch=", "participant adds the noise", "claim=metric"} {
		if !strings.Contains(client.said.String(), word) {
			t.Errorf("the log does not say %q:\n%s", word, client.said)
		}
	}
	// The rest of the budget is a public number: 200 - 45.6 pay for a spread of 115.
	released, err = client.answer(client.broadcast(t, 2, 0, 0, 116, 0))
	if released || !errors.Is(err, fl.ErrRefused) {
		t.Errorf("released %v: %v", released, err)
	}
}

// TestWhatIsReservedIsNotPaidTwice: a participant that was killed after it had paid, and
// has no room for another release, makes the one that it paid for.
func TestWhatIsReservedIsNotPaidTwice(t *testing.T) {
	client, err := newCustomer(t, groupRun(3, "radius: 0.3"), metricPolicy("epsilon: 20, epsilon_switch: 9"), plane, someRows())
	if err != nil {
		t.Fatal(err)
	}
	b := client.broadcast(t, 0, 0, 0, 3, 0) // costs 4.8
	price, _, err := client.session.half.Algorithm.Price(b)
	if err != nil {
		t.Fatal(err)
	}
	slot := ledger.Slot{Federation: "f", Run: "r", Round: 0}
	if err := client.book.Reserve(ledger.Charge{Slot: slot, Plan: ledger.Hash(client.session.sum), Release: price, Enforcement: ledger.Enforced}); err != nil {
		t.Fatal(err)
	}
	if released, err := client.answer(b); err != nil || !released {
		t.Errorf("released %v: %v", released, err)
	}
	if released, err := client.answer(client.broadcast(t, 1, 0, 0, 3, 0)); released || !errors.Is(err, fl.ErrRefused) {
		t.Errorf("9.6 fit 9: %v, %v", released, err)
	}
}

// TestEveryRoundMustFit: a plan with more rounds than a ceiling pays for is declined
// before the first release, with the number that would do.
func TestEveryRoundMustFit(t *testing.T) {
	for name, c := range map[string]struct {
		rounds       int
		plan, policy string
		needed       string // empty: it fits
	}{
		"epsilon":         {10, "radius: 0.3", "epsilon: 3.9, epsilon_switch: 100", "epsilon, the loss at the radii, would be 4.0000"},
		"epsilon fits":    {10, "radius: 0.3", "epsilon: 4.1, epsilon_switch: 100", ""},
		"distance":        {10, "radius: 0.3", "epsilon: 10, distance: 1, epsilon_switch: 100", "epsilon at distance 1 would be 13.33"},
		"distance fits":   {10, "radius: 0.3", "epsilon: 14, distance: 1, epsilon_switch: 100", ""},
		"decaying":        {10, "radius: 0.3, radius_decay: 0.5", "epsilon: 14, distance: 1, epsilon_switch: 100", "epsilon at distance 1 would be 1364.0"},
		"switch":          {10, "radius: 0.3", "epsilon: 10, epsilon_switch: 7.9", "would be 8.000"},
		"switch fits":     {10, "radius: 0.3", "epsilon: 10, epsilon_switch: 8.1", ""},
		"the run's own":   {10, "radius: 0.3, ceiling: 1.3", "epsilon: 1.3, epsilon_switch: 8", ""},
		"several at once": {10, "radius: 0.3", "epsilon: 1, distance: 1, epsilon_switch: 1", "; epsilon_switch"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := newCustomer(t, groupRun(c.rounds, c.plan), metricPolicy(c.policy), plane, nil)
			switch {
			case c.needed == "" && err != nil:
				t.Error(err)
			case c.needed != "" && (!errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), c.needed)):
				t.Errorf("%v; want %q", err, c.needed)
			case c.needed != "" && len(client.book.Entries()) > 0:
				t.Error("something was charged")
			}
		})
	}
}

// TestOneReleaseIsNotTheWholePlan: what the policy says of one release is not held
// against the sum of all of them.
func TestOneReleaseIsNotTheWholePlan(t *testing.T) {
	policy := metricPolicy("epsilon: 20, epsilon_switch: 100") + "maximum_leak: 0.5\nminimum_noise: 5\n"
	if _, err := newCustomer(t, groupRun(10, "radius: 0.3"), policy, plane, nil); err != nil {
		t.Error(err)
	}
	if _, err := newCustomer(t, groupRun(10, "radius: 0.3"), strings.Replace(policy, "0.5", "0.3", 1), plane, nil); !errors.Is(err, fl.ErrRefused) {
		t.Errorf("a leak of 0.4 passes 0.3: %v", err)
	}
}

const serverNoiseRun = `data: {kind: vehicle, standardise: none}
algorithm: {kind: fedavg, mode: sound, rounds: 3, local: {epochs: 1, step: 0.01, batch: 10, loss: half-squared-error}}
privacy: {protects: client, epsilon: 6, delta: 1.0e-5, relation: add-remove, update_clip: 1, noise: exact}
`

// TestServersNoiseMustBeNamed: under privacy.protects client the update itself is sent. A policy that asks for
// proved claims and noise does not let it pass, unless it trusts the server by name; and
// then log, ledger and receipt say so.
func TestServersNoiseMustBeNamed(t *testing.T) {
	const strict = "ceilings:\n  - {unit: client, relation: add-remove, claim: proved, epsilon: 7, delta: 1.0e-5%s}\nminimum_noise: 1\n"
	for _, trust := range []string{"", ", trust: participant"} {
		client, err := newCustomer(t, serverNoiseRun, fmt.Sprintf(strict, trust), plane, someRows())
		if !errors.Is(err, fl.ErrRefused) || !strings.Contains(err.Error(), "trust: server") {
			t.Errorf("%q: %v", trust, err)
		}
		if !strings.Contains(client.said.String(), "the server is trusted") {
			t.Errorf("the log does not say whom it would trust:\n%s", client.said)
		}
	}
	client, err := newCustomer(t, serverNoiseRun, fmt.Sprintf(strict, ", trust: server"), plane, someRows())
	if err != nil {
		t.Fatal(err)
	}
	told, err := client.session.half.Algorithm.Broadcast(client.session.half.Algorithm.Start())
	if err != nil {
		t.Fatal(err)
	}
	if released, err := client.answer(told); err != nil || !released {
		t.Fatalf("%v, %v", released, err)
	}
	for _, words := range []string{"level=WARN msg=\"the server is trusted", "msg=\"paid for a release\" round=1 unit=client", "trust=\"server adds the noise; the server is trusted\""} {
		if !strings.Contains(client.said.String(), words) {
			t.Errorf("the log does not say %q:\n%s", words, client.said)
		}
	}
	draft, err := client.book.Draft(ledger.Slot{Federation: "f", Run: "r", Round: 0})
	if err != nil {
		t.Fatal(err)
	}
	if draft.Release.Trust != event.TrustServer || draft.Spent.Trust != event.TrustServer || !strings.Contains(strings.Join(draft.Spent.NotCovered, "; "), "against the server") {
		t.Errorf("the receipt says %+v", draft)
	}
}

// TestPaperModePromisesNothing: the log says so, in words.
func TestPaperModePromisesNothing(t *testing.T) {
	run := strings.Replace(groupRun(3, "radius_floor: 1.0e-3"), "mode: sound", "mode: paper, stop: {patience: 0, return: last}", 1)
	policy := "ceilings:\n  - {unit: neighbourhood, relation: metric, claim: heuristic, epsilon: 2}\n"
	client, err := newCustomer(t, run, policy, plane, someRows())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(client.said.String(), "nothing is promised against a server") || strings.Contains(client.said.String(), "epsilon_switch") {
		t.Errorf("the log says:\n%s", client.said)
	}
	if _, err := newCustomer(t, run, strings.Replace(policy, "2}", "1.1}", 1), plane, nil); !errors.Is(err, fl.ErrRefused) {
		t.Errorf("three releases of 0.4 fit 1.1: %v", err)
	}
}

func TestMetricPoliciesNeedASwitch(t *testing.T) {
	for text, want := range map[string]string{
		metricPolicy("epsilon: 20"):                                                                                    "epsilon_switch is missing",
		metricPolicy("epsilon: 20, distance: 1"):                                                                       "epsilon_switch is missing",
		metricPolicy("epsilon: 20, epsilon_switch: -1"):                                                                "epsilon_switch",
		metricPolicy("epsilon: 20, epsilon_switch: .inf"):                                                              "epsilon_switch",
		metricPolicy("epsilon: 20, epsilon_switch: 1, trust: someone"):                                                 "trust",
		"ceilings: [{unit: client, relation: replace-one, claim: none, unlimited: true, trust: server}]\n":             "trust",
		"ceilings: [{unit: neighbourhood, relation: metric, claim: heuristic, epsilon: 1, epsilon_switch: 5}]\n":       "epsilon_switch",
		"ceilings: [{unit: neighbourhood, relation: metric, claim: heuristic, epsilon: 1, distance: 5}]\n":             "private radius",
		"ceilings: [{unit: example, relation: add-remove, claim: proved, epsilon: 1, delta: 1.0e-5, trust: nobody}]\n": "trust",
	} {
		if _, err := plan.LoadPolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// TestABudgetsEndIsToldOnce: the error that a participant ends with says once that the budget is spent.
func TestABudgetsEndIsToldOnce(t *testing.T) {
	w := newHostileWorld(t)
	w.policy = `ceilings: [{unit: neighbourhood, relation: metric, claim: metric, epsilon: 20, epsilon_switch: 200}]`
	h, a, ok := w.ask(groupRun(3, "radius: 0.3"), plane)
	if !ok {
		t.Fatal("the plan is refused")
	}
	state := a.Start()
	copy(state.Hypotheses, []float64{-500, 0, 500, 0})
	b, err := a.Broadcast(state)
	if err != nil {
		t.Fatal(err)
	}
	h.broadcasts = [][]byte{transfer.EncodeBroadcast(b)}
	w.observe(h, someRows())
	if text := fmt.Sprint(w.err); !errors.Is(w.err, fl.ErrRefused) || strings.Count(text, "refused for privacy") != 1 || !strings.Contains(text, "the budget allows no further release") {
		t.Errorf("it ends with %q", text)
	}
}
