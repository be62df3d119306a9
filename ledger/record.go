package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
)

// The kinds of record.
const (
	kindFounded = "founded" // first, and once
	kindCeiling = "ceiling"
	kindMember  = "member"
	kindReserve = "reserve"
	kindStore   = "store"
	kindCommit  = "commit"
	kindAbandon = "abandon"
	kindCut     = "cut" // a torn record was removed

	kindSuccession = "succession" // a federation signs with another key
)

// record is one line of the ledger. Which fields it has follows from its kind.
type record struct {
	Kind       string            `json:"kind"`
	At         time.Time         `json:"at"` // told to people; nothing depends on it
	Identity   *Hash             `json:"identity,omitempty"`
	Ceiling    *Ceiling          `json:"ceiling,omitempty"`
	Membership *Membership       `json:"membership,omitempty"`
	Charge     *Charge           `json:"charge,omitempty"`
	Slot       *Slot             `json:"slot,omitempty"`
	Content    *content          `json:"content,omitempty"`
	Receipt    *SignedReceipt    `json:"receipt,omitempty"`
	Succession *SignedSuccession `json:"succession,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Bytes      int64             `json:"bytes,omitempty"`
}

// content is what a store record says of the noised bytes, and of the receipt that
// the server will be asked for.
type content struct {
	Hash    Hash            `json:"sha256"`
	Size    int64           `json:"bytes"`
	Counter int64           `json:"counter"`
	Spent   event.Statement `json:"spent"`
}

func (r record) encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write a %s record: %w", r.Kind, err)
	}
	return text, nil
}

// decodeRecord reads a record that has exactly what its kind needs.
func decodeRecord(text []byte) (record, error) {
	var r record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return record{}, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return record{}, fmt.Errorf("there is more than one record in it")
	}
	has := map[string]bool{
		"identity": r.Identity != nil, "ceiling": r.Ceiling != nil, "membership": r.Membership != nil, "charge": r.Charge != nil,
		"slot": r.Slot != nil, "content": r.Content != nil, "receipt": r.Receipt != nil, "succession": r.Succession != nil,
	}
	needs, known := map[string][]string{
		kindFounded: {"identity"}, kindCeiling: {"ceiling"}, kindMember: {"membership"}, kindReserve: {"charge"},
		kindStore: {"slot", "content"}, kindCommit: {"slot", "receipt"}, kindAbandon: {"slot"}, kindCut: {}, kindSuccession: {"succession"},
	}[r.Kind]
	if !known {
		return record{}, fmt.Errorf("it is of the unknown kind %q; a newer version may have written it", clip(r.Kind))
	}
	for _, field := range needs {
		if !has[field] {
			return record{}, fmt.Errorf("a %s record lacks its %s", r.Kind, field)
		}
		delete(has, field)
	}
	for field, there := range has {
		if there {
			return record{}, fmt.Errorf("a %s record has no %s", r.Kind, field)
		}
	}
	return r, nil
}
