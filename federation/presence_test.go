package federation_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// TestTrainingForHoursIsBeingThere: who has joined and asks for nothing keeps its
// connection, and is there.
func TestTrainingForHoursIsBeingThere(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		client, end := m.member("north")
		m.until("north", true)
		since := m.of("north").Since
		for range 12 {
			time.Sleep(10 * time.Minute)
			p := m.of("north")
			if !p.Connected || !p.Since.Equal(*since) || time.Since(*p.LastHeard) > 5*time.Second {
				t.Fatalf("after %v: %+v\n%s", time.Since(*since), p, m.words)
			}
		}
		if _, err := client.Join(t.Context(), &wire.JoinRequest{}); err != nil || m.dials() != 1 {
			t.Errorf("%d connections were made, want 1: %v", m.dials(), err)
		}
		m.wantLines(1, 0)
		end()
	})
}

// TestTheServerDoesNotCountTheMissing: a round that needs three waits for the one that
// was there a moment ago.
func TestTheServerDoesNotCountTheMissing(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		state := func() server.State {
			st, err := m.server.Status()
			if err != nil {
				t.Fatal(err)
			}
			return st.State
		}
		client, end := m.member("north")
		m.until("north", true)
		end()
		m.until("north", false)
		_, south := m.member("south")
		_, west := m.member("west")
		time.Sleep(5 * time.Second)
		if got := state(); got != server.StateWaiting {
			t.Errorf("with two of three there the server says %q", got)
		}
		if _, err := client.Join(t.Context(), &wire.JoinRequest{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := state(); got != server.StateOpen {
			t.Errorf("with three of three there the server says %q", got)
		}
		end()
		south()
		west()
	})
}

// TestAnOperatorIsNoParticipant, even if the server's file lists its name.
func TestAnOperatorIsNoParticipant(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		config, err := m.f.EnrolOperator(t, "north").ClientTLS()
		if err != nil {
			t.Fatal(err)
		}
		way, transport := participant.NewPassage(config, m.dial)
		reply, err := (&http.Client{Transport: way}).Get("https://server:7443" + server.StatusPath)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", reply, err)
		}
		reply.Body.Close()
		time.Sleep(time.Second)
		if p := m.of("north"); p.Connected || p.CertificateExpires != nil {
			t.Errorf("an operator counts as a participant: %+v", p)
		}
		m.wantLines(0, 0)
		transport.CloseIdleConnections()
	})
}

// TestAPulledCableIsNoticed within ten seconds, whatever the participant was doing, and
// so is its return.
func TestAPulledCableIsNoticed(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		_, end := m.member("north")
		m.until("north", true)
		time.Sleep(time.Hour + 3999*time.Millisecond) // heard a moment ago, or nearly four seconds
		pulled := time.Now()
		m.pull()
		if took := m.until("north", false); took > 10*time.Second || took < 2*time.Second {
			t.Errorf("it took %v", took)
		}
		p := m.of("north")
		if gap := pulled.Sub(*p.Since); gap < 0 || gap > 5*time.Second || !p.LastHeard.Equal(*p.Since) {
			t.Errorf("missing since %v, last heard %v; pulled %v", p.Since, p.LastHeard, pulled)
		}
		m.wantLines(1, 1)
		_, again := m.member("north")
		if took := m.until("north", true); took > time.Second {
			t.Errorf("its return took %v", took)
		}
		if want := "msg=\"participant is there\" participant=north away="; !strings.Contains(m.words.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, m.words)
		}
		m.wantLines(2, 1)
		time.Sleep(time.Minute) // the dead connection is given up meanwhile
		if p := m.of("north"); !p.Connected {
			t.Errorf("%+v", p)
		}
		end()
		again()
	})
}

// TestShortAbsencesMakeNoLine: a connection that is replaced within two seconds is
// nobody's business; one that is not, is.
func TestShortAbsencesMakeNoLine(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		client, end := m.member("north")
		m.until("north", true)
		end()
		time.Sleep(1500 * time.Millisecond)
		if p := m.of("north"); !p.Connected {
			t.Errorf("missing after a second and a half: %+v", p)
		}
		if _, err := client.Join(t.Context(), &wire.JoinRequest{}); err != nil || m.dials() != 2 {
			t.Fatalf("%d connections, %v", m.dials(), err)
		}
		time.Sleep(time.Minute)
		m.wantLines(1, 0)
		left := time.Now()
		end()
		if took := m.until("north", false); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if p := m.of("north"); p.Since.Sub(left).Abs() > time.Second {
			t.Errorf("missing since %v, but it left at %v", p.Since, left)
		}
		m.wantLines(1, 1)
		if want := fmt.Sprintf("since=%s", m.of("north").Since.Format(time.RFC3339)); !strings.Contains(m.words.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, m.words)
		}
	})
}

// TestASlowLineIsNoAbsence: answers to pings wait behind a release, and at the least rate
// that is taken they wait for long.
func TestASlowLineIsNoAbsence(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		m.rate = 40 << 10 // a part of 1 MiB in 26 seconds, of the 30 that it may take
		client, end := m.member("north")
		m.until("north", true)
		up, err := client.Upload(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = up.Send(&wire.UploadPart{Slot: &wire.Slot{}, Part: transfer.NewPart(0, make([]byte, transfer.PartBytes))})
		if err == nil {
			_, err = up.CloseAndReceive()
		}
		if reason := transfer.ReasonOf(transfer.FromWire(err)); reason != transfer.ReasonStale {
			t.Errorf("the upload ended with %v (%v); want the refusal of what nobody asked for", err, reason)
		}
		if m.dials() != 1 {
			t.Errorf("%d connections were made", m.dials())
		}
		m.wantLines(1, 0)
		end()
	})
}

// TestComingAndGoingDoesNotFillTheLog: a participant that does nothing else is told of at
// once for a while, then seldom.
func TestComingAndGoingDoesNotFillTheLog(t *testing.T) {
	inMadeUpTime(t, func(t *testing.T, m *madeUp) {
		client, end := m.member("north")
		m.until("north", true)
		for range 180 { // ten minutes
			end()
			time.Sleep(2600 * time.Millisecond)
			if _, err := client.Join(t.Context(), &wire.JoinRequest{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if lines := strings.Count(m.words.String(), "participant=north"); lines < 100 || lines > 160 {
			t.Errorf("%d lines about 180 absences in ten minutes; want two in ten seconds, and some", lines)
		}
		if p := m.of("north"); !p.Connected {
			t.Errorf("%+v", p)
		}
		end()
	})
}
