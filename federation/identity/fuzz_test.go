package identity

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// FuzzInvite: any text is an invitation or ErrInvite; what is read is written the
// same way again.
func FuzzInvite(f *testing.F) {
	i := Invite{Name: "north", Server: "localhost:7443", Signer: make([]byte, 32), Expires: time.Unix(1_800_000_000, 0).UTC()}
	f.Add(i.String())
	f.Add(i.String()[:80])
	f.Add(InvitePrefix)
	f.Add(InvitePrefix + "AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseInvite(text)
		if err != nil {
			if !errors.Is(err, ErrInvite) {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := ParseInvite(i.String())
		if err != nil || again.String() != i.String() || again.Name != i.Name || !again.Expires.Equal(i.Expires) {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// FuzzInviteBody reaches behind the checksum.
func FuzzInviteBody(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 89))
	f.Add(append([]byte{1}, make([]byte, 120)...))
	f.Fuzz(func(t *testing.T, body []byte) {
		var i Invite
		if err := i.decode(body); err != nil && !errors.Is(err, ErrInvite) {
			t.Errorf("%v", err)
		}
	})
}

// FuzzRequest: any bytes are a request for the name and an allowed key, or
// ErrRequest.
func FuzzRequest(f *testing.F) {
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "north"}}, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Add(der[:40])
	f.Fuzz(func(t *testing.T, request []byte) {
		public, err := checkRequest(request, "north")
		if err == nil {
			err = allowedKey(public)
		}
		if err != nil && !errors.Is(err, ErrRequest) {
			t.Errorf("%v", err)
		}
	})
}

// FuzzChain: what a server answers is a member's chain or an error.
func FuzzChain(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	der, err := selfSign(key, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(certificatePEM(der, der))
	m := &Member{key: key, settings: memberSettings{Name: "north"}}
	f.Fuzz(func(t *testing.T, chain []byte) {
		if _, err := m.check(m.key, chain); err == nil {
			t.Error("a chain of nobody's is taken")
		}
	})
}

// FuzzSuccessions: what a server shows is verified, or an error.
func FuzzSuccessions(f *testing.F) {
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	der, err := selfSign(key, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal([]Succession{{Old: der, New: der, Ends: time.Now(), Signature: der[:70]}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{text, []byte("[]"), []byte("null"), []byte("[{}]"), []byte(`[{"overlap_ends":"99999-01-01T00:00:00Z"}]`), []byte("[[")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseSuccessions(text)
		if err == nil {
			_, err = newLineage(all)
		}
		if err == nil && len(all) > 0 {
			t.Error("successions of nobody's are taken")
		}
		if err != nil && !errors.Is(err, ErrSuccession) {
			t.Error(err)
		}
	})
}
