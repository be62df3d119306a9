package federation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/ledger"
)

// loaded is a server in a process of its own, and the identities of its participants.
type loaded struct {
	t       *testing.T
	dir     string
	secrets string // authority and identities: to make thousands syncs a disk for minutes
	address string
	names   []string
	members []*identity.Member
	memory  *memoryWatch
	words   bytes.Buffer
}

// newLoaded starts a server for so many participants, all of whom a round asks, with
// further lines of its serve file.
func newLoaded(t *testing.T, dir string, participants, features, rounds int, settings ...string) *loaded {
	t.Helper()
	s := &loaded{t: t, dir: dir, address: freeAddress(t), secrets: ramDisk(t)}
	began := time.Now()
	a, err := identity.Init(filepath.Join(s.secrets, "ca"), identity.Options{Server: s.address})
	if err != nil {
		t.Fatal(err)
	}
	for i := range participants {
		name := fmt.Sprintf("p%04d", i)
		s.names = append(s.names, name)
		s.members = append(s.members, s.enrol(a, name))
	}
	t.Logf("%d were enrolled in %v, one after another, with the registry on a RAM disk", participants, time.Since(began).Round(time.Millisecond))
	run := fmt.Sprintf(`name: load
data: {kind: synthetic, users: %d, samples: 1}
algorithm: {kind: fedavg, mode: sound, rounds: %d, clients_per_round: %d}
`, participants, rounds, participants)
	serve := fmt.Sprintf("run: run.yaml\nca: %s\nlisten: %s\nparticipants: [%s]\nshape: {features: %d}\ndeadline_seconds: 3600\nlinger_seconds: 1\n%s\n",
		filepath.Join(s.secrets, "ca"), s.address, strings.Join(s.names, ", "), features, strings.Join(settings, "\n"))
	for name, text := range map[string]string{"run.yaml": run, "serve.yaml": serve} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := helper("server", "COTERIE_TEST_DIR="+dir)
	cmd.Stderr = &s.words
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.memory = watchMemory(cmd.Process.Pid)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s.memory.stop()
	})
	return s
}

// enrol makes an identity without a network.
func (s *loaded) enrol(a *identity.Authority, name string) *identity.Member {
	s.t.Helper()
	i, err := a.Invite(name, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	i.Server = s.address
	m, err := identity.NewMember(filepath.Join(s.secrets, "members", name), i)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := m.Request()
	if err != nil {
		s.t.Fatal(err)
	}
	grant, err := a.Redeem(i.String(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := m.Accept(grant.Chain); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// sender is a participant without a ledger and without a model.
type sender struct {
	client wire.FederationClient
	name   string
	plan   plan.Plan
	sum    [32]byte
	first  []byte // its own first part; the rest is the same for all
	rest   []byte
	hash   [32]byte
	older  bool // speaks as participants did before small releases went with their offers
}

func (s *loaded) sender(i int, common []byte) (*sender, error) {
	config, err := s.members[i].ClientTLS()
	if err != nil {
		return nil, err
	}
	client, transport := participant.NewClient(s.address, config, nil)
	s.t.Cleanup(transport.CloseIdleConnections)
	out := &sender{client: client, name: s.names[i]}
	if len(common) > 0 {
		cut := min(transfer.PartBytes, len(common))
		out.first, out.rest = bytes.Clone(common[:cut]), common[cut:]
		binary.LittleEndian.PutUint64(out.first, math.Float64bits(float64(i)))
		h := sha256.New()
		h.Write(out.first)
		h.Write(out.rest)
		out.hash = [32]byte(h.Sum(nil))
	}
	return out, nil
}

// join learns the plan; the server may still be starting.
func (p *sender) join(ctx context.Context) error {
	reply, err := participant.Retry(ctx, federationtest.Quiet(), "join", func(ctx context.Context) (*wire.JoinReply, error) {
		return p.client.Join(ctx, &wire.JoinRequest{})
	})
	if err != nil {
		return err
	}
	if p.plan, _, err = plan.Parse(reply.GetPlan()); err != nil {
		return err
	}
	_, p.sum, err = p.plan.Encode()
	return err
}

// next asks for work once.
func (p *sender) next(ctx context.Context, wait time.Duration) (*wire.NextReply, error) {
	return p.client.Next(ctx, &wire.NextRequest{Run: p.plan.Run, PlanSha256: p.sum[:], WaitMilliseconds: wait.Milliseconds()})
}

func (p *sender) statement(round int64, size int64) ([]byte, error) {
	return json.Marshal(ledger.Receipt{
		Version: 1, Participant: p.name, Slot: ledger.Slot{Federation: p.plan.Federation, Run: p.plan.Run, Round: int(round)},
		Plan: ledger.Hash(p.sum), Content: ledger.Hash(p.hash), Size: size, Enforcement: ledger.Enforced,
		Release: event.Release{
			Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Trust: event.TrustNobody, What: event.Unprotected{},
		},
		Spent: event.Statement{
			Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Trust: event.TrustNobody,
			Epsilon: event.Number(math.Inf(1)),
		},
		Counter: round + 1, Head: ledger.Hash(p.hash),
	})
}

// send offers and uploads one release.
func (p *sender) send(ctx context.Context, round int64) error {
	size := int64(len(p.first) + len(p.rest))
	statement, err := p.statement(round, size)
	if err != nil {
		return err
	}
	slot := &wire.Slot{Run: p.plan.Run, PlanSha256: p.sum[:], Round: round}
	offer := &wire.OfferRequest{Slot: slot, Content: &wire.Content{Size: size, Sha256: p.hash[:]}, Statement: statement}
	if size <= transfer.EnclosedBytes && !p.older {
		offer.Release = p.first
	}
	standing, err := p.client.Offer(ctx, offer)
	if err != nil {
		return fmt.Errorf("offer: %w", err)
	}
	if standing.GetAccepted() {
		return p.check(standing.GetReceipt())
	}
	out, err := p.client.Upload(ctx)
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	for at := int64(0); at < size; {
		piece := p.first
		if at > 0 {
			piece = p.rest[at-int64(len(p.first)):]
			piece = piece[:min(transfer.PartBytes, len(piece))]
		}
		if err := out.Send(&wire.UploadPart{Slot: slot, Part: transfer.NewPart(at, piece)}); err != nil {
			break // the reply says why
		}
		at += int64(len(piece))
	}
	reply, err := out.CloseAndReceive()
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	return p.check(reply.GetReceipt())
}

// check looks for the release's hash in a receipt: ledgers verify signatures, and this
// sender has none.
func (p *sender) check(receipt []byte) error {
	if !bytes.Contains(receipt, []byte(fmt.Sprintf("%x", p.hash))) {
		return fmt.Errorf("the receipt is about something else: %s", receipt)
	}
	return nil
}

var loadRAM = flag.Bool("load-ram", false, "large updates go to a RAM disk")

// diskRate is how fast bytes become durable in a folder, in megabytes a second.
func diskRate(t *testing.T, dir string) float64 {
	t.Helper()
	part := make([]byte, transfer.PartBytes)
	for i := range part {
		part[i] = byte(i * i >> 3)
	}
	name := filepath.Join(dir, "rate")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(name)
	defer f.Close()
	began := time.Now()
	for range 1000 {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return 1000 * transfer.PartBytes / 1e6 / time.Since(began).Seconds()
}

// TestLoadOfUpdates measures how fast releases come into the server when all
// participants send at once, and how much memory it takes.
func TestLoadOfUpdates(t *testing.T) {
	participants, features, rounds, dir := 16, 150_000, 1, ramDisk(t)
	if *federationtest.Soak { // a real disk, and what it gives
		participants, features, rounds, dir = 200, 1_206_590, 3, t.TempDir()
		if *loadRAM {
			dir = ramDisk(t)
		}
		t.Logf("one file of 1 GB, written in parts of 1 MiB and synced: %.0f MB/s", diskRate(t, dir))
	}
	s := newLoaded(t, dir, participants, features, rounds)
	common := make([]byte, 8*features)
	for i := range features {
		binary.LittleEndian.PutUint64(common[8*i:], math.Float64bits(math.Sin(float64(i))))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	senders := make([]*sender, participants)
	s.all(func(i int) error {
		var err error
		if senders[i], err = s.sender(i, common); err != nil {
			return err
		}
		return senders[i].join(ctx)
	})
	volume := float64(participants) * float64(len(common)) / 1e6
	best := 0.0
	for round := range int64(rounds) {
		s.all(func(i int) error {
			for {
				reply, err := senders[i].next(ctx, 30*time.Second)
				if err != nil || reply.GetWork().GetSlot().GetRound() == round && reply.GetWork() != nil {
					return err
				}
			}
		})
		began, server, client := time.Now(), cpu(s.memory.pid), cpu(os.Getpid())
		s.all(func(i int) error { return senders[i].send(ctx, round) })
		rate := volume / time.Since(began).Seconds()
		best = max(best, rate)
		server, client = cpu(s.memory.pid)-server, cpu(os.Getpid())-client
		t.Logf("round %d: %.0f MB of releases at %.0f MB/s; %.1f s of processor time at the server, %.1f s at the participants: %.0f MB/s if two cores were free",
			round+1, volume, rate, server, client, 2*volume/(server+client))
	}
	s.all(func(i int) error { // until the last round is aggregated
		for {
			reply, err := senders[i].next(ctx, 30*time.Second)
			if err != nil || reply.GetFinished() != nil {
				return err
			}
		}
	})
	anonymous, resident := s.memory.most()
	t.Logf("%d participants x %d parameters: at best %.0f MB/s; server memory %.0f MB, with mapped files %.0f MB",
		participants, features, best, float64(anonymous)/1e6, float64(resident)/1e6)
	if limit := int64(1_500_000_000); anonymous > limit {
		t.Errorf("the server took %d bytes, allowed: %d", anonymous, limit)
	}
}

// all runs a part for every participant at once.
func (s *loaded) all(part func(i int) error) {
	s.t.Helper()
	var wait sync.WaitGroup
	for i := range s.members {
		wait.Go(func() {
			if err := part(i); err != nil {
				s.t.Errorf("%s: %v", s.names[i], err)
			}
		})
	}
	wait.Wait()
	if s.t.Failed() {
		s.t.Fatalf("the server says: %s", s.words.String())
	}
}

// TestLoadOfIdleParticipants measures what participants cost who wait for work.
func TestLoadOfIdleParticipants(t *testing.T) {
	participants := 100
	if *federationtest.Soak {
		participants = 2000
	}
	s := newLoaded(t, ramDisk(t), participants+1, 10, 1)
	s.members = s.members[:participants] // one never comes, so that no round begins
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waiting sync.WaitGroup
	before, _ := s.memory.now()
	s.all(func(i int) error {
		p, err := s.sender(i, nil)
		if err != nil {
			return err
		}
		if err := p.join(ctx); err != nil {
			return err
		}
		waiting.Go(func() {
			for ctx.Err() == nil {
				_, _ = p.next(ctx, time.Minute)
			}
		})
		return nil
	})
	time.Sleep(2 * time.Second) // what is measured is waiting
	after, resident := s.memory.now()
	t.Logf("%d idle participants: server memory %.1f MB (%.1f MB before), resident %.1f MB: %.1f kB each",
		participants, float64(after)/1e6, float64(before)/1e6, float64(resident)/1e6, float64(after-before)/1e3/float64(participants))
	if limit := int64(200_000_000); after > limit {
		t.Errorf("the server took %d bytes, allowed: %d", after, limit)
	}
	if *federationtest.Soak { // what it costs to know that they are there
		const long = 20 * time.Second
		before := cpu(s.memory.pid)
		time.Sleep(long)
		t.Logf("waiting costs the server %.1f %% of a core", 100*(cpu(s.memory.pid)-before)/long.Seconds())
	}
	cancel()
	waiting.Wait()
}

// takeWork waits for a round, and fetches what it begins with.
func (p *sender) takeWork(ctx context.Context, round int64) error {
	for {
		reply, err := p.next(ctx, 30*time.Second)
		if err != nil {
			return fmt.Errorf("next: %w", err)
		}
		w := reply.GetWork()
		if w == nil || w.GetSlot().GetRound() != round {
			continue
		}
		if len(w.GetBroadcast().GetData()) > 0 && !p.older {
			return nil
		}
		in, err := p.client.Broadcast(ctx, &wire.BroadcastRequest{Run: p.plan.Run, Sha256: w.GetBroadcast().GetSha256()})
		if err != nil {
			return fmt.Errorf("broadcast: %w", err)
		}
		defer in.Close()
		for in.Receive() {
		}
		return in.Err()
	}
}
