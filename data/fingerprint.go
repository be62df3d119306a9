package data

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

// Digest tells the content of a federation's data from every other. It is a plain hash of
// private examples: whoever knows all of a small table but one cell could find that cell by
// it. So it stays in memory, and a Fingerprint is what is written.
type Digest struct {
	clients                 int
	names, counts, examples [sha256.Size]byte
}

// Fingerprint is a Digest under a random salt that stands beside it, to recognise the data by
// that something was computed on. Two of the same data have nothing in common, but who has
// the salt can try guesses: it is for the owner of the data alone, as the data are.
type Fingerprint struct {
	Salt     []byte `json:"salt"`
	Clients  int    `json:"clients"`
	Names    []byte `json:"names"`
	Counts   []byte `json:"counts"`
	Examples []byte `json:"examples"`
}

// Fingerprint is the digest under a new salt.
func (d Digest) Fingerprint() Fingerprint {
	salt := make([]byte, sha256.Size)
	rand.Read(salt) // never fails
	return d.under(salt)
}

func (d Digest) under(salt []byte) Fingerprint {
	keyed := func(what string, sum [sha256.Size]byte) []byte {
		h := hmac.New(sha256.New, salt)
		h.Write([]byte(what))
		h.Write(sum[:])
		return h.Sum(nil)
	}
	return Fingerprint{Salt: salt, Clients: d.clients, Names: keyed("names", d.names), Counts: keyed("counts", d.counts), Examples: keyed("examples", d.examples)}
}

// Known says whether there is a fingerprint: what an earlier version left has none.
func (f Fingerprint) Known() bool { return len(f.Salt) > 0 }

// Changed says what is no longer as it was when a fingerprint was taken, without a full stop;
// empty: the data are the same.
func (d Digest) Changed(since Fingerprint) string {
	now := d.under(since.Salt)
	switch {
	case now.Clients != since.Clients:
		return fmt.Sprintf("the number of clients is %d, and was %d", now.Clients, since.Clients)
	case !bytes.Equal(now.Names, since.Names):
		return "clients have other names"
	case !bytes.Equal(now.Counts, since.Counts):
		return "clients have other numbers of examples"
	case !bytes.Equal(now.Examples, since.Examples):
		return "examples are not what they were"
	}
	return ""
}
