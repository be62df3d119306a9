package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
)

// memberLineFile is what a member knows of the federation's authorities besides the one
// that its invitation named.
const memberLineFile = "succession.json"

// lineage verifies successions, which must lead to the authority of the invitation.
func (i Invite) lineage(all []Succession) (lineage, error) {
	line, err := newLineage(all)
	if err != nil {
		return lineage{}, err
	}
	if n := len(line.all); n > 0 && line.place(i.CA, ledger.Key(i.Signer)) < 0 {
		return lineage{}, fmt.Errorf("%w: the invitation names an authority that is not among them", ErrSuccession)
	}
	return line, nil
}

func (m *Member) loadLineage() error {
	path := filepath.Join(m.dir, memberLineFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was no succession, as far as is known here
	}
	if err != nil {
		return err
	}
	all, err := ParseSuccessions(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	line, err := m.follow(all)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.line.Store(&line)
	return nil
}

// known is what the member knows of the federation's authorities.
func (m *Member) known() lineage {
	if l := m.line.Load(); l != nil {
		return *l
	}
	return lineage{}
}

// follow verifies successions from what the member has pinned.
func (m *Member) follow(all []Succession) (lineage, error) {
	line, err := newLineage(all)
	if err != nil {
		return lineage{}, err
	}
	if len(all) > 0 && line.place(m.ca, ledger.Key(m.signer)) < 0 {
		return lineage{}, fmt.Errorf("%w: the authority %.16s that the invitation named is not among them", ErrSuccession, m.settings.CA)
	}
	return line, nil
}

// Learn takes the federation's successions if every one of them, from what is pinned, was
// signed by the one before, and keeps them. Otherwise it is ErrSuccession.
func (m *Member) Learn(all []Succession) error {
	line, err := m.follow(all)
	if err != nil {
		return err
	}
	known := m.known()
	if !line.extends(known) {
		return fmt.Errorf("%w: the server tells of %d successions that are not those %d that are known", ErrSuccession, len(all), len(known.links))
	}
	if len(line.links) == len(known.links) {
		return nil
	}
	if err := line.write(m.dir); err != nil {
		return err
	}
	m.line.Store(&line)
	return nil
}

func (l lineage) write(dir string) error {
	if len(l.links) == 0 {
		return nil
	}
	text, err := json.MarshalIndent(l.links, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the federation's authorities: %w", err)
	}
	return durable.WriteFile(filepath.Join(dir, memberLineFile), append(text, '\n'), 0o600)
}

// Known is how many successions of its federation the member knows.
func (m *Member) Known() int { return len(m.known().links) }

// Successions are those of the keys that sign receipts, from the federation's first on.
func (m *Member) Successions() []ledger.SignedSuccession {
	var all []ledger.SignedSuccession
	for _, s := range m.known().links {
		all = append(all, s.Receipts)
	}
	return all
}

// Signer verifies the server's receipts: it is the newest key that is known.
func (m *Member) Signer() ed25519.PublicKey {
	if all := m.known().all; len(all) > 0 {
		return slices.Clone(all[len(all)-1].key[:])
	}
	return m.signer
}

// trusts says whether an authority is the one that was pinned, or came after it.
func (m *Member) trusts(ca *x509.Certificate) bool {
	sum := sha256.Sum256(ca.Raw)
	line := m.known()
	if len(line.all) == 0 {
		return sum == m.ca
	}
	pinned := line.place(m.ca, ledger.Key(m.signer))
	return slices.ContainsFunc(line.all[pinned:], func(a ancestor) bool { return a.sum == sum })
}

// authority is the newest one that is known. It is asked for after enrolment.
func (m *Member) authority() (*x509.Certificate, error) {
	if all := m.known().all; len(all) > 0 {
		return all[len(all)-1].ca, nil
	}
	ca, err := x509.ParseCertificate(m.current.Load().Certificate[1])
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	return ca, nil
}

// Outdated says whether the certificate is by an authority that was succeeded.
func (m *Member) Outdated() bool {
	c := m.current.Load()
	if c == nil {
		return false
	}
	ca, err := m.authority()
	return err == nil && sha256.Sum256(ca.Raw) != sha256.Sum256(c.Certificate[1])
}
