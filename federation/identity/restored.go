package identity

import (
	"crypto/x509"
	"fmt"
	"time"
)

// gap is a time of which a registry knows nothing: from a backup to its restoring. From is
// in whole seconds, as backups tell their time.
type gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// MarkRestored tells the registry in dir that it comes from a backup. Who had a
// certificate then, and renewed it since, is let in with the new one, which is recorded at
// its first use. Nobody else is: names that were not known then, or that were revoked.
func MarkRestored(dir string, from, to time.Time) error {
	err := newRegistryFile(dir).change(func(r *registry) error {
		r.Gaps = append(r.Gaps, gap{from.UTC(), to.UTC()})
		return nil
	})
	if err != nil {
		return fmt.Errorf("mark the registry as restored: %w", err)
	}
	return nil
}

// renewedInGap says whether a certificate that the registry does not know was signed in a
// time of which it knows nothing, for somebody who held a valid one when that began.
func (r *registry) renewedInGap(p Peer, leaf *x509.Certificate) bool {
	signed := leaf.NotBefore.Add(skew)
	if _, blocked := r.Blocked[p.Name]; blocked || p.Name == LocalOperator || r.Issued[p.Serial] != nil {
		return false
	}
	for _, g := range r.Gaps {
		if signed.Before(g.From) || signed.After(g.To) {
			continue
		}
		for _, c := range r.Issued {
			if c.Name == p.Name && c.Role == p.Role && c.Revoked.IsZero() && c.Issued.Before(g.From.Add(time.Second)) && g.From.Before(c.Expires) {
				return true
			}
		}
	}
	return false
}

// adopt records a certificate that was signed in a gap.
func (a *Authority) adopt(p Peer, leaf *x509.Certificate) error {
	key, err := keyHash(leaf.PublicKey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrongCertificate, err)
	}
	return a.registry.change(func(r *registry) error {
		if r.renewedInGap(p, leaf) {
			r.Issued[p.Serial] = &issue{Name: p.Name, Role: p.Role, Key: key, Issued: leaf.NotBefore.Add(skew).UTC(), Expires: leaf.NotAfter}
		}
		return r.admit(p, a.now())
	})
}
