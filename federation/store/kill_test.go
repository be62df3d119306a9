package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// The writer is a small server: rounds of two large updates and then of five small ones
// that come at once, each state a hash of the one before and of the round's updates.
const (
	writerClients = 7
	writerLarge   = 2
	writerBytes   = 100_000
)

func writerUpdate(round, client int) []byte {
	size := writerBytes
	if client >= writerLarge {
		size = 1600
	}
	return bytes.Repeat(fmt.Appendf(nil, "%08d%08d", round, client), size/16)
}

// writerUpdates are all of a round.
func writerUpdates(round int) (all [][]byte) {
	for c := range writerClients {
		all = append(all, writerUpdate(round, c))
	}
	return all
}

func writerAsked() (all []int) {
	for c := range writerClients {
		all = append(all, c)
	}
	return all
}

func writerState(before []byte, updates ...[]byte) []byte {
	h := sha256.New()
	h.Write(before)
	for _, u := range updates {
		h.Write(u)
	}
	return bytes.Repeat(h.Sum(nil), 500)
}

// writeUntilKilled goes on with the run in the store for ever. It says what it has
// acknowledged, as a server would to its participants.
func writeUntilKilled(address string) {
	ctx := context.Background()
	s, err := Open(ctx, address, Options{Spool: os.Getenv("COTERIE_STORE_SPOOL")})
	if err == nil {
		err = s.CreateRun(ctx, Run{ID: "r", SHA256: "aa"})
	}
	for err == nil {
		err = writeRound(ctx, s, os.Getenv("COTERIE_STORE_EARLY") != "")
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

func writeRound(ctx context.Context, s Store, early bool) error {
	number := 1
	last, err := s.LatestRound(ctx, "r")
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case last.Status == RoundOpen:
		number = last.Number
	default:
		number = last.Number + 1
	}
	if last.Status != RoundOpen {
		if err := s.OpenRound(ctx, Round{Run: "r", Number: number, Clients: writerAsked(), Sampler: fmt.Append(nil, number)}); err != nil {
			return err
		}
		fmt.Println("opened", number)
	}
	if err := writeUpdates(ctx, s, number, early); err != nil {
		return err
	}
	_, before, err := s.LatestState(ctx, "r")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	var updates [][]byte
	for c := range writerClients {
		blob, err := s.OpenUpdate(ctx, "r", number, c)
		if err != nil {
			return err
		}
		content, err := io.ReadAll(blob)
		if err := errors.Join(err, blob.Close()); err != nil {
			return err
		}
		updates = append(updates, content)
	}
	if err := s.CloseRound(ctx, "r", number, writerState(before, updates...), time.Now()); err != nil {
		return err
	}
	fmt.Println("closed", number)
	return nil
}

// writeUpdates sends a round's updates: the large ones one by one, the small ones at once.
func writeUpdates(ctx context.Context, s Store, number int, early bool) error {
	one := func(c int) error {
		content := writerUpdate(number, c)
		u := Update{Run: "r", Round: number, Participant: c, SHA256: sha256.Sum256(content), Size: int64(len(content))}
		receipt := &Receipt{Run: "r", Round: number, Participant: fmt.Sprint(c), Counter: uint64(number), Signed: []byte("{}")}
		if early { // the planted bug: acknowledged before it is recorded
			fmt.Println("acked", number, c)
		}
		var err error
		if u.Size <= SmallBytes {
			_, err = s.Accept(ctx, u, content, receipt)
		} else {
			_, err = send(ctx, s, u, content, receipt)
		}
		if err == nil && !early {
			fmt.Println("acked", number, c)
		}
		return err
	}
	for c := range writerLarge {
		if err := one(c); err != nil {
			return err
		}
	}
	errs := make([]error, writerClients)
	var all sync.WaitGroup
	for c := writerLarge; c < writerClients; c++ {
		all.Go(func() { errs[c] = one(c) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// killWriter runs the writer until it has said so many lines, and a moment longer,
// kills it, and returns all that it said.
func killWriter(t *testing.T, b backend, lines int, moment time.Duration, early bool) (said []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COTERIE_STORE_WRITER="+b.address, "COTERIE_STORE_SPOOL="+b.options.Spool)
	if early {
		cmd.Env = append(cmd.Env, "COTERIE_STORE_EARLY=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		said = append(said, scan.Text())
		if len(said) == lines {
			time.Sleep(moment) // when it dies is meant to vary; nothing waits for it
			cmd.Process.Kill()
		}
		if strings.HasPrefix(scan.Text(), "failed") {
			t.Fatal(scan.Text())
		}
	}
	cmd.Wait()
	return said
}

// faults compares what the writer said with what the store holds.
func faults(t *testing.T, s Store, said []string) (found []string) {
	t.Helper()
	ctx := t.Context()
	for _, line := range said {
		var what string
		var round, client int
		n, _ := fmt.Sscan(line, &what, &round, &client)
		r, err := s.Round(ctx, "r", round)
		if err != nil {
			found = append(found, fmt.Sprintf("%s: %v", line, err))
			continue
		}
		if what == "closed" && r.Status != RoundClosed {
			found = append(found, line+": it is not")
		}
		if what != "acked" || n != 3 {
			continue
		}
		answers, err := s.Answers(ctx, "r", round)
		if err != nil || answers[client].Kind != Released || answers[client].SHA256 != sha256.Sum256(writerUpdate(round, client)) {
			found = append(found, fmt.Sprintf("%s: not recorded (%v)", line, err))
		}
		if _, err := s.Receipt(ctx, "r", round, fmt.Sprint(client)); err != nil {
			found = append(found, fmt.Sprintf("%s: no receipt (%v)", line, err))
		}
	}
	return found
}

func TestKilledAtAnyInstant(t *testing.T) {
	for name, b := range killBackends(t) {
		t.Run(name, func(t *testing.T) {
			kills := 15
			if *soak {
				kills = 250
			}
			random := rand.New(rand.NewPCG(1, 2))
			var said []string
			for range kills {
				said = append(said, killWriter(t, b, 1+random.IntN(11), time.Duration(random.IntN(8000))*time.Microsecond, false)...)
			}
			s := b.open(t)
			if found := faults(t, s, said); len(found) > 0 {
				t.Errorf("%d faults after %d kills:\n%s", len(found), kills, strings.Join(found, "\n"))
			}
			number, state, err := s.LatestState(t.Context(), "r")
			check(t, err)
			var want []byte
			for n := 1; n <= number; n++ {
				want = writerState(want, writerUpdates(n)...)
			}
			if !bytes.Equal(state, want) {
				t.Errorf("the state after round %d is not that of an uninterrupted run", number)
			}
			rounds, err := s.Rounds(t.Context(), "r")
			check(t, err)
			for i, r := range rounds {
				if r.Number != i+1 || string(r.Sampler) != fmt.Sprint(i+1) || len(r.Clients) != writerClients {
					t.Errorf("round %d is %+v", i+1, r)
				}
			}
			t.Logf("%d kills, %d lines witnessed, %d rounds closed", kills, len(said), number)
		})
	}
}

// TestEarlyAcknowledgementIsCaught is the planted bug.
func TestEarlyAcknowledgementIsCaught(t *testing.T) {
	b := backend{address: t.TempDir() + "/store.db"}
	for range 40 {
		said := killWriter(t, b, 2, 0, true)
		s := b.open(t)
		found := faults(t, s, said)
		check(t, s.Close())
		if len(found) > 0 {
			return
		}
	}
	t.Error("a writer that acknowledges too early is not caught by 40 kills")
}

// killBackends are those that are there, SQLite always.
func killBackends(t *testing.T) map[string]backend {
	all, spool := map[string]backend{"sqlite": {address: t.TempDir() + "/store.db"}}, t.TempDir()
	t.Run("is PostgreSQL there", func(t *testing.T) {
		all["postgres"] = backend{address: postgresAddress(t), options: Options{Spool: spool}}
	})
	return all
}
