package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Invite is a one-time permission to enrol. Its text is a secret.
type Invite struct {
	Name    string
	Role    Role
	Server  string            // host:port
	CA      [32]byte          // SHA-256 of the authority's certificate
	Signer  ed25519.PublicKey // verifies the server's receipts
	Expires time.Time         // to the second

	secret [16]byte
}

// The text of an invitation: a prefix that scanners for leaked secrets can find,
// then in base64 a version, the secret, the authority's hash, the receipt key, the
// end in seconds, name and address with their lengths, and a checksum that tells a
// slip of the clipboard from an invitation that is not known. The version is that of the
// role: an operator's invitation is no participant's to a program that knows no operators.
const (
	inviteVersion   = 1
	operatorVersion = 2
	maxServer       = 255
	checksumBytes   = 4
	// maxInvite is the text of the longest name and address, rounded up.
	maxInvite = 1024
)

// InvitePrefix begins every invitation.
const InvitePrefix = "coterie-invite-"

// String is the invitation's text.
func (i Invite) String() string {
	b := []byte{inviteVersion}
	if i.Role == Operator {
		b[0] = operatorVersion
	}
	b = append(b, i.secret[:]...)
	b = append(b, i.CA[:]...)
	b = append(b, i.Signer...)
	b = binary.BigEndian.AppendUint64(b, uint64(i.Expires.Unix()))
	for _, s := range []string{i.Name, i.Server} {
		b = append(append(b, byte(len(s))), s...)
	}
	sum := sha256.Sum256(b)
	return InvitePrefix + base64.RawURLEncoding.EncodeToString(append(b, sum[:checksumBytes]...))
}

// ParseInvite reads an invitation's text.
func ParseInvite(text string) (Invite, error) {
	var i Invite
	if len(text) > maxInvite {
		return i, fmt.Errorf("%w: it has %d characters, at most %d are read", ErrInvite, len(text), maxInvite)
	}
	code, ok := strings.CutPrefix(strings.TrimSpace(text), InvitePrefix)
	if !ok {
		return i, fmt.Errorf("%w: it does not start with %q", ErrInvite, InvitePrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil || len(b) < checksumBytes {
		return i, fmt.Errorf("%w: it is cut short or mistyped", ErrInvite)
	}
	body := b[:len(b)-checksumBytes]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:checksumBytes], b[len(body):]) {
		return i, fmt.Errorf("%w: it is cut short or mistyped", ErrInvite)
	}
	if err := i.decode(body); err != nil {
		return Invite{}, err
	}
	return i, nil
}

func (i *Invite) decode(b []byte) error {
	const fixed = 1 + 16 + 32 + ed25519.PublicKeySize + 8
	switch {
	case len(b) > 0 && b[0] != inviteVersion && b[0] != operatorVersion:
		return fmt.Errorf("%w: it has version %d, this program reads %d and %d", ErrInvite, b[0], inviteVersion, operatorVersion)
	case len(b) < fixed:
		return fmt.Errorf("%w: it is too short", ErrInvite)
	}
	if i.Role = Participant; b[0] == operatorVersion {
		i.Role = Operator
	}
	b = b[1:]
	b = b[copy(i.secret[:], b):]
	b = b[copy(i.CA[:], b):]
	i.Signer, b = ed25519.PublicKey(bytes.Clone(b[:ed25519.PublicKeySize])), b[ed25519.PublicKeySize:]
	i.Expires, b = time.Unix(int64(binary.BigEndian.Uint64(b)), 0).UTC(), b[8:]
	for _, s := range []*string{&i.Name, &i.Server} {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return fmt.Errorf("%w: it is too short", ErrInvite)
		}
		*s, b = string(b[1:1+int(b[0])]), b[1+int(b[0]):]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: it is too long", ErrInvite)
	}
	if err := CheckName(i.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvite, err)
	}
	if err := CheckServer(i.Server); err != nil {
		return fmt.Errorf("%w: %w", ErrInvite, err)
	}
	return nil
}

// id is what the registry keeps of the invitation: enough to know it again, not
// enough to use it.
func (i Invite) id() string {
	sum := sha256.Sum256(i.secret[:])
	return hex.EncodeToString(sum[:])
}
