package ledger

import (
	"crypto/ed25519"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// successor is a further key, and the statement by which it follows on old.
func successor(t *testing.T, old ed25519.PrivateKey, number int) (ed25519.PrivateKey, SignedSuccession) {
	t.Helper()
	_, fresh, err := ed25519.GenerateKey(nil)
	must(t, err)
	s, err := SignSuccession(Succession{
		Federation: testMember.Federation, Number: number, At: time.Now(), Authority: Hash{byte(number)},
		Old: Key(old.Public().(ed25519.PublicKey)), New: Key(fresh.Public().(ed25519.PublicKey)),
	}, old)
	must(t, err)
	return fresh, s
}

func memberWith(key ed25519.PrivateKey) Membership {
	m := testMember
	m.Key = Key(key.Public().(ed25519.PublicKey))
	return m
}

// signedFor reserves and stores a round, and signs for it.
func signedFor(t *testing.T, l *Ledger, round int, key ed25519.PrivateKey) SignedReceipt {
	t.Helper()
	must(t, l.Reserve(charge(round, metricRelease(5))))
	must(t, l.Store(slotAt(round), noised(round)))
	draft, err := l.Draft(slotAt(round))
	must(t, err)
	r, err := Sign(draft, key)
	must(t, err)
	return r
}

// TestKeysSucceedOneAnother: receipts of every key of the federation are taken in their
// time, the counters go on, and all of it is there when the ledger is opened again.
func TestKeysSucceedOneAnother(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir)
	first := signedFor(t, l, 0, testKey)
	must(t, l.Commit(slotAt(0), first))
	lost := signedFor(t, l, 1, testKey) // signed, but the acknowledgement is lost
	second, one := successor(t, testKey, 1)
	mustFail(t, l.Reconcile(memberWith(second), nil), ErrStranger) // before it is shown where the key comes from
	must(t, l.Succeed(one, one))
	must(t, l.Commit(slotAt(1), lost))
	r := signedFor(t, l, 2, second)
	if r.Receipt.Counter != 3 {
		t.Errorf("the counter is %d after two releases under the first key", r.Receipt.Counter)
	}
	old, err := Sign(r.Receipt, testKey)
	must(t, err)
	mustFail(t, l.Commit(slotAt(2), old), ErrReceipt) // the first key signs for nothing new
	must(t, l.Commit(slotAt(2), r))
	third, two := successor(t, second, 2)
	must(t, l.Succeed(one, two))
	must(t, l.Close())

	l, err = Open(dir, testPolicy)
	must(t, err)
	defer l.Close()
	mustFail(t, l.Reconcile(testMember, nil), ErrStranger) // a key that was given up is none
	mustFail(t, l.Reconcile(memberWith(third), &old), ErrReceipt)
	must(t, l.Reconcile(memberWith(third), &r))
	for _, receipt := range []SignedReceipt{first, lost, r} {
		must(t, l.Contains(receipt))
	}
	sum, err := l.Summary()
	must(t, err)
	if len(sum.Federations) != 1 || sum.Federations[0] != memberWith(third) || len(sum.Successions) != 2 ||
		sum.Successions[0] != one.Succession || sum.Successions[1] != two.Succession {
		t.Errorf("%+v, %+v", sum.Federations, sum.Successions)
	}
	read, err := Read(dir)
	must(t, err)
	must(t, read.Contains(first))
}

// TestSuccessionsAreVerified: whoever does not hold the key that is pinned changes
// nothing; neither does one who holds it change anything but the key.
func TestSuccessionsAreVerified(t *testing.T) {
	second, one := successor(t, testKey, 1)
	_, two := successor(t, second, 2)
	stranger, _ := successor(t, testKey, 9)
	forge := func(change func(*SignedSuccession)) SignedSuccession {
		s := one
		change(&s)
		return s
	}
	resign := func(key ed25519.PrivateKey, change func(*Succession)) SignedSuccession {
		s := one.Succession
		change(&s)
		text, err := s.signedText()
		must(t, err)
		return SignedSuccession{s, Signature(ed25519.Sign(key, text))}
	}
	for name, s := range map[string]SignedSuccession{
		"another's signature": resign(stranger, func(*Succession) {}),
		"another new key":     forge(func(s *SignedSuccession) { s.New[0] ^= 1 }),
		"another number":      forge(func(s *SignedSuccession) { s.Number = 2 }),
		"another time":        forge(func(s *SignedSuccession) { s.At = s.At.Add(time.Second) }),
		"another authority":   forge(func(s *SignedSuccession) { s.Authority[0] ^= 1 }),
		"another version":     resign(testKey, func(s *Succession) { s.Version = 2 }),
		"no number":           resign(testKey, func(s *Succession) { s.Number = 0 }),
		"no new key":          resign(testKey, func(s *Succession) { s.New = Key{} }),
		"the same key":        resign(testKey, func(s *Succession) { s.New = s.Old }),
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t, t.TempDir())
			_, before := l.Head()
			mustFail(t, l.Succeed(s), ErrSuccession)
			if _, after := l.Head(); after != before {
				t.Error("it is recorded")
			}
			must(t, l.Reconcile(testMember, nil)) // and the ledger goes on
		})
	}
	t.Run("passed over", func(t *testing.T) {
		l := openTest(t, t.TempDir())
		_, before := l.Head()
		elsewhere := resign(testKey, func(s *Succession) { s.Federation = "elsewhere" })
		must(t, l.Succeed(two, elsewhere)) // neither starts from a key that is pinned
		if _, after := l.Head(); after != before {
			t.Error("something is recorded")
		}
	})
	t.Run("no way back", func(t *testing.T) {
		l := openTest(t, t.TempDir())
		must(t, l.Succeed(one))
		for name, s := range map[string]Succession{
			"to the first key":    {New: one.Old, Number: 2},
			"with a number twice": {New: Key{1}, Number: 1},
		} {
			s.Federation, s.Old = testMember.Federation, one.New
			back, err := SignSuccession(s, second)
			must(t, err)
			if err := l.Succeed(back); err == nil || !strings.Contains(err.Error(), ErrSuccession.Error()) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	if _, err := SignSuccession(one.Succession, second); err == nil {
		t.Error("another key than the old one signs")
	}
}

// TestSuccessionIsForOneFederation: it makes no second membership, and other federations'
// keys stay.
func TestSuccessionIsForOneFederation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	l := openTest(t, dir)
	other := Membership{Federation: "other", Participant: "school-1", Key: testMember.Key}
	must(t, l.Reconcile(other, nil))
	_, one := successor(t, testKey, 1)
	must(t, l.Succeed(one))
	if m, _ := l.Member("other"); m != other {
		t.Errorf("the other federation has %+v", m)
	}
	sum, err := l.Summary()
	must(t, err)
	if len(sum.Federations) != 2 {
		t.Errorf("%d memberships, want 2", len(sum.Federations))
	}
}
