package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// TestSeldomCountsWhatItLeavesOut: the first line at once, then one a while with the
// number of those before it, and everybody's own.
func TestSeldomCountsWhatItLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(federationtest.Log)
		s := newSeldom(slog.New(slog.NewTextHandler(out, nil)))
		for i := range 1000 {
			s.write(slog.LevelWarn, "west", "refused", "number", i)
		}
		s.write(slog.LevelWarn, "north", "refused", "number", 7)
		if lines := strings.Count(out.String(), "\n"); lines != 2 {
			t.Errorf("%d lines at once, want one of each participant:\n%s", lines, out.String())
		}
		time.Sleep(seldomEvery + time.Second)
		synctest.Wait()
		if !strings.Contains(out.String(), "number=999 left_out=998") || strings.Count(out.String(), "\n") != 3 {
			t.Errorf("a while later: %s; want one line more, the last, that tells of 998", out.String())
		}
		time.Sleep(seldomEvery)
		synctest.Wait()
		s.write(slog.LevelWarn, "west", "refused", "number", 1000)
		if !strings.HasSuffix(out.String(), "number=1000\n") {
			t.Errorf("after a silence: %s; want the line at once", out.String())
		}
		s.mu.Lock()
		if len(s.kinds) != 1 {
			t.Errorf("%d kinds are remembered, want 1", len(s.kinds))
		}
		s.mu.Unlock()
		time.Sleep(2 * seldomEvery)
	})
}

// TestSharesOfOneParticipant: so many requests at once and so many in a second, and
// another participant's are not touched.
func TestSharesOfOneParticipant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newShares(), t.Context()
		var ends []func()
		for range mostRequests {
			end, err := s.request(ctx, "west")
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if _, err := s.request(ctx, "west"); transfer.ReasonOf(err) != transfer.ReasonBusy {
			t.Errorf("one request more: %v; want busy", err)
		}
		if _, err := s.request(ctx, "north"); err != nil {
			t.Errorf("another participant: %v", err)
		}
		for _, end := range ends {
			end()
		}
		time.Sleep(time.Hour) // and no more is saved up than the burst
		began := time.Now()
		for range 1000 {
			end, err := s.request(ctx, "west")
			if err != nil {
				t.Fatal(err)
			}
			end()
		}
		if took := time.Since(began); took != 8*time.Second { // 800 beyond the burst, 100 a second
			t.Errorf("1000 requests took %v, want 8s", took)
		}
		for i := range mostUploads + 1 {
			if _, err := s.upload("west"); (err != nil) != (i == mostUploads) {
				t.Errorf("upload %d: %v", i+1, err)
			}
		}
		given := 0
		for range 100 {
			if s.renewal("west") == nil {
				given++
			}
			time.Sleep(time.Second)
		}
		if given != 14 && given != 15 { // five at once, then one in ten seconds of the hundred
			t.Errorf("%d certificates within 100 seconds, want 14 or 15", given)
		}
	})
}

// doorOf is a door on this machine.
func doorOf(t *testing.T, most int) (*door, *identity.Authority) {
	t.Helper()
	a, err := identity.Init(filepath.Join(t.TempDir(), "ca"), identity.Options{Server: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(l, a.ServerTLS(), a.Admit, most, newSeldom(federationtest.Quiet()))
	t.Cleanup(func() { d.Close() })
	return d, a
}

// memberTLS is a new member's.
func memberTLS(t *testing.T, a *identity.Authority, name string) *tls.Config {
	t.Helper()
	invite, err := a.Invite(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	m, err := identity.NewMember(filepath.Join(t.TempDir(), name), invite)
	if err != nil {
		t.Fatal(err)
	}
	request, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	grant, err := a.Redeem(invite.String(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Accept(grant.Chain); err != nil {
		t.Fatal(err)
	}
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestDoorCountsMembersAndStrangersApart: connections are let in up to their limits,
// and rooms are free again when they end.
func TestDoorCountsMembersAndStrangersApart(t *testing.T) {
	d, a := doorOf(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	context.AfterFunc(ctx, func() { d.Close() })
	enter := func(config *tls.Config) (outside, inside net.Conn) {
		t.Helper()
		outside, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", d.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		inside, err = d.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { outside.Close(); inside.Close() })
		return outside, inside
	}
	counts := func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Sprint(len(d.strangers), " strangers, ", d.inside, " members")
	}
	wantCounts := func(want string) { // who is turned away leaves at its own time
		t.Helper()
		for counts() != want {
			if transfer.Wait(ctx, nil, time.Millisecond) != nil {
				t.Fatalf("%s are inside; want %s", counts(), want)
			}
		}
	}
	anonymous := &tls.Config{InsecureSkipVerify: true}
	_, first := enter(anonymous)
	for range 5 {
		enter(anonymous)
	}
	var members []net.Conn
	for _, name := range []string{"north", "south", "west"} {
		_, inside := enter(memberTLS(t, a, name))
		members = append(members, inside)
	}
	wantCounts("6 strangers, 3 members")
	east := memberTLS(t, a, "east")
	outside, err := (&tls.Dialer{Config: east}).DialContext(ctx, "tcp", d.Addr().String())
	if err == nil { // the handshake may end before the server closes
		if _, err = outside.Read(make([]byte, 1)); err == nil {
			t.Error("a fourth member is let in where three have room")
		}
		outside.Close()
	}
	operator, _, err := a.OperatorTLS() // who may look when it is full, too
	if err != nil {
		t.Fatal(err)
	}
	_, watching := enter(operator)
	wantCounts("6 strangers, 4 members")
	watching.Close()
	for _, c := range []net.Conn{first, members[0], members[0]} { // closed twice, it counts once
		c.Close()
	}
	wantCounts("5 strangers, 2 members")
	enter(east)
	wantCounts("5 strangers, 3 members")
	d.Close()
	if _, err := d.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed door: %v; want %v", err, net.ErrClosed)
	}
}

// TestStrangersTimeAndRequestsEnd.
func TestStrangersTimeAndRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		d := &door{most: 1, members: map[string][]*guest{}, left: map[string]time.Time{}, freed: make(chan struct{}, 1), say: newSeldom(federationtest.Quiet())}
		g := &guest{Conn: here, door: d, came: time.Now()}
		d.strangers = append(d.strangers, g)
		if !d.letIn(g, "") {
			t.Fatal("a stranger is not let in")
		}
		inside := func() int {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.strangers)
		}
		ctx := context.WithValue(t.Context(), guestKey{}, g)
		for i := range strangerRequests {
			if wearsOut(ctx) {
				t.Errorf("request %d is refused", i+1)
			}
		}
		time.Sleep(strangerTime - time.Second)
		synctest.Wait()
		if inside() != 1 {
			t.Error("a stranger is turned out before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if inside() != 0 {
			t.Error("a stranger may stay for ever")
		}
		if !wearsOut(ctx) {
			t.Errorf("request %d is answered", strangerRequests+1)
		}
		g.name = "north"
		if wearsOut(ctx) {
			t.Error("a member's requests are counted as a stranger's")
		}
	})
}
