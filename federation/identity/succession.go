package identity

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/ledger"
)

// ErrSuccession: a statement that the federation has a new authority is malformed,
// wrongly signed, or does not follow from what is pinned. Nothing is sent to a server
// that shows one.
var ErrSuccession = errors.New("the federation's new authority does not follow from the one that is known here")

// maxSuccessions bounds what is read: one a week for twenty years.
const maxSuccessions = 1000

// MaxSuccessionBytes bounds the text of a federation's successions.
const MaxSuccessionBytes = 4 << 20

// Succession says that a federation has a new authority and a new key for receipts, and
// keeps its name. The old authority's key signs all of it, the old key for receipts what
// Receipts says: both are needed to make one.
type Succession struct {
	Old      []byte                  `json:"old_authority"` // certificates, in DER
	New      []byte                  `json:"new_authority"`
	Ends     time.Time               `json:"overlap_ends"` // what the old one has signed is good until then
	Receipts ledger.SignedSuccession `json:"receipts"`
	// Signature is by the old authority's key: ECDSA in ASN.1, over SHA-256.
	Signature []byte `json:"signature,omitempty"`
}

// signedText is what the old authority signs: no other message of ours starts like it.
func (s Succession) signedText() ([]byte, error) {
	s.Signature = nil
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSuccession, err)
	}
	return slices.Concat([]byte("coterie authority succession 1\n"), text), nil
}

func (s *Succession) sign(key crypto.Signer) error {
	text, err := s.signedText()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	if s.Signature, err = key.Sign(rand.Reader, sum[:], crypto.SHA256); err != nil {
		return fmt.Errorf("sign the succession: %w", err)
	}
	return nil
}

// lineage is a federation's authorities in their order, as their successions say. It is
// verified: every one but the first was named by the one before.
type lineage struct {
	links []Succession
	all   []ancestor // one more than links; empty if there are no links
}

// ancestor is one authority of a lineage, with its key for receipts.
type ancestor struct {
	ca  *x509.Certificate
	sum [32]byte // of the certificate
	key ledger.Key
}

// newLineage verifies successions from the first to the last.
func newLineage(links []Succession) (lineage, error) {
	l := lineage{links: links}
	if len(links) > maxSuccessions {
		return lineage{}, fmt.Errorf("%w: there are %d successions; at most %d are read", ErrSuccession, len(links), maxSuccessions)
	}
	for i, s := range links {
		old, err := readAncestor(s.Old, s.Receipts.Old)
		if err != nil {
			return lineage{}, fmt.Errorf("%w: number %d: %w", ErrSuccession, i+1, err)
		}
		fresh, err := readAncestor(s.New, s.Receipts.New)
		if err != nil {
			return lineage{}, fmt.Errorf("%w: number %d: %w", ErrSuccession, i+1, err)
		}
		if i == 0 {
			l.all = append(l.all, old)
		}
		if err := s.verify(i+1, l.all[0], l.all[i], old, fresh); err != nil {
			return lineage{}, err
		}
		l.all = append(l.all, fresh)
	}
	return l, nil
}

func readAncestor(der []byte, key ledger.Key) (ancestor, error) {
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return ancestor{}, fmt.Errorf("an authority's certificate cannot be read: %w", err)
	}
	if !ca.IsCA || ca.CheckSignatureFrom(ca) != nil {
		return ancestor{}, errors.New("a certificate is not an authority's")
	}
	return ancestor{ca: ca, sum: sha256.Sum256(der), key: key}, nil
}

// verify holds one succession against those before it.
func (s Succession) verify(number int, first, before, old, fresh ancestor) error {
	r := s.Receipts
	switch {
	case old.sum != before.sum || old.key != before.key:
		return fmt.Errorf("%w: number %d does not start where number %d ends", ErrSuccession, number, number-1)
	case r.Number != number || r.Federation != authorityName(first.ca) || r.Authority != ledger.Hash(fresh.sum):
		return fmt.Errorf("%w: number %d is about another federation, place or authority", ErrSuccession, number)
	}
	text, err := s.signedText()
	if err != nil {
		return err
	}
	if err := old.ca.CheckSignature(x509.ECDSAWithSHA256, text, s.Signature); err != nil {
		return fmt.Errorf("%w: number %d was not signed by the authority before: %w", ErrSuccession, number, err)
	}
	if err := r.Verify(); err != nil {
		return fmt.Errorf("%w: number %d: %w", ErrSuccession, number, err)
	}
	return nil
}

// federation is the name, which follows from the first authority's key; ca is the only
// authority there has been, if there was no succession.
func (l lineage) federation(ca *x509.Certificate) string {
	if len(l.all) > 0 {
		ca = l.all[0].ca
	}
	return authorityName(ca)
}

// place is where an authority with its key for receipts stands; -1 if it is none of
// them.
func (l lineage) place(sum [32]byte, key ledger.Key) int {
	return slices.IndexFunc(l.all, func(a ancestor) bool { return a.sum == sum && a.key == key })
}

// extends says that l goes on where before ends, or is the same.
func (l lineage) extends(before lineage) bool {
	return len(l.links) >= len(before.links) && slices.EqualFunc(before.links, l.links[:len(before.links)], func(a, b Succession) bool {
		return bytes.Equal(a.Signature, b.Signature) && a.Receipts == b.Receipts && bytes.Equal(a.New, b.New)
	})
}

// ParseSuccessions reads what a server or a file says. It is bounded, and not verified.
func ParseSuccessions(text []byte) ([]Succession, error) {
	if len(text) > MaxSuccessionBytes {
		return nil, fmt.Errorf("%w: %d bytes; at most %d are read", ErrSuccession, len(text), MaxSuccessionBytes)
	}
	var all []Succession
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%w: they cannot be read: %w", ErrSuccession, err)
	}
	return all, nil
}
