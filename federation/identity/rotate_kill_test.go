package identity_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// rotateUntilKilled says how often it has rotated, as the command does.
func rotateUntilKilled(dir string) error {
	for {
		a, err := identity.Open(dir, identity.Options{})
		if err != nil {
			return err
		}
		r, err := a.Rotate(time.Hour)
		if err != nil {
			return err
		}
		fmt.Println(r.Number)
	}
}

// connectionOf is the state of a member's connection, without the connection.
func connectionOf(m *identity.Member) (*tls.ConnectionState, error) {
	config, err := m.ClientTLS()
	if err != nil {
		return nil, err
	}
	c, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(c.Certificate[1])
	if err != nil {
		return nil, err
	}
	return &tls.ConnectionState{Version: tls.VersionTLS13, VerifiedChains: [][]*x509.Certificate{{c.Leaf, ca}}}, nil
}

// renewUntilKilled renews a member's certificate again and again, and says so each time.
func renewUntilKilled(authority, member string) error {
	a, err := identity.Open(authority, identity.Options{})
	if err != nil {
		return err
	}
	m, err := identity.OpenMember(member)
	for err == nil {
		err = renew(a, m)
		fmt.Println("renewed")
	}
	return err
}

// renew is what a participant and its server do, without the network.
func renew(a *identity.Authority, m *identity.Member) error {
	request, accept, err := m.Renewal()
	if err != nil {
		return err
	}
	state, err := connectionOf(m)
	if err != nil {
		return err
	}
	g, err := a.Renew(state, request)
	if err != nil {
		return err
	}
	all, err := a.Successions()
	if err != nil {
		return err
	}
	return errors.Join(m.Learn(all), accept(g.Chain))
}

// until runs this program with a task until it has said so many lines, and a moment
// longer, and kills it.
func until(t *testing.T, lines int, moment time.Duration, environment ...string) (said []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		if said = append(said, scan.Text()); len(said) == lines {
			time.Sleep(moment) // when it dies is meant to vary; nothing waits for it
			cmd.Process.Kill()
		}
		if len(scan.Text()) > 6 && scan.Text()[:6] == "failed" {
			t.Fatal(scan.Text())
		}
	}
	cmd.Wait()
	return said
}

// TestRotationSurvivesAKill: whenever it dies, the folder holds one whole set of keys, the
// federation has its name, what was said is so, and the first member of all is still let
// in and can follow to the newest authority.
func TestRotationSurvivesAKill(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	federation, first := f.Authority.Federation(), f.Enrol(t, "north")
	kills, most := 12, 0
	for kill := range kills {
		for _, line := range until(t, 1+kill%2, time.Duration(kill)*1500*time.Microsecond, "COTERIE_TEST_ROTATE="+f.Dir) {
			fmt.Sscan(line, &most)
		}
		// The server that has run all the time sees whatever there is.
		if _, err := f.Authority.Admit(verified(t, first)); err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		a, err := identity.Open(f.Dir, identity.Options{})
		if err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		all, err := a.Successions()
		if err != nil || len(all) < most || a.Federation() != federation {
			t.Fatalf("after kill %d: %d rotations of %d that were said, federation %s, %v", kill, len(all), most, a.Federation(), err)
		}
		if err := renew(a, first); err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		if first.Known() != len(all) || first.Outdated() || !first.Signer().Equal(a.ReceiptKey().Public()) {
			t.Fatalf("after kill %d: the member knows %d of %d", kill, first.Known(), len(all))
		}
		wantOneSet(t, f.Dir, len(all))
	}
	if most < kills {
		t.Errorf("only %d rotations in %d kills", most, kills)
	}
}

// wantOneSet checks that the folder holds the keys of one authority, and bridges.
func wantOneSet(t *testing.T, dir string, number int) {
	t.Helper()
	for _, name := range []string{"ca", "server", "receipts"} {
		if files, _ := filepath.Glob(filepath.Join(dir, name+"*.key")); len(files) != 1 || filepath.Base(files[0]) != fmt.Sprintf("%s-%d.key", name, number) {
			t.Errorf("keys of %s: %v, want that of number %d alone", name, files, number)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "bridge-*.key")); len(files) != number {
		t.Errorf("%d bridges after %d rotations", len(files), number)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, ".*.key.new-*")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// TestRenewalSurvivesAKill: whenever it dies, the member has a key with its certificate,
// and is let in.
func TestRenewalSurvivesAKill(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	i := newInvite(t, f, "north")
	dir := filepath.Join(t.TempDir(), "north")
	m, err := identity.NewMember(dir, i)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Authority.Redeem(i.String(), csr)
	if err == nil {
		err = m.Accept(g.Chain)
	}
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for kill := range 15 {
		until(t, 1+kill%3, time.Duration(kill)*400*time.Microsecond, "COTERIE_TEST_RENEW="+f.Dir, "COTERIE_TEST_MEMBER="+dir)
		if m, err = identity.OpenMember(dir); err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		if p, err := f.Authority.Admit(verified(t, m)); err != nil || p.Name != "north" {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		keys[privateKey(t, dir)] = true
		if kill == 7 { // and across a rotation
			if _, err := f.Authority.Rotate(time.Hour); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(keys) != 15 {
		t.Errorf("%d keys after 15 times: every renewal has a new one", len(keys))
	}
	if err := renew(f.Authority, m); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func privateKey(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "identity.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	return string(block.Bytes)
}
