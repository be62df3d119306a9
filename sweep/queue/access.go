package queue

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// ErrRefused means that the queue's servers and we do not admit each other: another try
// comes to the same.
var ErrRefused = errors.New("refused")

// access is who we are, and whom we trust.
func (o Options) access() (settings []nats.Option, err error) {
	for one := range strings.SplitSeq(o.URL, ",") {
		if _, err := url.Parse(strings.TrimSpace(one)); err != nil { // its own words would show a password
			return nil, fmt.Errorf("--nats %s: this is no address; want nats://HOST:PORT or tls://HOST:PORT, several separated by commas", WithoutSecrets(o.URL))
		}
	}
	who, err := o.identity()
	if err != nil {
		return nil, err
	}
	if who != nil {
		settings = append(settings, who)
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("--nats-cert and --nats-key belong together: give both, or none")
	}
	if o.CA == "" && o.Cert == "" {
		return settings, nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS13}
	if o.CA != "" {
		if secure.RootCAs, err = authority(o.CA); err != nil {
			return nil, err
		}
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("--nats-cert: %w", err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	return append(settings, nats.Secure(secure)), nil
}

// credentials reads a file as nsc writes it, once to see whether it is one.
func credentials(file string) func(text string) (nats.Option, error) {
	return func(text string) (nats.Option, error) {
		_, err := nkeys.ParseDecoratedJWT([]byte(text))
		if err == nil {
			_, err = nkeys.ParseDecoratedUserNKey([]byte(text))
		}
		if err != nil {
			return nil, fmt.Errorf("it holds no user's credentials as nsc writes them: %w", err)
		}
		return nats.UserCredentials(file), nil
	}
}

// identity is the user that we are; nil: nobody, or whom the URL names.
func (o Options) identity() (who nats.Option, err error) {
	var given []string
	for _, one := range []struct {
		flag, file string
		option     func(secret string) (nats.Option, error)
	}{
		{"--nats-creds", o.Creds, credentials(o.Creds)},
		{"--nats-token-file", o.TokenFile, func(secret string) (nats.Option, error) { return nats.Token(secret), nil }},
		{"--nats-nkey", o.NKey, func(string) (nats.Option, error) { return nats.NkeyOptionFromSeed(o.NKey) }},
		{"--nats-password-file", o.PasswordFile, func(secret string) (nats.Option, error) { return nats.UserInfo(o.User, secret), nil }},
	} {
		if one.file == "" {
			continue
		}
		given = append(given, one.flag)
		text, err := os.ReadFile(one.file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.flag, err)
		}
		secret := strings.TrimSpace(string(text))
		if secret == "" {
			return nil, fmt.Errorf("%s: %s is empty", one.flag, one.file)
		}
		if who, err = one.option(secret); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", one.flag, one.file, err)
		}
	}
	switch {
	case len(given) > 1:
		return nil, fmt.Errorf("%s each say who we are to the queue: give one of them", strings.Join(given, " and "))
	case (o.User == "") != (o.PasswordFile == ""):
		return nil, errors.New("--nats-user and --nats-password-file belong together: give both, or none")
	}
	return who, nil
}

func authority(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--nats-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--nats-ca: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// unreached says why there is no connection, and what to do.
func (o Options) unreached(err error) error {
	where := WithoutSecrets(o.URL)
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch text := err.Error(); {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: the certificate of the queue at %s is by an authority that is not trusted here (%w): name the authority's certificate with --nats-ca", ErrRefused, where, err)
	case errors.As(err, &other):
		return fmt.Errorf("%w: the certificate of the queue at %s is for another name (%w): name the server in --nats as its certificate does", ErrRefused, where, err)
	case errors.As(err, &invalid):
		return fmt.Errorf("%w: the certificate of the queue at %s is not valid (%w)", ErrRefused, where, err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("%w: the queue at %s does not know us, or no longer (%w): say who this is with --nats-creds, --nats-nkey, --nats-token-file, or --nats-user and --nats-password-file", ErrRefused, where, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: the queue at %s speaks without TLS (%w): leave --nats-ca, --nats-cert and tls:// out, or have the server encrypt", ErrRefused, where, err)
	case strings.Contains(text, "after TLS handshake"), strings.Contains(text, "remote error: tls:"):
		// Not ErrRefused: a server that ends just then looks the same.
		return fmt.Errorf("the queue at %s hung up after our part of the TLS handshake (%w): it may want a certificate of ours that it trusts; give it with --nats-cert and --nats-key", where, err)
	case errors.Is(err, nats.ErrNoServers), strings.Contains(text, "i/o timeout"), strings.Contains(text, "no such host"):
		return fmt.Errorf("nobody answers at %s (%w): is the server started, and is the address right?", where, err)
	}
	return fmt.Errorf("the queue at %s cannot be reached: %w", where, err)
}

// WithoutSecrets is a list of addresses as it may be shown: users and passwords are left
// out.
func WithoutSecrets(addresses string) string {
	parts := strings.Split(addresses, ",")
	for i, part := range parts {
		scheme, rest, ok := strings.Cut(part, "://")
		if !ok {
			scheme, rest = "", part
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			parts[i] = rest[at+1:]
			if ok {
				parts[i] = (&url.URL{Scheme: scheme, Host: rest[at+1:]}).String()
			}
		}
	}
	return strings.Join(parts, ",")
}
