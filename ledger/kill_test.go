package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// How the child process is told what to do.
const (
	childFolder = "COTERIE_TEST_LEDGER"      // the ledger's folder
	childLast   = "COTERIE_TEST_LAST"        // the server's last receipt
	childDie    = "COTERIE_TEST_DIE"         // "sync@17": end at the 17th such operation
	childPlant  = "COTERIE_TEST_PLANTED_BUG" // send before the bytes are stored
)

const childRounds = 40 // of which the budget allows childFits
const childFits = 30

var childPolicy = Policy{Ceilings: []Ceiling{{Unit: metricCeiling.Unit, Relation: metricCeiling.Relation, Claim: metricCeiling.Claim, Epsilon: 0.4 * childFits, EpsilonSwitch: 1000}}}

// message is what the child sends to the witness.
type message struct {
	Slot  Slot
	Bytes string
	Draft *Receipt // nil where the planted bug sends too early
}

// childProcess is a participant on a real disk. It tells every operation on its
// standard output, and sends its releases through file 3.
func childProcess() error {
	d := &tellingDisk{counts: map[string]int{}}
	if kind, at, ok := strings.Cut(os.Getenv(childDie), "@"); ok {
		d.dieKind = kind
		d.dieAt, _ = strconv.Atoi(at)
	}
	send := json.NewEncoder(os.NewFile(3, "witness"))
	l, err := open(d, os.Getenv(childFolder), fixedClock, func(l *Ledger) ([]record, error) { return l.adopt(childPolicy) })
	if err != nil {
		return err
	}
	var last *SignedReceipt
	if text := os.Getenv(childLast); text != "" {
		r, err := ParseSignedReceipt([]byte(text))
		if err != nil {
			return err
		}
		last = &r
	}
	if err := l.Reconcile(testMember, last); err != nil {
		return err
	}
	for round := range childRounds {
		slot := slotAt(round)
		e, _ := l.Entry(slot)
		if e.Status == Committed {
			continue
		}
		if e.Status != Stored {
			if err := l.Reserve(charge(round, metricRelease(5))); errors.Is(err, ErrRefused) {
				continue
			} else if err != nil {
				return err
			}
			d.tell("reserved")
			noise := fmt.Sprintf("round %d, noise %d", round, rand.Uint64())
			if os.Getenv(childPlant) != "" {
				if err := send.Encode(message{Slot: slot, Bytes: noise}); err != nil {
					return err
				}
				d.tell("sent early")
			}
			if err := l.Store(slot, []byte(noise)); err != nil {
				return err
			}
			d.tell("stored")
		}
		noised, err := l.Load(slot)
		if err != nil {
			return err
		}
		draft, err := l.Draft(slot)
		if err != nil {
			return err
		}
		if err := send.Encode(message{slot, string(noised), &draft}); err != nil {
			return err
		}
		d.tell("sent")
		signed, err := Sign(draft, testKey)
		if err != nil {
			return err
		}
		if err := l.Commit(slot, signed); err != nil {
			return err
		}
	}
	return l.Close()
}

// tellingDisk is the system's disk; it tells every operation before it is done, and
// can end the process there.
type tellingDisk struct {
	systemDisk
	counts  map[string]int
	dieKind string
	dieAt   int
}

func (d *tellingDisk) tell(kind string) {
	d.counts[kind]++
	if kind == d.dieKind && d.counts[kind] == d.dieAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
	_, _ = os.Stdout.Write([]byte{'.'})
}

func (d *tellingDisk) create(path string) (file, error) {
	d.tell("create")
	f, err := d.systemDisk.create(path)
	return tellingFile{f, d}, err
}

func (d *tellingDisk) rename(from, to string) error {
	d.tell("rename")
	return d.systemDisk.rename(from, to)
}

func (d *tellingDisk) remove(path string) error {
	d.tell("remove")
	return d.systemDisk.remove(path)
}

func (d *tellingDisk) syncDir(path string) error {
	d.tell("syncDir")
	return d.systemDisk.syncDir(path)
}

type tellingFile struct {
	file
	d *tellingDisk
}

// Write writes in two parts, so that a kill can tear a record.
func (f tellingFile) Write(b []byte) (int, error) {
	f.d.tell("write")
	half := len(b) / 2
	n, err := f.file.Write(b[:half])
	if err != nil {
		return n, err
	}
	f.d.tell("half written")
	m, err := f.file.Write(b[half:])
	return n + m, err
}

func (f tellingFile) Sync() error {
	f.d.tell("sync")
	return f.file.Sync()
}

// failpoints are the places at which the child can be told to die.
var failpoints = []string{"create", "write", "half written", "sync", "rename", "syncDir", "remove", "reserved", "stored", "sent"}

// killer starts children on one ledger and watches what they send.
type killer struct {
	t     *testing.T
	dir   string
	w     *witness
	draw  *rand.Rand
	plant bool
	kills int
}

// life runs one child until it is killed or done. It returns a violation.
func (k *killer) life(die string) (done bool, violation error) {
	k.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+k.dir, childDie+"="+die)
	if k.plant {
		cmd.Env = append(cmd.Env, childPlant+"=1")
	}
	if k.w.last != nil {
		text, err := json.Marshal(k.w.last)
		must(k.t, err)
		cmd.Env = append(cmd.Env, childLast+"="+string(text))
	}
	sent, write, err := os.Pipe()
	must(k.t, err)
	defer sent.Close()
	cmd.ExtraFiles = []*os.File{write}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	ticks, err := cmd.StdoutPipe()
	must(k.t, err)
	must(k.t, cmd.Start())
	must(k.t, write.Close())
	if die == "" { // at a random instant: after some operations, while it goes on
		_, _ = io.ReadFull(ticks, make([]byte, 1+k.draw.IntN(120)))
		_ = cmd.Process.Kill()
	}
	messages := make(chan error, 1)
	go func() { messages <- k.receive(sent) }()
	_, _ = io.Copy(io.Discard, ticks)
	violation = <-messages
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		done = true
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		k.kills++
	case violation == nil:
		violation = fmt.Errorf("the child failed: %v: %s", err, stderr.String())
	}
	return done, violation
}

// receive notes everything that arrives.
func (k *killer) receive(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		if m.Draft == nil {
			if before, ok := k.w.seen[m.Slot]; ok && before != m.Bytes {
				return fmt.Errorf("two different releases in one slot: %q and %q", before, m.Bytes)
			}
			k.w.seen[m.Slot] = m.Bytes
			continue
		}
		if _, err := k.w.receive(m.Slot, []byte(m.Bytes), *m.Draft); err != nil {
			return err
		}
	}
	return lines.Err()
}

// check holds the ledger on disk against what the witness saw.
func (k *killer) check() error {
	l, err := Read(k.dir)
	if errors.Is(err, os.ErrNotExist) && len(k.w.seen) == 0 {
		return nil // killed before there was a ledger
	}
	if err != nil {
		return err
	}
	for slot, seen := range k.w.seen {
		if e, ok := l.Entry(slot); !ok || (e.Status != Stored && e.Status != Committed) || e.Content != hashOf(seen) {
			return fmt.Errorf("unrecorded release in %s: %+v", slot, e)
		}
	}
	b, ok := l.state.budgets[metricCeiling.Terms()]
	if !ok || b.over || len(l.state.order) > childFits {
		return fmt.Errorf("over-spent: %d releases", len(l.state.order))
	}
	return nil
}

// runLedger kills children on a fresh ledger until its rounds are done.
func (k *killer) runLedger(limit int) error {
	k.dir = filepath.Join(k.t.TempDir(), "ledger")
	k.w = &witness{seen: map[Slot]string{}}
	for life := 0; k.kills < limit; life++ {
		die := ""
		if life%2 == 1 {
			die = fmt.Sprintf("%s@%d", failpoints[k.draw.IntN(len(failpoints))], 1+k.draw.IntN(12))
		}
		done, err := k.life(die)
		if err == nil {
			err = k.check()
		}
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if k.kills < limit && len(k.w.seen) != childFits {
		return fmt.Errorf("a double charge: %d releases were sent, the budget allows %d", len(k.w.seen), childFits)
	}
	return nil
}

// TestKilledProcess kills a real process with signal 9 at random instants and at
// named places. Every byte that left it must be in its ledger.
func TestKilledProcess(t *testing.T) {
	limit := 100
	if *soak {
		limit = 1000
	}
	k := &killer{t: t, draw: rand.New(rand.NewPCG(7, 20261115))}
	sent, ledgers := 0, 0
	for k.kills < limit {
		if err := k.runLedger(limit); err != nil {
			t.Fatalf("after %d kills: %v", k.kills, err)
		}
		sent += len(k.w.seen)
		ledgers++
	}
	t.Logf("%d kills over %d ledgers, %d releases seen, all recorded", k.kills, ledgers, sent)
}

// TestKilledProcessNoticesEarlySends: the test above can fail.
func TestKilledProcessNoticesEarlySends(t *testing.T) {
	k := &killer{t: t, draw: rand.New(rand.NewPCG(7, 20261115)), plant: true}
	k.dir = filepath.Join(t.TempDir(), "ledger")
	k.w = &witness{seen: map[Slot]string{}}
	if _, err := k.life("sent early@2"); err != nil {
		t.Fatal(err)
	}
	if err := k.check(); err == nil {
		t.Error("bytes that were sent before they were stored went unnoticed")
	}
}
