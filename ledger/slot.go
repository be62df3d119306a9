package ledger

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/dp/event"
)

// Hash is a SHA-256, written as 64 hex digits.
type Hash [32]byte

// String is the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes 64 hex digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 lower-case hex digits, and nothing else: a hash has one
// spelling.
func (h *Hash) UnmarshalText(text []byte) error { return readHex(h[:], text) }

// Slot is a release's identity: there is at most one in every round of a run.
type Slot struct {
	Federation string `json:"federation"`
	Run        string `json:"run"`
	Round      int    `json:"round"`
}

// String names the slot to people.
func (s Slot) String() string {
	return fmt.Sprintf("round %d of run %q in federation %q", s.Round, s.Run, s.Federation)
}

func (s Slot) validate() error {
	if err := checkName("federation", s.Federation); err != nil {
		return err
	}
	if err := checkName("run", s.Run); err != nil {
		return err
	}
	if s.Round < 0 {
		return fmt.Errorf("round %d of a slot is negative", s.Round)
	}
	return nil
}

// maxName bounds the names that other parties choose.
const maxName = 200

func checkName(what, name string) error {
	printable := utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if name == "" || len(name) > maxName || !printable {
		return fmt.Errorf("the name of the %s is %q; want 1 to %d bytes of printable text", what, clip(name), maxName)
	}
	return nil
}

// clip keeps hostile text out of long error messages.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// Enforcement says who saw to it that the release is what its event says.
type Enforcement string

// The ways a release can be vouched for.
const (
	Enforced Enforcement = "enforced" // we clipped and added the noise
	Attested Enforcement = "attested" // the trainer says so; we could not check it
)

// Charge is a release that is to be paid for.
type Charge struct {
	Slot        Slot          `json:"slot"`
	Plan        Hash          `json:"plan_sha256"` // of the plan that the release follows
	Release     event.Release `json:"release"`
	Enforcement Enforcement   `json:"enforcement"`
}

// Status is how far a slot has come. What is reserved is spent, whatever follows.
type Status string

// The states of a slot, in their order.
const (
	Reserved  Status = "reserved"  // paid for; noise may be drawn
	Stored    Status = "stored"    // the noised bytes are durable; they may be sent
	Committed Status = "committed" // the server has them, and signed for them
	Abandoned Status = "abandoned" // given up; spent all the same
)

// Entry is what the ledger knows of one slot.
type Entry struct {
	Charge
	Status     Status    `json:"status"`
	ReservedAt time.Time `json:"reserved_at"`
	// Since it was stored:
	Content Hash           `json:"content_sha256,omitzero"`
	Size    int64          `json:"content_bytes,omitempty"`
	Receipt *SignedReceipt `json:"receipt,omitempty"` // since it was committed
	Reason  string         `json:"reason,omitempty"`  // why it was abandoned

	draft   *Receipt      // what the server is asked to sign
	kept    bool          // the bytes are still there, though it is committed
	counted event.Release // the release, as its budget counts it: see spreadUnrecorded
	// generation is how many keys the federation had given up when the bytes were stored.
	generation int
}
