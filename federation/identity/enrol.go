package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// maxInviteLifetime keeps forgotten invitations from lying about for years.
const maxInviteLifetime = 31 * 24 * time.Hour

// Invite lets one participant enrol under name, once, within the lifetime. An
// earlier invitation for the same name that nobody has used ends. Somebody who was
// revoked is not invited unless readmitted before.
func (a *Authority) Invite(name string, lifetime time.Duration) (Invite, error) {
	return a.invite(name, Participant, lifetime)
}

func (a *Authority) invite(name string, role Role, lifetime time.Duration) (Invite, error) {
	if err := CheckName(name); err != nil {
		return Invite{}, err
	}
	if name == LocalOperator {
		return Invite{}, fmt.Errorf("%w: %q is the name of the server's own operator, who needs no invitation; choose another", ErrName, name)
	}
	if lifetime <= 0 || lifetime > maxInviteLifetime {
		return Invite{}, fmt.Errorf("%w: an invitation for %v: it must last more than 0 and at most %v", ErrSetting, lifetime, maxInviteLifetime)
	}
	now := a.now()
	i := Invite{Name: name, Role: role, Server: a.Server(), Expires: now.Add(lifetime).UTC().Truncate(time.Second)}
	if _, err := rand.Read(i.secret[:]); err != nil {
		return Invite{}, fmt.Errorf("draw an invitation: %w", err)
	}
	err := a.registry.add(func(r *registry) error {
		if _, blocked := r.Blocked[name]; blocked {
			return fmt.Errorf("%s is %w: readmit it first (--readmit)", name, ErrRevoked)
		}
		k, err := a.current()
		if err != nil {
			return err
		}
		i.CA, i.Signer = sha256.Sum256(k.ca.Raw), k.receiptKey.Public().(ed25519.PublicKey)
		r.forget(now)
		if err := r.oneRole(name, role); err != nil {
			return err
		}
		for id, earlier := range r.Invites {
			if earlier.Name == name && earlier.Key == "" {
				earlier.Cancelled = true
				r.touchInvite(id)
			}
		}
		r.Invites[i.id()] = &invitation{Name: name, Role: role, Created: now.UTC(), Expires: i.Expires}
		r.touchInvite(i.id())
		return nil
	})
	if err != nil {
		return Invite{}, fmt.Errorf("invite %s: %w", name, err)
	}
	return i, nil
}

// Redeem enrols the holder of an invitation: text is the invitation, request a
// certificate request in DER. The same invitation with the same key again gives
// another certificate, for the answer may have been lost; with another key it is
// ErrInvite. Earlier certificates of the same name end, unless they are for the
// same key: a name has one holder.
func (a *Authority) Redeem(text string, request []byte) (Grant, error) {
	i, err := ParseInvite(text)
	if err != nil {
		return Grant{}, err
	}
	k, err := a.current()
	if err != nil {
		return Grant{}, err
	}
	if i.CA != sha256.Sum256(k.ca.Raw) {
		return Grant{}, fmt.Errorf("%w: it is for another federation, or from before this one's keys were rotated", ErrInvite)
	}
	public, err := checkRequest(request, i.Name)
	if err != nil {
		return Grant{}, err
	}
	key, err := keyHash(public)
	if err != nil {
		return Grant{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return a.grant(i.Name, i.Role, public, key, func(r *registry) error {
		now := a.now()
		known := r.Invites[i.id()]
		switch {
		case known == nil || known.Name != i.Name || known.Role != i.Role:
			return fmt.Errorf("%w: it is not known here", ErrInvite)
		case known.Cancelled:
			return fmt.Errorf("%w: it was cancelled", ErrInvite)
		case now.After(known.Expires):
			return fmt.Errorf("%w: it expired at %s", ErrInvite, known.Expires.Format(time.RFC3339))
		case known.Key != "" && known.Key != key:
			return fmt.Errorf("%w: it was used already, with another key", ErrInvite)
		}
		if known.Key == "" {
			known.Key, known.Used = key, now.UTC()
			r.touchInvite(i.id())
		}
		r.supersede(i, key, now.UTC())
		return nil
	})
}

// supersede ends what others had under the invitation's name.
func (r *registry) supersede(i Invite, key string, now time.Time) {
	for serial, c := range r.Issued {
		if c.Name == i.Name && c.Key != key && c.take(now) {
			r.touchIssue(serial)
		}
	}
	for id, other := range r.Invites {
		if other.Name == i.Name && id != i.id() {
			other.Cancelled = true
			r.touchInvite(id)
		}
	}
}

// Renew gives the holder of a connection a new certificate, for the same or a new
// key. The old one stays valid to its end.
func (a *Authority) Renew(state *tls.ConnectionState, request []byte) (Grant, error) {
	peer, err := a.Admit(state)
	if err != nil {
		return Grant{}, err
	}
	if peer.Name == LocalOperator {
		return Grant{}, fmt.Errorf("%w: the server's own operator has certificates for minutes, a new one every time", ErrRequest)
	}
	public, err := checkRequest(request, peer.Name)
	if err != nil {
		return Grant{}, err
	}
	key, err := keyHash(public)
	if err != nil {
		return Grant{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return a.grant(peer.Name, peer.Role, public, key, func(r *registry) error { return r.admit(peer, a.now()) })
}

// grant signs a certificate if allowed says so, and records it before anybody
// gets it.
func (a *Authority) grant(name string, role Role, public any, key string, allowed func(*registry) error) (Grant, error) {
	var leaf *x509.Certificate
	var k *keys
	err := a.registry.add(func(r *registry) error {
		if _, blocked := r.Blocked[name]; blocked {
			return fmt.Errorf("%s is %w", name, ErrRevoked)
		}
		if err := allowed(r); err != nil {
			return err
		}
		var err error
		if k, err = a.current(); err != nil { // nobody rotates while the registry is changed
			return err
		}
		if leaf, err = a.sign(k, public, memberTemplate(k, name, role), a.Lifetime()); err != nil {
			return err
		}
		r.forget(a.now())
		r.Issued[serialText(leaf.SerialNumber)] = &issue{Name: name, Role: role, Key: key, Issued: a.now().UTC(), Expires: leaf.NotAfter}
		r.touchIssue(serialText(leaf.SerialNumber))
		return nil
	})
	if err != nil {
		return Grant{}, err
	}
	return Grant{
		Chain: certificatePEM(leaf.Raw, k.ca.Raw), Expires: leaf.NotAfter,
		Peer: Peer{Name: name, Role: role, Serial: serialText(leaf.SerialNumber)},
	}, nil
}

// Admit says who is at the other end of a connection. It is to be asked for every
// request: a certificate may expire or be revoked while a connection lives.
func (a *Authority) Admit(state *tls.ConnectionState) (Peer, error) {
	k, err := a.current()
	if err != nil {
		return Peer{}, err
	}
	peer, err := PeerOf(state, k.federation)
	if err != nil {
		return Peer{}, err
	}
	now := a.now()
	chain := state.VerifiedChains[0]
	leaf := chain[0]
	if err := k.knows(chain[len(chain)-1], now); err != nil {
		return Peer{}, err
	}
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return Peer{}, fmt.Errorf("%w: %s has one from %s to %s", ErrOutdated, leaf.Subject.CommonName,
			leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	renewed := false
	err = a.registry.view(func(r *registry) error {
		if renewed = r.renewedInGap(peer, leaf); renewed {
			return nil
		}
		return r.admit(peer, now)
	})
	if err == nil && renewed {
		err = a.adopt(peer, leaf)
	}
	if err != nil {
		return Peer{}, err
	}
	return peer, nil
}

// admit says whether the registry knows the certificate and has not taken it back.
func (r *registry) admit(p Peer, now time.Time) error {
	c := r.Issued[p.Serial]
	_, blocked := r.Blocked[p.Name]
	switch {
	case c == nil || c.Name != p.Name || c.Role != p.Role:
		return fmt.Errorf("%w: serial number %s was not issued to %s %s", ErrWrongCertificate, p.Serial, p.Role, p.Name)
	case blocked:
		return fmt.Errorf("%s is %w", p.Name, ErrRevoked)
	case !c.Revoked.IsZero():
		return fmt.Errorf("certificate %s of %s is %w", p.Serial, p.Name, ErrRevoked)
	case now.After(c.Expires):
		return fmt.Errorf("%w: %s has expired", ErrOutdated, p.Serial)
	}
	return nil
}
