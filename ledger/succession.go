package ledger

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrSuccession: a statement that a federation has a new key for its receipts is
// malformed, wrongly signed, or does not follow from the key that is known.
var ErrSuccession = errors.New("not a valid succession of keys")

// successionVersion is the one that this code writes and reads.
const successionVersion = 1

// Succession says that a federation signs its receipts with another key from now on.
// The name stays: so do counters, budgets and everything else that a ledger has of it.
type Succession struct {
	Version    int       `json:"version"`
	Federation string    `json:"federation"`
	Number     int       `json:"number"` // 1 for the first
	At         time.Time `json:"at"`
	Authority  Hash      `json:"authority_sha256"` // the certificate of the authority that comes with the key
	Old        Key       `json:"old_key"`
	New        Key       `json:"new_key"`
}

// SignedSuccession is a succession with the signature of the old key: nobody else can
// say who comes after it.
type SignedSuccession struct {
	Succession
	Signature Signature `json:"signature"`
}

func (s Succession) validate() error {
	faults := []error{checkName("federation", s.Federation)}
	if s.Version != successionVersion {
		faults = append(faults, fmt.Errorf("version %d is not known; this is version %d", s.Version, successionVersion))
	}
	if s.Number < 1 || s.New == (Key{}) || s.New == s.Old {
		faults = append(faults, fmt.Errorf("number %d from key %s to key %s: it must be at least 1 and the keys two", s.Number, s.Old, s.New))
	}
	return errors.Join(faults...)
}

// signedText is what the signature covers: no other message of ours starts like it.
func (s Succession) signedText() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSuccession, err)
	}
	return slices.Concat([]byte("coterie key succession 1\n"), text), nil
}

// SignSuccession signs with the old key, once, before it is destroyed.
func SignSuccession(s Succession, old ed25519.PrivateKey) (SignedSuccession, error) {
	s.Version, s.At = successionVersion, s.At.UTC().Truncate(time.Second)
	if len(old) != ed25519.PrivateKeySize || Key(old.Public().(ed25519.PublicKey)) != s.Old {
		return SignedSuccession{}, fmt.Errorf("%w: it must be signed with the key that it succeeds", ErrSuccession)
	}
	if err := s.validate(); err != nil {
		return SignedSuccession{}, fmt.Errorf("%w: %w", ErrSuccession, err)
	}
	text, err := s.signedText()
	if err != nil {
		return SignedSuccession{}, err
	}
	return SignedSuccession{Succession: s, Signature: Signature(ed25519.Sign(old, text))}, nil
}

// Verify checks the signature of the old key. Whether that is the right key is the
// caller's business.
func (s SignedSuccession) Verify() error {
	if err := s.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrSuccession, err)
	}
	text, err := s.signedText()
	if err != nil {
		return err
	}
	if !ed25519.Verify(s.Old[:], text, s.Signature[:]) {
		return fmt.Errorf("%w: number %d of federation %q is not signed with key %s", ErrSuccession, s.Number, clip(s.Federation), s.Old)
	}
	return nil
}

// Succeed records the new keys of federations, in their order. Successions of keys that
// this ledger does not hold, or holds as earlier ones, are passed over: those of before
// it joined, and those that it has recorded. One that starts from the key that is
// pinned must be signed with it; otherwise it is ErrSuccession, and nothing changes.
func (l *Ledger) Succeed(all ...SignedSuccession) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return l.broken
	}
	for _, s := range all {
		if m, known := l.state.members[s.Federation]; !known || m.Key != s.Old {
			continue
		}
		if err := l.write(record{Kind: kindSuccession, Succession: &s}); err != nil {
			return err
		}
	}
	return nil
}

// admitSuccession holds a succession against the pinned key. Numbers rise, so that no
// key can come back.
func (s *state) admitSuccession(n SignedSuccession) error {
	if err := n.Verify(); err != nil {
		return err
	}
	m, known := s.members[n.Federation]
	if !known {
		return fmt.Errorf("%w: federation %q", ErrStranger, n.Federation)
	}
	if m.Key != n.Old {
		return fmt.Errorf("%w: federation %q signs with %s, and the succession starts from %s", ErrSuccession, n.Federation, m.Key, n.Old)
	}
	if s.generation(n.Federation, n.New) >= 0 {
		return fmt.Errorf("%w: federation %q has had key %s before", ErrSuccession, n.Federation, n.New)
	}
	if before := s.successions[n.Federation]; len(before) > 0 && n.Number <= before[len(before)-1].Number {
		return fmt.Errorf("%w: number %d cannot come after number %d", ErrSuccession, n.Number, before[len(before)-1].Number)
	}
	return nil
}

func (s *state) succeed(n SignedSuccession) {
	m := s.members[n.Federation]
	m.Key = n.New
	s.members[n.Federation] = m
	s.successions[n.Federation] = append(s.successions[n.Federation], n)
}

// checkSigner takes receipts of the key that signed when the bytes were stored, or of a
// later one: an earlier key that somebody has kept signs for nothing new.
func (s *state) checkSigner(e *Entry, k Key) error {
	now := s.members[e.Slot.Federation].Key
	switch g := s.generation(e.Slot.Federation, k); {
	case g < 0:
		return fmt.Errorf("%w: signed with key %s, but federation %q signs with %s", ErrReceipt, k, e.Slot.Federation, now)
	case g < e.generation:
		return fmt.Errorf("%w: signed with key %s, which federation %q had given up for %s when %s was stored", ErrReceipt, k, e.Slot.Federation, now, e.Slot)
	}
	return nil
}

// generation is how many keys of the federation came before this one; -1 if it is none
// of them.
func (s *state) generation(federation string, k Key) int {
	all := s.successions[federation]
	if m, known := s.members[federation]; known && m.Key == k {
		return len(all)
	}
	return slices.IndexFunc(all, func(n SignedSuccession) bool { return n.Old == k })
}
