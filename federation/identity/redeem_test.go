package identity_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// TestMain is also the other processes of tests that need some.
func TestMain(m *testing.M) {
	if dir := os.Getenv("COTERIE_TEST_REDEEM"); dir != "" {
		if err := redeemOnSignal(dir); err != nil {
			fmt.Println("failed:", err)
		}
		return
	}
	if dir := os.Getenv("COTERIE_TEST_REVOKE"); dir != "" {
		fmt.Println("failed:", revokeUntilKilled(dir))
		return
	}
	if dir := os.Getenv("COTERIE_TEST_ROTATE"); dir != "" {
		fmt.Println("failed:", rotateUntilKilled(dir))
		return
	}
	if dir := os.Getenv("COTERIE_TEST_RENEW"); dir != "" {
		fmt.Println("failed:", renewUntilKilled(dir, os.Getenv("COTERIE_TEST_MEMBER")))
		return
	}
	os.Exit(m.Run())
}

func redeemOnSignal(dir string) error {
	a, err := identity.Open(dir, identity.Options{})
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "north"}}, key)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	text, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	switch _, err := a.Redeem(text, csr); {
	case err == nil:
		fmt.Println("won")
	case errors.Is(err, identity.ErrInvite):
		fmt.Println("lost")
	default:
		return err
	}
	return nil
}

func TestOneInvitationManyProcesses(t *testing.T) {
	const processes, rounds = 6, 3
	for range rounds {
		f := identitytest.New(t, identity.Options{})
		i := newInvite(t, f, "north")
		type other struct {
			*exec.Cmd
			out *bufio.Reader
			in  func(string)
		}
		others := make([]other, processes)
		for k := range others {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "COTERIE_TEST_REDEEM="+f.Dir)
			cmd.Stderr = os.Stderr
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err := errors.Join(err1, err2, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			others[k] = other{cmd, bufio.NewReader(out), func(s string) { fmt.Fprintln(in, s); in.Close() }}
		}
		for _, o := range others {
			if line, err := o.out.ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
		}
		for _, o := range others {
			o.in(i.String())
		}
		said := map[string]int{}
		for _, o := range others {
			line, err := o.out.ReadString('\n')
			if err := errors.Join(err, o.Wait()); err != nil {
				t.Error(err)
			}
			said[strings.TrimSpace(line)]++
		}
		if said["won"] != 1 || said["lost"] != processes-1 {
			t.Errorf("%v: exactly one must win", said)
		}
	}
}

// revokeUntilKilled says what it has revoked, as the command does.
func revokeUntilKilled(dir string) error {
	a, err := identity.Open(dir, identity.Options{})
	for n := 0; err == nil; n++ {
		name := fmt.Sprintf("p%d-%d", os.Getpid(), n)
		if _, err = a.Invite(name, time.Hour); err == nil {
			_, err = a.Revoke(name)
		}
		if err == nil {
			fmt.Println(name)
		}
	}
	return err
}

// TestRevocationSurvivesAKill: what the command has said stays so, and the registry
// can be read, whenever it is killed.
func TestRevocationSurvivesAKill(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	said := map[string]bool{}
	for kill := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "COTERIE_TEST_REVOKE="+f.Dir)
		out, err := cmd.StdoutPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		scan := bufio.NewScanner(out)
		for n := 0; scan.Scan(); n++ {
			said[scan.Text()] = true
			if n == kill%4 {
				time.Sleep(time.Duration(kill) * 300 * time.Microsecond) // when it dies is meant to vary
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		_, revoked, err := f.Authority.List()
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, name := range revoked {
			there[name] = true
		}
		for name := range said {
			if !there[name] {
				t.Fatalf("after kill %d: %s is not revoked", kill, name)
			}
		}
	}
	if len(said) < 20 {
		t.Errorf("only %d revocations were said", len(said))
	}
	newInvite(t, f, "last")
	if left, err := filepath.Glob(filepath.Join(f.Dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOneInvitationManyGoroutines(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	i := newInvite(t, f, "north").String()
	var group sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 32 {
		csr := request(t, "north")
		group.Go(func() {
			_, err := f.Authority.Redeem(i, csr)
			if err != nil && !errors.Is(err, identity.ErrInvite) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			}
		})
	}
	group.Wait()
	if won != 1 {
		t.Errorf("%d won, want 1", won)
	}
}

// TestChangesWithinOneTick: a reader that looks after every change misses none,
// however fast they follow each other.
func TestChangesWithinOneTick(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	reader, err := identity.Open(f.Dir, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newInvite(t, f, "north")
	for n := range 200 {
		if _, err := f.Authority.Revoke("north"); err != nil {
			t.Fatal(err)
		}
		if _, revoked, err := reader.List(); err != nil || len(revoked) != 1 {
			t.Fatalf("change %d: %v revoked, %v", n, revoked, err)
		}
		if err := f.Authority.Readmit("north"); err != nil {
			t.Fatal(err)
		}
		if _, revoked, err := reader.List(); err != nil || len(revoked) != 0 {
			t.Fatalf("change %d: %v revoked, %v", n, revoked, err)
		}
	}
}

func TestListForgetsAfterAWeek(t *testing.T) {
	var clock fakeClock
	clock.set(time.Now())
	f := identitytest.New(t, identity.Options{Now: clock.now, Lifetime: 24 * time.Hour})
	f.Enrol(t, "north")
	newInvite(t, f, "south")
	statuses := func() (all []string) {
		list, _, err := f.Authority.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			all = append(all, l.Name+" "+l.Kind+" "+l.Status)
		}
		return all
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "north invitation used, north certificate valid, south invitation open"},
		{2 * 24 * time.Hour, "north invitation used, north certificate expired, south invitation expired"},
		{9 * 24 * time.Hour, "west invitation open"},
	} {
		clock.set(clock.now().Add(step.after))
		if step.after > 7*24*time.Hour {
			newInvite(t, f, "west") // what is forgotten goes with the next change
		}
		if got := strings.Join(statuses(), ", "); got != step.want {
			t.Errorf("after %v: %s, want %s", step.after, got, step.want)
		}
	}
}

// BenchmarkAdmit is what every request pays.
func BenchmarkAdmit(b *testing.B) {
	f := identitytest.New(b, identity.Options{})
	for i := range 200 {
		f.Enrol(b, fmt.Sprintf("p%d", i))
	}
	state := verified(b, f.Enrol(b, "north"))
	for b.Loop() {
		if _, err := f.Authority.Admit(state); err != nil {
			b.Fatal(err)
		}
	}
}
