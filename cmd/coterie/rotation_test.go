package main

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/ledger"
)

const rotatedRounds = 8

// rotatedRun takes as long as its participants wait before they answer.
var rotatedRun = fmt.Sprintf(`name: rotated
seed: 5
data: {kind: synthetic, users: 3, samples: 30}
algorithm: {kind: group-private, mode: sound, hypotheses: 2, rounds: %d, clients_per_round: 3}
privacy: {noise_multiplier: 5, radius: 0.3, noise: exact-seeded}
`, rotatedRounds)

// committed waits until a participant's ledger has so many receipts.
func (c *clinics) committed(name string, want int) {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l, err := ledger.Read(c.path(name, "ledger"))
		if err != nil {
			continue // not founded yet
		}
		have := 0
		for _, e := range l.Entries() {
			if e.Status == ledger.Committed {
				have++
			}
		}
		if have >= want {
			return
		}
	}
	c.t.Fatalf("%s does not come to %d receipts", name, want)
}

// keyOf is a participant's private key, as its folder has it.
func (c *clinics) keyOf(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(c.path(name, "identity", "identity.pem"))
	if err != nil {
		c.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	return string(block.Bytes)
}

// enrolBefore gives a participant a certificate as if it had enrolled some time ago.
func (c *clinics) enrolBefore(name string, age time.Duration) {
	c.t.Helper()
	ca, err := identity.Open(c.path("ca"), identity.Options{Now: func() time.Time { return time.Now().Add(-age) }})
	if err != nil {
		c.t.Fatal(err)
	}
	i, err := ca.Invite(name, time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := identity.NewMember(c.path(name, "identity"), i)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := m.Request()
	if err != nil {
		c.t.Fatal(err)
	}
	g, err := ca.Redeem(i.String(), request)
	if err == nil {
		err = m.Accept(g.Chain)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestKeysAreRotatedInTheMiddleOfARun, twice, while three participants take part and one
// of them is killed: the models are those of an undisturbed run, everybody has paid for
// every round once, and receipts of all three keys stay valid.
func TestKeysAreRotatedInTheMiddleOfARun(t *testing.T) {
	c := newClinics(t, rotatedRun, "", clinicsPolicy, "north", "south", "west")
	if err := os.RemoveAll(c.path("ca")); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Init(c.path("ca"), identity.Options{Server: c.address, Lifetime: time.Minute, Now: func() time.Time { return time.Now().Add(-time.Minute) }}); err != nil {
		t.Fatal(err)
	}
	server := c.serve("--unsafe-seeded-noise")
	joined, keys := map[string]*process{}, map[string]string{}
	c.enrol("north")                      // over the network, so that the server is there
	c.enrolBefore("west", 45*time.Second) // so that it is time to renew
	c.enrolBefore("south", 38*time.Second)
	for _, n := range c.names {
		c.write(filepath.Join(n, "join.yaml"), "policy: ../policy.yaml\nanswer_seconds: 0.25\n")
		keys[n] = c.keyOf(n)
	}
	// South waits for the others; it renews in the meantime, two seconds from now.
	joined["south"] = c.join("south", "--unsafe-seeded-noise")
	for end := time.Now().Add(20 * time.Second); c.keyOf("south") == keys["south"]; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("south does not renew while it waits")
		}
	}
	joined["north"], joined["west"] = c.join("north", "--unsafe-seeded-noise"), c.join("west", "--unsafe-seeded-noise")
	federation := runJSON(t, "ca", "list", "--ca", c.path("ca"))["federation"]
	runJSON(t, "ca", "invite", "east", "--ca", c.path("ca"))
	c.committed("north", 2)
	first := runJSON(t, "ca", "rotate", "--ca", c.path("ca"))
	if got := keysOf(first); got != "ca_sha256 cancelled federation number overlap_ends receipt_key" {
		t.Errorf("keys %q", got)
	}
	if cancelled := first["cancelled"].([]any); len(cancelled) != 1 || cancelled[0] != "east" {
		t.Errorf("cancelled invitations: %v, want east's", cancelled)
	}
	c.committed("north", 4)
	_ = joined["north"].cmd.Process.Kill()
	<-joined["north"].done
	second := runJSON(t, "ca", "rotate", "--ca", c.path("ca"))
	joined["north"] = c.join("north", "--unsafe-seeded-noise")
	end := c.result(server)
	simulated := runJSON(t, "run", c.path("run.yaml"), "--out", c.path("simulated"))
	if end["model_sha256"] != simulated["model_sha256"] || end["abandoned"] != 0.0 {
		t.Errorf("the federation ends with %v after %v abandoned rounds, the simulation with %v", end["model_sha256"], end["abandoned"], simulated["model_sha256"])
	}
	if first["federation"] != federation || second["federation"] != federation || end["federation"] != federation || second["number"] != 2.0 {
		t.Errorf("the federation was %v; %v, %v", federation, first, second)
	}
	signers := map[ledger.Key]bool{}
	for _, n := range c.names {
		if r := c.result(joined[n]); r["model_sha256"] != end["model_sha256"] {
			t.Errorf("%s has model %v", n, r["model_sha256"])
		}
		c.paidOnce(n, rotatedRounds, signers)
		if c.keyOf(n) == keys[n] {
			t.Errorf("%s has renewed without a new key", n)
		}
		m, err := identity.OpenMember(c.path(n, "identity"))
		if err != nil || m.Known() != 2 || m.Outdated() || m.Federation() != federation {
			t.Errorf("%s: %v", n, err)
		}
	}
	if len(signers) != 3 {
		t.Errorf("receipts by %d keys, want 3: the rotations did not fall into the run", len(signers))
	}
	for _, gone := range []string{"ca.key", "ca-1.key", "server.key", "server-1.key", "receipts.key", "receipts-1.key"} {
		if _, err := os.Stat(c.path("ca", gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	// Once because it was time to, and once for every rotation, each with a new key.
	if log := joined["south"].errs.String(); strings.Count(log, "the certificate was renewed, with a new key") < 3 || strings.Count(log, "the old ones have signed it") != 2 {
		t.Errorf("south has not renewed three times, for two rotations:\n%s", log)
	}
	c.showsKeys("south", second["receipt_key"].(string))
	c.awayForTooLong(federation.(string))
}

// paidOnce checks that a ledger holds every round once, committed, and its receipts.
func (c *clinics) paidOnce(name string, rounds int, signers map[ledger.Key]bool) {
	c.t.Helper()
	l, err := ledger.Read(c.path(name, "ledger"))
	if err != nil {
		c.t.Fatal(err)
	}
	all := l.Entries()
	for i, e := range all {
		if e.Slot.Round != i || e.Status != ledger.Committed || e.Receipt.Receipt.Counter != int64(i+1) {
			c.t.Errorf("%s: entry %d is round %d, %s, %+v", name, i, e.Slot.Round, e.Status, e.Receipt)
			continue
		}
		signers[e.Receipt.Key] = true
		if err := l.Contains(*e.Receipt); err != nil {
			c.t.Error(err)
		}
	}
	sum, err := l.Summary()
	if err != nil || len(all) != rounds || len(sum.Federations) != 1 || len(sum.Successions) != 2 {
		c.t.Errorf("%s: %d releases, want %d; %d memberships, %d successions, %v", name, len(all), rounds, len(sum.Federations), len(sum.Successions), err)
	}
}

// showsKeys: all keys are shown in their order, and receipts of each verify offline.
func (c *clinics) showsKeys(name, newest string) {
	c.t.Helper()
	text, _, code := coterie(c.t, "ledger", "show", c.path(name, "ledger"))
	if code != 0 || strings.Count(text, "signs receipts with key") != 2 || !strings.Contains(text, "signs receipts with key "+newest) {
		c.t.Errorf("exit %d:\n%s", code, text)
	}
	if v := runJSON(c.t, "ledger", "verify", c.path(name, "ledger")); v["valid"] != true || v["receipts"] != float64(rotatedRounds) {
		c.t.Errorf("%v", v)
	}
	if _, errs, code := coterie(c.t, "ledger", "receipts", c.path(name, "ledger"), "--out", c.path("receipts")); code != 0 {
		c.t.Fatal(errs)
	}
	files, err := filepath.Glob(c.path("receipts", "*.json"))
	if err != nil || len(files) != rotatedRounds {
		c.t.Fatalf("%d receipts, %v", len(files), err)
	}
	for _, f := range files {
		if v := runJSON(c.t, "ledger", "verify", f, "--ledger", c.path(name, "ledger")); v["in_the_ledger"] != true {
			c.t.Errorf("%s: %v", f, v)
		}
	}
}

// awayForTooLong: west comes back after the overlap has ended. It is told to ask for an
// invitation; with one it goes on under its name, with its folder and its ledger.
func (c *clinics) awayForTooLong(federation string) {
	c.t.Helper()
	past := func() time.Time { return time.Now().Add(-2 * time.Minute) }
	ca, err := identity.Open(c.path("ca"), identity.Options{Now: past})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := ca.Rotate(time.Minute); err != nil {
		c.t.Fatal(err)
	}
	server := c.serve("--unsafe-seeded-noise", "--new")
	west := c.join("west", "--unsafe-seeded-noise")
	if c.wait(west); west.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(west.errs.String(), "you need a new invitation") {
		c.t.Fatalf("exit %d\n%s", west.cmd.ProcessState.ExitCode(), west.errs.String())
	}
	joined := map[string]*process{}
	for _, n := range c.names {
		invitation := c.path(n + "-again.invite")
		runJSON(c.t, "ca", "invite", n, "--ca", c.path("ca"), "--out", invitation)
		if r := runJSON(c.t, "join", "--invite", invitation, "--identity", c.path(n, "identity")); r["federation"] != federation {
			c.t.Errorf("%v, want federation %s", r, federation)
		}
		joined[n] = c.join(n, "--unsafe-seeded-noise")
	}
	c.result(server)
	for _, n := range c.names {
		c.result(joined[n])
		l, err := ledger.Read(c.path(n, "ledger"))
		if err != nil {
			c.t.Fatal(err)
		}
		all := l.Entries()
		sum, err := l.Summary()
		if len(all) != 2*rotatedRounds || all[len(all)-1].Receipt.Receipt.Counter != 2*rotatedRounds || len(sum.Federations) != 1 || len(sum.Successions) != 3 || err != nil {
			c.t.Errorf("%s has %d releases, %d memberships and %d successions, %v", n, len(all), len(sum.Federations), len(sum.Successions), err)
		}
	}
}
