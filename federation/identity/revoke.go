package identity

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Revocation is what was taken back.
type Revocation struct {
	Name         string   `json:"name"`
	Serials      []string `json:"serials"`       // certificates that were valid until now
	Blocked      bool     `json:"blocked"`       // the name cannot enrol again unless readmitted
	Cancelled    int      `json:"cancelled"`     // invitations that ended with it
	AlreadyKnown bool     `json:"already_known"` // nothing was left to take back
}

// Revoke takes back all certificates and invitations of a participant and blocks
// its name, or takes back one certificate, by serial number. It holds for the next
// connection and the next request, in every process, without a restart.
func (a *Authority) Revoke(nameOrSerial string) (Revocation, error) {
	var out Revocation
	err := a.registry.change(func(r *registry) error {
		now := a.now().UTC()
		if serial, ok := normalSerial(nameOrSerial); ok && r.Issued[serial] != nil {
			out = r.takeBack(serial, now)
			return nil
		}
		if err := CheckName(nameOrSerial); err != nil {
			return fmt.Errorf("neither a known serial number nor a name: %w", err)
		}
		known := r.block(nameOrSerial, now, &out)
		if !known {
			return fmt.Errorf("nobody of that name was invited, and no certificate has that serial number: see `coterie ca list`")
		}
		return nil
	})
	if err != nil {
		return Revocation{}, fmt.Errorf("revoke %q: %w", nameOrSerial, err)
	}
	return out, nil
}

// takeBack revokes one certificate, and the invitation that could give its key
// another one.
func (r *registry) takeBack(serial string, now time.Time) Revocation {
	c := r.Issued[serial]
	out := Revocation{Name: c.Name, Serials: []string{}}
	if c.take(now) {
		out.Serials = []string{serial}
	}
	for _, i := range r.Invites {
		i.Cancelled = i.Cancelled || i.Key == c.Key
	}
	out.AlreadyKnown = len(out.Serials) == 0
	return out
}

// block takes back all that a participant has, and says whether it was known.
func (r *registry) block(name string, now time.Time, out *Revocation) (known bool) {
	// Who has the folder can always be its operator: there is nothing to block.
	*out = Revocation{Name: name, Blocked: name != LocalOperator, Serials: []string{}}
	_, already := r.Blocked[name]
	known = already
	for serial, c := range r.Issued {
		if c.Name != name {
			continue
		}
		known = true
		if c.take(now) {
			out.Serials = append(out.Serials, serial)
		}
	}
	for _, i := range r.Invites {
		if i.Name != name {
			continue
		}
		known = true
		if !i.Cancelled && i.Key == "" && now.Before(i.Expires) {
			out.Cancelled++
		}
		i.Cancelled = true
	}
	slices.Sort(out.Serials)
	out.AlreadyKnown = already && len(out.Serials)+out.Cancelled == 0
	if known && !already && out.Blocked {
		r.Blocked[name] = now
	}
	return known
}

// take revokes a certificate that is still valid.
func (c *issue) take(now time.Time) bool {
	if !c.Revoked.IsZero() || now.After(c.Expires) {
		return false
	}
	c.Revoked = now
	return true
}

// Readmit lets a revoked participant be invited again. What was taken back stays
// so.
func (a *Authority) Readmit(name string) error {
	return a.registry.change(func(r *registry) error {
		if _, blocked := r.Blocked[name]; !blocked {
			return fmt.Errorf("readmit %q: it is not revoked", name)
		}
		delete(r.Blocked, name)
		return nil
	})
}

// Listed is one line of what the authority has said: an invitation or a
// certificate.
type Listed struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Kind    string    `json:"kind"`   // invitation or certificate
	Status  string    `json:"status"` // open, used, valid, expired, cancelled, revoked
	Serial  string    `json:"serial,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// List is what the authority remembers, by name and time. Ended entries are kept
// for a week.
func (a *Authority) List() (list []Listed, blocked []string, err error) {
	list, blocked = []Listed{}, []string{}
	err = a.registry.view(func(r *registry) error {
		now := a.now()
		for _, i := range r.Invites {
			list = append(list, Listed{Name: i.Name, Role: i.Role, Kind: "invitation", Status: i.status(now), Created: i.Created, Expires: i.Expires})
		}
		for serial, c := range r.Issued {
			list = append(list, Listed{Name: c.Name, Role: c.Role, Kind: "certificate", Status: c.status(now), Serial: serial, Created: c.Issued, Expires: c.Expires})
		}
		for name := range r.Blocked {
			blocked = append(blocked, name)
		}
		return nil
	})
	slices.Sort(blocked)
	slices.SortFunc(list, func(x, y Listed) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), x.Created.Compare(y.Created), cmp.Compare(y.Kind, x.Kind), cmp.Compare(x.Serial, y.Serial))
	})
	return list, blocked, err
}

func (i *invitation) status(now time.Time) string {
	switch {
	case i.Key != "":
		return "used"
	case i.Cancelled:
		return "cancelled"
	case now.After(i.Expires):
		return "expired"
	}
	return "open"
}

func (c *issue) status(now time.Time) string {
	switch {
	case !c.Revoked.IsZero():
		return "revoked"
	case now.After(c.Expires):
		return "expired"
	}
	return "valid"
}
