package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/coterie-fl/coterie/internal/tier"
)

// authorityFiles is an authority of the test's own, whose certificates lie in a folder.
type authorityFiles struct {
	t      *testing.T
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	ca     string // file with its certificate
}

func newAuthorityFiles(t *testing.T) *authorityFiles {
	t.Helper()
	a := &authorityFiles{t: t, folder: t.TempDir()}
	a.ca, _ = a.issue("authority", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes a certificate and its key.
func (a *authorityFiles) issue(name string, c *x509.Certificate) (cert, key string) {
	a.t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, secret
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, secret.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
		a.key = secret
	}
	raw, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		a.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func (a *authorityFiles) write(name string, text []byte) string {
	a.t.Helper()
	file := filepath.Join(a.folder, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// server is a certificate for 127.0.0.1, as lines of a NATS server's file.
func (a *authorityFiles) server(more string) string {
	a.t.Helper()
	cert, key := a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, timeout: 5 %s }\n", cert, key, a.ca, more)
}

// signed is an operator with one account that may store, as lines of a NATS server's file,
// and the credentials of a user of it and of one who is no longer let in.
func (a *authorityFiles) signed() (settings, creds, ended string) {
	a.t.Helper()
	must := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := make()
		must(err)
		public, err := k.PublicKey()
		must(err)
		return k, public
	}
	operator, operatorName := pair(nkeys.CreateOperator)
	account, accountName := pair(nkeys.CreateAccount)
	_, system := pair(nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(accountName)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1}
	accountText, err := claims.Encode(operator)
	must(err)
	systemText, err := jwt.NewAccountClaims(system).Encode(operator)
	must(err)
	own := jwt.NewOperatorClaims(operatorName)
	own.SystemAccount = system
	operatorText, err := own.Encode(operator)
	must(err)
	user := func(name string, until time.Time) string {
		key, public := pair(nkeys.CreateUser)
		c := jwt.NewUserClaims(public)
		c.Expires = until.Unix()
		text, err := c.Encode(account)
		must(err)
		seed, err := key.Seed()
		must(err)
		file, err := jwt.FormatUserConfig(text, seed)
		must(err)
		return a.write(name+".creds", file)
	}
	settings = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }\n",
		a.write("operator.jwt", []byte(operatorText)), system, accountName, accountText, system, systemText)
	return settings, user("worker", time.Now().Add(time.Hour)), user("ended", time.Now().Add(-time.Minute))
}

// heardOf has a server hear of a signed account from one alone. A nats-server 2.9.10 that hears of
// it from several at once, for the first time, now and then loses the streams that it has just made
// (more than once in 150 starts, never in 300 with this; queue's TestLostPlaces has what we say then).
func (a authorityFiles) heardOf(server, creds string) {
	a.t.Helper()
	nc, err := nats.Connect("tls://"+server, nats.UserCredentials(creds), nats.RootCAs(a.ca))
	if err != nil {
		a.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.AccountInfo(a.t.Context())
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// TestWorkersAccess: command and worker meet over TLS by every way of saying who they are
// that a NATS server knows, and who is not let in is told why and what to do, without a
// secret in it.
func TestWorkersAccess(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector is not in the program")
	}
	a, stranger := newAuthorityFiles(t), newAuthorityFiles(t)
	const password = "open-sesame-7"
	nkey, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := nkey.PublicKey()
	seed, _ := nkey.Seed()
	other, _ := nkeys.CreateUser()
	otherSeed, _ := other.Seed()
	file, otherFile := a.write("nkey", seed), a.write("other-nkey", otherSeed)
	right, wrong, empty := a.write("password", []byte(password+"\n")), a.write("wrong", []byte("guess")), a.write("empty", nil)
	cert, key := a.issue("worker", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	theirs, theirKey := stranger.issue("worker", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	users := tier.NATSConfigured(t, t.TempDir(), a.server("")+fmt.Sprintf(
		"accounts { RESEARCH { jetstream: enabled, users: [ {user: sweeps, password: %q}, {nkey: %s} ] }, BARE { users: [ {user: bare, password: %q} ] } }", password, public, password))
	mutual := tier.NATSConfigured(t, t.TempDir(), a.server(", verify: true")+fmt.Sprintf("authorization { token: %q }", password))
	settings, creds, ended := a.signed()
	signed := tier.NATSConfigured(t, t.TempDir(), a.server("")+settings)
	a.heardOf(signed, creds)
	plain := tier.NATSConfigured(t, t.TempDir(), fmt.Sprintf("authorization { token: %q }", password))

	sweep := grid(t, 5, 2, 1)
	for name, access := range map[string][]string{
		"password": {"--nats", "tls://" + users, "--nats-ca", a.ca, "--nats-user", "sweeps", "--nats-password-file", right},
		"url":      {"--nats", "tls://sweeps:" + password + "@" + users, "--nats-ca", a.ca},
		"nkey":     {"--nats", "nats://" + users, "--nats-ca", a.ca, "--nats-nkey", file},
		"mutual":   {"--nats", "tls://" + mutual, "--nats-ca", a.ca, "--nats-cert", cert, "--nats-key", key, "--nats-token-file", right},
		"creds":    {"--nats", "tls://" + signed, "--nats-ca", a.ca, "--nats-creds", creds},
	} {
		t.Run(name, func(t *testing.T) {
			access := append([]string{"--nats-name", name}, access...)
			c := &crew{t: t, args: access}
			defer c.dismiss()
			c.hire()
			text, err := exec.Command(binary, append([]string{"sweep", sweep, "--out", t.TempDir()}, access...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, text, c.said())
			}
			if strings.Contains(string(text)+c.said(), password) {
				t.Errorf("a password is shown: %s%s", text, c.said())
			}
		})
	}
	for name, refused := range map[string]struct {
		access []string
		want   string
	}{
		"wrong authority":       {[]string{"--nats", "tls://" + users, "--nats-ca", stranger.ca, "--nats-nkey", file}, "by an authority that is not trusted here"},
		"the system's":          {[]string{"--nats", "tls://" + users, "--nats-nkey", file}, "name the authority's certificate with --nats-ca"},
		"other name":            {[]string{"--nats", "tls://" + strings.Replace(users, "127.0.0.1", "localhost", 1), "--nats-ca", a.ca, "--nats-nkey", file}, "is for another name"},
		"wrong password":        {[]string{"--nats", "tls://" + users, "--nats-ca", a.ca, "--nats-user", "sweeps", "--nats-password-file", wrong}, "does not know us"},
		"wrong password in URL": {[]string{"--nats", "tls://sweeps:" + password + "x@" + users, "--nats-ca", a.ca}, "does not know us"},
		"nobody":                {[]string{"--nats", "tls://" + users, "--nats-ca", a.ca}, "does not know us"},
		"other nkey":            {[]string{"--nats", "tls://" + users, "--nats-ca", a.ca, "--nats-nkey", otherFile}, "does not know us"},
		"ended credentials":     {[]string{"--nats", "tls://" + signed, "--nats-ca", a.ca, "--nats-creds", ended}, "does not know us, or no longer"},
		"no credentials":        {[]string{"--nats", "tls://" + signed, "--nats-ca", a.ca, "--nats-creds", right}, "it holds no user's credentials"},
		"no certificate":        {[]string{"--nats", "tls://" + mutual, "--nats-ca", a.ca, "--nats-token-file", right}, "give it with --nats-cert and --nats-key"},
		"other's certificate":   {[]string{"--nats", "tls://" + mutual, "--nats-ca", a.ca, "--nats-cert", theirs, "--nats-key", theirKey, "--nats-token-file", right}, "may want a certificate of ours that it trusts"},
		"no TLS there":          {[]string{"--nats", "tls://" + plain, "--nats-token-file", right}, "speaks without TLS"},
		"no JetStream":          {[]string{"--nats", "tls://" + users, "--nats-ca", a.ca, "--nats-user", "bare", "--nats-password-file", right}, "the account of our user has no JetStream"},
		"unreachable":           {[]string{"--nats", "tls://bare:" + password + "@127.0.0.1:1", "--nats-ca", a.ca}, "nobody answers at tls://127.0.0.1:1"},
		"no address":            {[]string{"--nats", "tls://bare:" + password + "@127.0.0.1:x"}, "this is no address"},
		"twice":                 {[]string{"--nats", "tls://" + users, "--nats-token-file", right, "--nats-nkey", file}, "give one of them"},
		"half":                  {[]string{"--nats", "tls://" + users, "--nats-user", "sweeps"}, "belong together"},
		"empty":                 {[]string{"--nats", "tls://" + users, "--nats-token-file", empty}, "is empty"},
		"missing":               {[]string{"--nats", "tls://" + users, "--nats-nkey", file + "x"}, "--nats-nkey: open "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"sweep", sweep, "--out", t.TempDir()}, {"worker", "--idle", "1s", "--cache", t.TempDir()}} {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // who is let in waits for cells
				said, err := exec.CommandContext(ctx, binary, append(args, refused.access...)...).CombinedOutput()
				cancel()
				if err == nil || !strings.Contains(string(said), refused.want) || strings.Contains(string(said), password) {
					t.Errorf("coterie %s: %v: %s\nwant: %s", args[0], err, said, refused.want)
				}
			}
		})
	}
}
