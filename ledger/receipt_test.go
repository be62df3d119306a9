package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// signedRound is a ledger with a stored slot, and its signed receipt.
func signedRound(t *testing.T, r event.Release) (*Ledger, SignedReceipt) {
	t.Helper()
	l := openTest(t, t.TempDir())
	must(t, l.Reserve(charge(0, r)))
	must(t, l.Store(slotAt(0), noised(0)))
	draft, err := l.Draft(slotAt(0))
	must(t, err)
	signed, err := Sign(draft, testKey)
	must(t, err)
	return l, signed
}

func TestReceiptSaysWhatWasReleased(t *testing.T) {
	l, s := signedRound(t, metricRelease(5))
	r := s.Receipt
	head, _ := l.Head()
	if r.Participant != "school-1" || r.Slot != slotAt(0) || r.Plan != testPlan || r.Content != hashOf(string(noised(0))) ||
		r.Size != int64(len(noised(0))) || r.Enforcement != Enforced || r.Counter != 1 || r.Head != head ||
		r.Spent.Epsilon != 0.4 || r.Spent.Claim != event.ClaimMetric || len(r.Spent.NotCovered) == 0 || r.RadiusWithheld {
		t.Errorf("%+v", r)
	}
	must(t, s.Verify())
	text, err := json.MarshalIndent(s, "", "\t")
	must(t, err)
	again, err := ParseSignedReceipt(text)
	must(t, err)
	must(t, again.Verify())
}

// TestSignatureCoversEverything changes every field of a receipt in turn.
func TestSignatureCoversEverything(t *testing.T) {
	_, s := signedRound(t, metricRelease(5))
	changes := map[string]func(*Receipt){
		"version":     func(r *Receipt) { r.Version++ },
		"participant": func(r *Receipt) { r.Participant += "x" },
		"federation":  func(r *Receipt) { r.Federation += "x" },
		"run":         func(r *Receipt) { r.Run += "x" },
		"round":       func(r *Receipt) { r.Round++ },
		"plan":        func(r *Receipt) { r.Plan[31] ^= 1 },
		"content":     func(r *Receipt) { r.Content[0] ^= 1 },
		"size":        func(r *Receipt) { r.Size++ },
		"event":       func(r *Receipt) { r.Release = metricRelease(5.0000001) },
		"withheld":    func(r *Receipt) { r.RadiusWithheld = true },
		"enforcement": func(r *Receipt) { r.Enforcement = Attested },
		"spent":       func(r *Receipt) { r.Spent.Epsilon = 0.39999999999999997 },
		"not covered": func(r *Receipt) { r.Spent.NotCovered = r.Spent.NotCovered[1:] },
		"counter":     func(r *Receipt) { r.Counter++ },
		"head":        func(r *Receipt) { r.Head[5] ^= 0x80 },
	}
	for name, change := range changes {
		changed := s
		changed.Receipt.Spent.NotCovered = append([]string(nil), s.Receipt.Spent.NotCovered...)
		change(&changed.Receipt)
		mustFail(t, changed.Verify(), ErrReceipt)
		if name == "" {
			t.Fatal("unnamed")
		}
	}
	otherKey := s
	otherKey.Key[0] ^= 1
	mustFail(t, otherKey.Verify(), ErrReceipt)
	for i := range s.Signature {
		changed := s
		changed.Signature[i] ^= 1
		mustFail(t, changed.Verify(), ErrReceipt)
	}
	// The same bytes under another heading are not a receipt.
	text, err := s.Receipt.Canonical()
	must(t, err)
	bare := s
	bare.Signature = Signature(ed25519.Sign(testKey, text))
	mustFail(t, bare.Verify(), ErrReceipt)
}

// TestReceiptsHaveOneSpelling: what is signed has one reading.
func TestReceiptsHaveOneSpelling(t *testing.T) {
	_, s := signedRound(t, metricRelease(5))
	text, err := json.Marshal(s)
	must(t, err)
	for name, change := range map[string][2]string{
		"unknown key":   {`{"receipt"`, `{"x":1,"receipt"`},
		"repeated key":  {`{"receipt":{`, `{"receipt":{"version":1,`},
		"upper case":    {`"counter"`, `"Counter"`},
		"null":          {`"counter":1`, `"counter":null`},
		"other number":  {`"counter":1`, `"counter":1.0`},
		"other escape":  {`"run-1"`, `"run\u002d1"`},
		"upper-case":    {s.Receipt.Plan.String(), strings.ToUpper(s.Receipt.Plan.String())},
		"trailing":      {`"signature"`, `"signature":"","signature"`},
		"short hash":    {s.Receipt.Plan.String(), "00"},
		"wrong version": {`"version":1`, `"version":2`},
	} {
		bad := strings.Replace(string(text), change[0], change[1], 1)
		if bad == string(text) {
			t.Fatalf("%s changes nothing", name)
		}
		if _, err := ParseSignedReceipt([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, bad := range []string{"", "null", "{}", "[]", string(text) + "{}", strings.Repeat(" ", maxReceipt+1)} {
		if _, err := ParseSignedReceipt([]byte(bad)); err == nil {
			t.Errorf("%.20q: accepted", bad)
		}
	}
}

func TestCommitWantsTheRightReceipt(t *testing.T) {
	l, good := signedRound(t, metricRelease(5))
	resign := func(change func(*Receipt)) SignedReceipt {
		r := good.Receipt
		change(&r)
		s, err := Sign(r, testKey)
		must(t, err)
		return s
	}
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	foreign, err := Sign(good.Receipt, stranger)
	must(t, err)
	forged := foreign
	forged.Key = good.Key
	for name, bad := range map[string]SignedReceipt{
		"another key":    foreign,
		"forged":         forged,
		"other content":  resign(func(r *Receipt) { r.Content[0] ^= 1 }),
		"lower spend":    resign(func(r *Receipt) { r.Spent.Epsilon = 0 }),
		"another slot":   resign(func(r *Receipt) { r.Round = 7 }),
		"another head":   resign(func(r *Receipt) { r.Head[0] ^= 1 }),
		"another person": resign(func(r *Receipt) { r.Participant = "school-2" }),
	} {
		if err := l.Commit(slotAt(0), bad); err == nil {
			t.Errorf("%s: committed", name)
		}
	}
	must(t, l.Commit(slotAt(0), good))
	mustFail(t, l.Commit(slotAt(0), foreign), ErrReceipt)
	mustFail(t, l.Commit(slotAt(9), good), ErrUnknownSlot)
}

// TestPrivateRadiusIsNotTold: in paper mode the radius is the length of a private
// update, and the slack follows from it.
func TestPrivateRadiusIsNotTold(t *testing.T) {
	draft := func(radius, slack float64) string {
		l, err := Open(t.TempDir(), Policy{Ceilings: []Ceiling{{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimHeuristic, Epsilon: 9}}})
		must(t, err)
		defer l.Close()
		must(t, l.Reconcile(testMember, nil))
		r := metricRelease(5)
		r.Claim = event.ClaimHeuristic
		one := event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: radius, Slack: slack}
		r.What = event.Composed{Parts: []event.Event{one, event.Repeated{Times: 2, Of: one}}}
		must(t, l.Reserve(charge(0, r)))
		must(t, l.Store(slotAt(0), noised(0)))
		d, err := l.Draft(slotAt(0))
		must(t, err)
		if !d.RadiusWithheld {
			t.Error("the receipt does not say that the radius is withheld")
		}
		d.Head = Hash{} // a hash of everything, and of the ledger's random identity
		text, err := d.Canonical()
		must(t, err)
		return string(text)
	}
	if one, other := draft(0.123, 1e-3), draft(0.456, 2e-3); one != other {
		t.Errorf("the receipt depends on the radius:\n%s\n%s", one, other)
	}
}

// TestDraftIsSignedAsReceiptsAre: the text that a server sends is the one that the signed
// receipt would be written as, and what is signed is what was read.
func TestDraftIsSignedAsReceiptsAre(t *testing.T) {
	_, want := signedRound(t, metricRelease(5))
	text, err := json.MarshalIndent(want.Receipt, " ", "\t")
	must(t, err)
	d, err := ParseDraft(text)
	must(t, err)
	got, err := d.Sign(testKey)
	must(t, err)
	wanted, err := json.Marshal(want)
	must(t, err)
	if !bytes.Equal(got, wanted) {
		t.Errorf("signed: %s\nwant:   %s", got, wanted)
	}
	again, err := ParseSignedReceipt(got)
	must(t, err)
	must(t, again.Verify())
	if _, err := d.Sign(testKey[:5]); err == nil {
		t.Error("signed with a part of a key")
	}
	if _, err := ParseDraft(bytes.Replace(text, []byte(`"counter": 1`), []byte(`"counter": 0`), 1)); err == nil {
		t.Error("a draft without a counter is taken")
	}
}
