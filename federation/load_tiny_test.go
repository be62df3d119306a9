package federation_test

import (
	"context"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/internal/tier"
)

// tinyValues is the size of the hospitals' network: the smallest release in use.
const tinyValues = 11

var (
	olderLoad = flag.Bool("load-older", false, "participants of the load test offer and upload, as they did before small releases went with their offers")
	loadStore = flag.String("load-stores", "sqlite,postgres", "stores of the load tests")
	loadTime  = flag.Duration("load-time", 10*time.Minute, "how long the server's memory is watched under load")
	loadRate  = flag.Float64("load-rate", 0, "updates a second while memory is watched; 0: as many as can be")
	loadSizes = flag.String("load-participants", "100,500,2000", "participants of the load test of tiny updates")
)

// tinyLoad is what a server did with tiny updates of so many participants.
type tinyLoad struct {
	participants int
	updates      int
	lasted       time.Duration
	server, here float64         // seconds of processor time
	receipts     []time.Duration // from offering a release to its receipt, in order
	memory       int64
	joining      float64 // seconds of the server's processor time: handshakes, plans
	stored       int64   // bytes of an SQLite store, with its log
}

func (l tinyLoad) perUpdate() float64 { return 1e3 * l.server / float64(l.updates) }

// at is a quantile of the times to a receipt.
func (l tinyLoad) at(share float64) time.Duration {
	return l.receipts[min(len(l.receipts)-1, int(share*float64(len(l.receipts))))]
}

func (l tinyLoad) log(t *testing.T, store string) {
	t.Logf("%s, %d participants: %d durable updates, %.0f a second; server %.3f ms of processor time each, participants %.3f ms (%.0f a second if two cores were free); receipt after %v (median), %v (p99), %v (most); server memory %.0f MB; joining cost it %.2f ms each; %.1f kB are stored for each",
		store, l.participants, l.updates, float64(l.updates)/l.lasted.Seconds(), l.perUpdate(), 1e3*l.here/float64(l.updates),
		2*float64(l.updates)/(l.server+l.here), l.at(0.5).Round(10*time.Microsecond), l.at(0.99).Round(10*time.Microsecond), l.at(1).Round(10*time.Microsecond), float64(l.memory)/1e6,
		1e3*l.joining/float64(l.participants), float64(l.stored)/1e3/float64(l.updates+l.participants))
}

// tinyRounds lets everybody take part in so many rounds, over real sockets and TLS, with
// statements and receipts, and without ledgers. What is measured is whole rounds: asking
// for work, fetching the model, the release, the aggregation.
func tinyRounds(t *testing.T, dir string, participants, rounds int, older bool, settings ...string) tinyLoad {
	s := newLoaded(t, dir, participants, tinyValues, rounds+1, settings...)
	common := make([]byte, 8*tinyValues)
	for i := range tinyValues {
		binary.LittleEndian.PutUint64(common[8*i:], math.Float64bits(math.Sin(float64(i))))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	senders := make([]*sender, participants)
	for i := range senders {
		var err error
		if senders[i], err = s.sender(i, common); err != nil {
			t.Fatal(err)
		}
		senders[i].older = older
	}
	var mu sync.Mutex
	l := tinyLoad{participants: participants, updates: participants * rounds}
	if err := senders[0].join(ctx); err != nil { // the server is there
		t.Fatal(err)
	}
	before := cpu(s.memory.pid)
	s.all(func(i int) error { return senders[i].join(ctx) })
	l.joining = cpu(s.memory.pid) - before
	round := func(p *sender, n int64) (time.Duration, error) {
		if err := p.takeWork(ctx, n); err != nil {
			return 0, err
		}
		began := time.Now()
		err := p.send(ctx, n)
		return time.Since(began), err
	}
	s.all(func(i int) error { // the first round warms up
		_, err := round(senders[i], 0)
		return err
	})
	began, server, here := time.Now(), cpu(s.memory.pid), cpu(os.Getpid())
	s.all(func(i int) error {
		took := make([]time.Duration, rounds)
		for n := range rounds {
			var err error
			if took[n], err = round(senders[i], int64(n+1)); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		l.receipts = append(l.receipts, took...)
		return nil
	})
	l.lasted, l.server, l.here = time.Since(began), cpu(s.memory.pid)-server, cpu(os.Getpid())-here
	l.memory, _ = s.memory.most()
	slices.Sort(l.receipts)
	for _, name := range []string{"state.db", "state.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, "server", name)); err == nil {
			l.stored += info.Size()
		}
	}
	return l
}

// TestLoadOfTinyUpdates measures how many updates of a few bytes a server makes durable
// in a second, on a real disk, what each costs it, and that this does not depend on how
// many take part.
func TestLoadOfTinyUpdates(t *testing.T) {
	if !*federationtest.Soak {
		for _, older := range []bool{false, true} {
			tinyRounds(t, t.TempDir(), 20, 5, older).log(t, "sqlite")
		}
		return
	}
	for _, store := range strings.Split(*loadStore, ",") {
		t.Run(store, func(t *testing.T) {
			var few float64
			for _, text := range strings.Split(*loadSizes, ",") {
				participants, err := strconv.Atoi(text)
				if err != nil {
					t.Fatal(err)
				}
				dir, settings := t.TempDir(), []string{}
				if store == "postgres" {
					settings = append(settings, "store: postgres:///postgres?user=coterie&password=load&host="+tier.Postgres(t, "load", "fsync=on"))
				}
				l := tinyRounds(t, dir, participants, 20000/participants, *olderLoad, settings...)
				l.log(t, store)
				if few == 0 {
					few = l.perUpdate()
				} else if l.perUpdate() > 1.5*few {
					t.Errorf("an update costs %.3f ms with %d participants, and %.3f with few: that is not linear", l.perUpdate(), participants, few)
				}
			}
		})
	}
}

// TestMemoryUnderLoad: a server that takes tiny updates for long holds no more memory in
// the end than it did before. It writes what it sees as a table, and the slope of the
// second half.
func TestMemoryUnderLoad(t *testing.T) {
	if !*federationtest.Soak {
		t.Skip("ten minutes: with -soak")
	}
	const participants, looks = 200, 60
	s := newLoaded(t, t.TempDir(), participants, tinyValues, 1_000_000)
	common := make([]byte, 8*tinyValues)
	ctx, cancel := context.WithTimeout(t.Context(), *loadTime)
	defer cancel()
	var updates atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range participants {
		all.Go(func() {
			p, err := s.sender(i, common)
			if err == nil {
				err = p.join(ctx)
			}
			for n := int64(0); err == nil; n++ {
				if *loadRate > 0 { // everybody once a round
					err = pause(ctx, time.Until(began.Add(time.Duration(float64(n)*participants / *loadRate * 1e9))))
				}
				if err == nil {
					err = p.takeWork(ctx, n)
				}
				if err == nil {
					err = p.send(ctx, n)
					updates.Add(1)
				}
			}
			if ctx.Err() == nil {
				t.Errorf("%s: %v: %s", s.names[i], err, s.words.String())
				cancel()
			}
		})
	}
	var minutes, own, resident []float64 // megabytes
	for range looks {
		if pause(ctx, *loadTime/looks-time.Millisecond) != nil {
			break
		}
		anonymous, whole := s.memory.now()
		minutes = append(minutes, time.Since(began).Minutes())
		own, resident = append(own, float64(anonymous)/1e6), append(resident, float64(whole)/1e6)
		t.Logf("%.1f min: %d updates, %.1f s of server time; memory of its own %.1f MB, resident %.1f MB", minutes[len(minutes)-1], updates.Load(), cpu(s.memory.pid), own[len(own)-1], resident[len(own)-1])
	}
	cancel()
	all.Wait()
	if len(own) < looks-1 || t.Failed() {
		t.Fatalf("%d looks at its memory", len(own))
	}
	half, quarter := len(own)/2, len(own)/4
	_, slope := stat.LinearRegression(minutes[half:], own[half:], nil, false)
	middle, end := stat.Mean(own[quarter:half], nil), stat.Mean(own[len(own)-quarter:], nil)
	t.Logf("in %v: %d updates; %.1f MB in the second quarter, %.1f MB in the last; the second half grows by %.2f MB an hour", *loadTime, updates.Load(), middle, end, 60*slope)
	if end > 1.1*middle+2 {
		t.Errorf("the server's memory grows: %.1f MB, then %.1f MB", middle, end)
	}
}
