package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/ledger"
)

// TestOneStolenKeyMakesNoSuccession: whoever has the authority's key, or the one for
// receipts, but not both, cannot say who comes next; nor does one with both continue a
// line that is another's.
func TestOneStolenKeyMakesNoSuccession(t *testing.T) {
	a, err := Init(filepath.Join(t.TempDir(), "ca"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	honest, thief := a.last(), mustKeys(t)
	// link is what somebody would show who has some keys in the place of the honest ones.
	link := func(number int, from, to *keys, caKey, receiptKey *keys, edit func(*ledger.Succession)) Succession {
		s := ledger.Succession{
			Version: 1, Federation: honest.federation, Number: number, At: time.Now().UTC().Truncate(time.Second), Authority: sha256.Sum256(to.ca.Raw),
			Old: public(from), New: public(to),
		}
		if edit != nil {
			edit(&s)
		}
		claimed := s
		s.Old = public(receiptKey)
		receipts, err := ledger.SignSuccession(s, receiptKey.receiptKey)
		if err != nil {
			t.Fatal(err)
		}
		receipts.Old = claimed.Old // the signature is then another's
		out := Succession{Old: from.ca.Raw, New: to.ca.Raw, Ends: time.Now().Add(time.Hour).UTC().Truncate(time.Second), Receipts: receipts}
		if err := out.sign(caKey.caKey); err != nil {
			t.Fatal(err)
		}
		return out
	}
	next := mustKeys(t)
	good := link(1, honest, next, honest, honest, nil)
	other := mustKeys(t)
	swapped := good
	swapped.New = thief.ca.Raw
	if err := swapped.sign(honest.caKey); err != nil {
		t.Fatal(err)
	}
	if _, err := newLineage([]Succession{good, link(2, next, thief, next, next, nil)}); err != nil {
		t.Fatalf("what both keys have signed: %v", err)
	}
	for name, all := range map[string][]Succession{
		"the authority's key alone":                   {link(1, honest, thief, honest, other, nil)},
		"the key for receipts alone":                  {link(1, honest, thief, thief, honest, nil)},
		"a true statement of keys, another authority": {swapped},
		"a second one from elsewhere":                 {good, link(2, thief, other, thief, thief, nil)},
		"the second with the first's number":          {good, link(1, next, thief, next, next, nil)},
		"another federation's name":                   {link(1, honest, next, honest, honest, func(s *ledger.Succession) { s.Federation = "other" })},
		"a first that begins in the middle":           {link(2, honest, next, honest, honest, nil)},
	} {
		if _, err := newLineage(all); !errors.Is(err, ErrSuccession) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustKeys(t *testing.T) *keys {
	t.Helper()
	k, err := newKeys(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(k *keys) ledger.Key { return ledger.Key(k.receiptKey.Public().(ed25519.PublicKey)) }
