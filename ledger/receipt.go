package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
)

// receiptVersion is the one that this code writes and reads.
const receiptVersion = 1

// Receipt says what one release was. The participant drafts it, the server signs it.
type Receipt struct {
	Version     int    `json:"version"`
	Participant string `json:"participant"`
	Slot
	Plan    Hash  `json:"plan_sha256"`
	Content Hash  `json:"content_sha256"` // of the bytes that were sent
	Size    int64 `json:"content_bytes"`
	// Release is what was paid for. If RadiusWithheld, its radius is private: 1 stands
	// in its place, which leaves the loss at the radius as it is, and the slack of the
	// lattice, which tells the radius, is left out here and in Spent.
	Release        event.Release `json:"release"`
	RadiusWithheld bool          `json:"radius_withheld"`
	Enforcement    Enforcement   `json:"enforcement"`
	// Spent is what this federation's releases on these terms cost so far, this one
	// included. What other federations were sent is none of its business.
	Spent   event.Statement `json:"spent"`
	Counter int64           `json:"counter"` // this federation's stored releases so far
	Head    Hash            `json:"head"`    // the ledger's record of the stored bytes
}

// SignedReceipt is a receipt with the server's signature over its canonical bytes.
type SignedReceipt struct {
	Receipt   Receipt   `json:"receipt"`
	Key       Key       `json:"key"`
	Signature Signature `json:"signature"`
}

// Key is an Ed25519 public key, written as 64 hex digits.
type Key [ed25519.PublicKeySize]byte

// Signature is an Ed25519 signature, written as 128 hex digits.
type Signature [ed25519.SignatureSize]byte

// String is the key in hex.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// MarshalText writes hex digits.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads 64 lower-case hex digits.
func (k *Key) UnmarshalText(text []byte) error { return readHex(k[:], text) }

// MarshalText writes hex digits.
func (s Signature) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads 128 lower-case hex digits.
func (s *Signature) UnmarshalText(text []byte) error { return readHex(s[:], text) }

// readHex reads exactly into, in the one spelling that we write.
func readHex(into, text []byte) error {
	read := make([]byte, len(into))
	if len(text) != 2*len(into) {
		return fmt.Errorf("%q is not %d hex digits", clip(string(text)), 2*len(into))
	}
	if _, err := hex.Decode(read, text); err != nil || !bytes.Equal(text, bytes.ToLower(text)) {
		return fmt.Errorf("%q is not %d lower-case hex digits", clip(string(text)), 2*len(into))
	}
	copy(into, read)
	return nil
}

// Membership is how a dataset takes part in a federation.
type Membership struct {
	Federation  string `json:"federation"`
	Participant string `json:"participant"` // our name there
	Key         Key    `json:"key"`         // signs the server's receipts
}

func (m Membership) validate() error {
	if m.Key == (Key{}) {
		return fmt.Errorf("federation %q has no key for its receipts", clip(m.Federation))
	}
	return errors.Join(checkName("federation", m.Federation), checkName("participant", m.Participant))
}

// Validate says what is wrong with the receipt, if anything.
func (r Receipt) Validate() error {
	faults := []error{r.Slot.validate(), checkName("participant", r.Participant), r.Release.Validate(), checkEnforcement(r.Enforcement)}
	if r.Version != receiptVersion {
		faults = append(faults, fmt.Errorf("version %d is not known; this is version %d", r.Version, receiptVersion))
	}
	if r.Size < 0 || r.Counter < 1 {
		faults = append(faults, fmt.Errorf("%d bytes and counter %d; want at least 0 and 1", r.Size, r.Counter))
	}
	if s := r.Spent; s.Unit != r.Release.Unit || s.Relation != r.Release.Relation || s.Claim != r.Release.Claim || !(s.Epsilon >= 0) || !(s.Delta >= 0) {
		faults = append(faults, fmt.Errorf("what was spent is not on the release's terms"))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	return nil
}

// Canonical is the receipt's one spelling: what is signed, and what a draft is sent as.
func (r Receipt) Canonical() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	return text, nil
}

// signed is what a signature covers: no other message of ours starts like it.
func signed(canonical []byte) []byte {
	return slices.Concat([]byte("coterie receipt 1\n"), canonical)
}

// Sign signs a receipt, if it is valid. The server checks first that it says what
// happened: slot, participant, plan and content.
func Sign(r Receipt, key ed25519.PrivateKey) (SignedReceipt, error) {
	text, err := r.Canonical()
	if err != nil {
		return SignedReceipt{}, err
	}
	return sign(r, text, key)
}

func sign(r Receipt, canonical []byte, key ed25519.PrivateKey) (SignedReceipt, error) {
	if len(key) != ed25519.PrivateKeySize {
		return SignedReceipt{}, fmt.Errorf("sign a receipt: the key has %d bytes, want %d", len(key), ed25519.PrivateKeySize)
	}
	return SignedReceipt{
		Receipt: r, Key: Key(key.Public().(ed25519.PublicKey)), Signature: Signature(ed25519.Sign(key, signed(canonical))),
	}, nil
}

// Draft is a receipt that a participant wants signed, as it was read: valid, and with its
// one spelling at hand, which is costly to make for every release of thousands.
type Draft struct {
	Receipt   Receipt // as it was read: what is signed is not this but its spelling
	canonical []byte
}

// ParseDraft reads a draft as strictly as ParseReceipt.
func ParseDraft(text []byte) (Draft, error) {
	r, canonical, err := parseCanonical[Receipt](text)
	if err != nil {
		return Draft{}, err
	}
	return Draft{r, canonical}, r.Validate()
}

// Sign is the signed receipt's text, which ParseSignedReceipt reads.
func (d Draft) Sign(key ed25519.PrivateKey) ([]byte, error) {
	s, err := sign(d.Receipt, d.canonical, key)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"receipt":%s,"key":"%s","signature":"%x"}`, d.canonical, s.Key, s.Signature[:]), nil
}

// Verify checks the signature against the key that the receipt carries; whether
// that is the right key is the caller's business.
func (s SignedReceipt) Verify() error {
	text, err := s.Receipt.Canonical()
	if err != nil {
		return err
	}
	if !ed25519.Verify(s.Key[:], signed(text), s.Signature[:]) {
		return fmt.Errorf("%w: the signature is not over this receipt, or not by key %s", ErrReceipt, s.Key)
	}
	return nil
}

// ParseReceipt reads a draft strictly: its canonical bytes, perhaps with other white
// space between them.
func ParseReceipt(text []byte) (Receipt, error) {
	d, err := ParseDraft(text)
	return d.Receipt, err
}

// ParseSignedReceipt reads a signed receipt as strictly. It does not check the
// signature.
func ParseSignedReceipt(text []byte) (SignedReceipt, error) {
	s, _, err := parseCanonical[SignedReceipt](text)
	if err != nil {
		return SignedReceipt{}, err
	}
	return s, s.Receipt.Validate()
}

// maxReceipt bounds what is read as a receipt.
const maxReceipt = 256 << 10

// parseCanonical accepts only what this code would write: a signed text must not
// have two readings. It returns the value and how it is written.
func parseCanonical[T any](text []byte) (value T, again []byte, err error) {
	var none T
	if len(text) > maxReceipt {
		return none, nil, fmt.Errorf("%w: %d bytes; the most is %d", ErrReceipt, len(text), maxReceipt)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return none, nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	if again, err = json.Marshal(value); err != nil {
		return none, nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	if bytes.Equal(text, again) {
		return value, again, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil || !bytes.Equal(compact.Bytes(), again) {
		return none, nil, fmt.Errorf("%w: not written as receipts are: a key is unknown, missing, repeated or out of order, or a value has another spelling", ErrReceipt)
	}
	return value, again, nil
}

func checkEnforcement(e Enforcement) error {
	if e != Enforced && e != Attested {
		return fmt.Errorf("enforcement is %q; allowed: %s, %s", clip(string(e)), Enforced, Attested)
	}
	return nil
}

// withhold is the release as a server may see it. The heuristic radius is the
// length of a private update (DESIGN, erratum 6).
func withhold(r event.Release) (event.Release, bool) {
	if r.Relation != event.Metric || r.Claim != event.ClaimHeuristic {
		return r, false
	}
	r.What = eachLaplace(r.What, func(e event.MetricLaplace) event.MetricLaplace {
		e.Radius, e.Slack = 1, 0
		return e
	})
	return r, true
}
