package server

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// restored is a coordinator over a copy of the bench's store, as it is now.
func (b *bench) restored() func() *Coordinator {
	b.t.Helper()
	dir := b.t.TempDir()
	path := filepath.Join(dir, "state.db")
	c, err := store.CopySQLite(b.t.Context(), filepath.Join(b.dir, "state.db"), path)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, content := range c.Contents {
		to := filepath.Join(dir, content.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			b.t.Fatal(err)
		}
		f, err := os.Create(to)
		if err != nil {
			b.t.Fatal(err)
		}
		_, err = content.WriteTo(f)
		if err := errors.Join(err, f.Close()); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		b.t.Fatal(err)
	}
	return func() *Coordinator {
		s, err := store.Open(b.t.Context(), path, store.Options{})
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { s.Close() })
		c, err := NewCoordinator(b.t.Context(), Terms{Plan: b.plan, Names: federationtest.Names, Store: s, Signer: federationtest.Signer(b.signer), Log: b.log})
		if err != nil {
			b.t.Fatal(err)
		}
		return c
	}
}

// TestServerThatIsBehindItsParticipants: a server that was put back signs the same receipt
// for the same bytes, takes no others for a slot that it has, and keeps nobody from sending
// later what it has not come to.
func TestServerThatIsBehindItsParticipants(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	for _, name := range federationtest.Names {
		b.mustSend(name, 0, 1, 2)
	}
	b.work("north")
	b.mustSend("south", 1, 3, 4)
	back := b.restored() // round 2 is half answered
	want := b.mustSend("north", 1, 5, 6)
	b.mustSend("west", 1, 7, 8)
	if w := b.work("north"); w.Round != 2 {
		t.Fatalf("round %d", w.Round+1)
	}
	ahead, _ := b.offer("north", 2, 9, 10)
	b.stop()
	b.c = back()

	if b.c.round.waitsFor(1) || !b.c.round.waitsFor(0) || b.c.round.number != 1 {
		t.Fatalf("the restored server asks %+v", b.c.round)
	}
	_, err := b.c.offer(t.Context(), "north", ahead)
	b.wantReason(err, transfer.ReasonEarly)
	_, err = b.c.receive(t.Context(), "north", b.slot(2))
	b.wantReason(err, transfer.ReasonEarly)
	if got := b.mustSend("north", 1, 5, 6); !bytes.Equal(got, want) {
		t.Errorf("the receipt is\n%s, was\n%s", got, want)
	}
	_, err = b.send("south", 1, 30, 40)
	b.wantReason(err, transfer.ReasonEquivocation)
	if err := b.c.decline(t.Context(), "west", b.slot(1), false, "past"); err != nil {
		t.Errorf("the word for rounds that lie behind: %v", err)
	}
	// Killed between two rounds and started again: what is over is late, not early.
	if err := b.c.direct.AbandonRound(t.Context(), b.plan.Run, 1, "given up", time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := NewCoordinator(t.Context(), Terms{Plan: b.plan, Names: federationtest.Names, Store: b.c.direct, Signer: federationtest.Signer(b.signer), Log: b.log})
	if err != nil || c.round != nil {
		t.Fatalf("%+v, %v", c.round, err)
	}
	b.c = c
	if got := b.mustSend("north", 1, 5, 6); !bytes.Equal(got, want) { // the acknowledgement was lost
		t.Errorf("the receipt is\n%s, was\n%s", got, want)
	}
	_, err = b.c.offer(t.Context(), "north", ahead)
	b.wantReason(err, transfer.ReasonEarly)
	_, err = b.c.receive(t.Context(), "north", b.slot(1))
	b.wantReason(err, transfer.ReasonLate)
	for _, round := range []int64{-1, 5, 1 << 40} {
		b.wantReason(b.c.isOpen(round), transfer.ReasonMalformed)
	}
}
