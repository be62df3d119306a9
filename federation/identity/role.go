package identity

import (
	"fmt"
	"net/url"
	"strings"
)

// Role is what a certificate lets its holder do. A name has one holder and one role.
type Role string

// Participants take part in runs; operators ask how the server stands. Neither may do
// what the other does.
const (
	Participant Role = "participant"
	Operator    Role = "operator"
)

// roleOf reads a role from a file; those of before there were operators name none.
func roleOf(text Role) (Role, error) {
	switch text {
	case "", Participant:
		return Participant, nil
	case Operator:
		return Operator, nil
	}
	return "", fmt.Errorf("a role %q, which this program does not know", text)
}

// memberURI is a name in a certificate, in the form of a SPIFFE ID: the federation, the
// role, the member.
func memberURI(federation string, role Role, name string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: federation, Path: "/" + string(role) + "/" + name}
}

// roleIn is the role that a name in a certificate claims.
func roleIn(name *url.URL) Role {
	if strings.HasPrefix(name.Path, "/"+string(Operator)+"/") {
		return Operator
	}
	return Participant
}

// Role is the member's.
func (m *Member) Role() Role { return m.settings.Role }

// oneRole refuses to give a name a second role: revoked and cancelled entries are no
// longer anybody's, all others are.
func (r *registry) oneRole(name string, role Role) error {
	clash := func(other string, has Role, over bool) bool { return other == name && has != role && !over }
	for _, i := range r.Invites {
		if clash(i.Name, i.Role, i.Cancelled) {
			return taken(name, i.Role)
		}
	}
	for _, c := range r.Issued {
		if clash(c.Name, c.Role, !c.Revoked.IsZero()) {
			return taken(name, c.Role)
		}
	}
	return nil
}

func taken(name string, has Role) error {
	return fmt.Errorf("%w: %s is the name of %s %s here, and a name has one holder and one role: choose another name, or revoke %s first and invite it with --readmit",
		ErrName, name, article(has), has, name)
}

func article(r Role) string {
	if r == Operator {
		return "an"
	}
	return "a"
}

// readRoles fills in the roles of entries that have none, and refuses unknown ones.
func (r *registry) readRoles() (err error) {
	for id, i := range r.Invites {
		if i.Role, err = roleOf(i.Role); err != nil {
			return fmt.Errorf("invitation %s has %w", id, err)
		}
	}
	for serial, c := range r.Issued {
		if c.Role, err = roleOf(c.Role); err != nil {
			return fmt.Errorf("certificate %s has %w", serial, err)
		}
	}
	return nil
}
