package participant

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
)

// memoryMagic stands first in a participant's memory: a name, and its version.
const (
	memoryName  = "coterie memory "
	memoryMagic = memoryName + "3\n"
)

// Memory is what a participant keeps of one plan besides its ledger: its own model
// above all. What holds after a round is saved before the round's release is
// stored, and a round begins from what held before it: a round that is made again
// after a crash starts from where it started before.
//
// It is the plan's, not the run's name's: what one plan has a participant keep is not
// protected as another one promises, and a server gives runs their names.
type Memory interface {
	// Save keeps what p holds after a round; what a first round has drawn for all later
	// ones is kept as if a round -1 had left it.
	Save(round int, p *fl.Participant) error
	// Recall gives p what it held before a round; before the first it held nothing.
	Recall(round int, p *fl.Participant) error
	// Seed is this participant's own for the plan: what it draws by it (batches, say)
	// must be unknown to the server.
	Seed() (uint64, error)
	// Begin makes the seed durable, so that it is the same after a crash: before anything is
	// paid for. Plans that nothing comes of leave nothing.
	Begin() error
}

// FileMemory keeps one file a round.
type FileMemory struct {
	dir, run string
	plan     ledger.Hash
	drawn    []byte // a seed that is not durable yet
}

// remembered is one file's content.
type remembered struct {
	Plan    ledger.Hash
	Round   int // after which it holds
	Kept    fl.Kept
	Account account.Metric
	Switch  float64
}

// OpenMemory is the memory of a run's plan, whose hash names its folder.
func OpenMemory(dir, run string, plan ledger.Hash) (*FileMemory, error) {
	m := &FileMemory{dir: filepath.Join(dir, "memory", fmt.Sprintf("%x", plan[:16])), run: run, plan: plan}
	sum := sha256.Sum256([]byte(run)) // which named the folders of earlier versions
	earlier := &FileMemory{dir: filepath.Join(dir, "memory", fmt.Sprintf("%x", sum[:8]))}
	if rounds, err := earlier.rounds(); err != nil || len(rounds) > 0 {
		return nil, errors.Join(err, m.ofAnotherVersion(earlier.dir))
	}
	return m, nil
}

// ofAnotherVersion says that a run cannot be gone on with.
func (m *FileMemory) ofAnotherVersion(path string) error {
	return fmt.Errorf("%s was written by another version of coterie, so that run %s cannot be gone on with here; the ledger keeps what was spent in it; join a new run, which the server begins with --new", path, m.run)
}

// Begin makes the folder, and writes the seed.
func (m *FileMemory) Begin() error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return fmt.Errorf("make room for the participant's memory: %w", err)
	}
	if m.drawn == nil {
		return nil
	}
	if err := durable.WriteFile(m.seed(), m.drawn, 0o600); err != nil {
		return fmt.Errorf("keep the participant's seed: %w", err)
	}
	m.drawn = nil
	return nil
}

func (m *FileMemory) seed() string { return filepath.Join(m.dir, "seed") }

func (m *FileMemory) file(round int) string {
	return filepath.Join(m.dir, fmt.Sprintf("round-%010d", round))
}

// Save writes a file of its own and drops those that no round can begin from.
func (m *FileMemory) Save(round int, p *fl.Participant) error {
	if err := m.Begin(); err != nil {
		return err
	}
	body, err := transfer.EncodeGob(remembered{Plan: m.plan, Round: round, Kept: p.Kept, Account: p.Account, Switch: p.Switch})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	text := append(append([]byte(memoryMagic), sum[:]...), body...)
	if err := durable.WriteFile(m.file(round), text, 0o600); err != nil {
		return err
	}
	rounds, err := m.rounds()
	if err != nil {
		return err
	}
	for i, r := range rounds {
		if r < round && i < len(rounds)-2 {
			_ = os.Remove(m.file(r)) // a file too many harms nothing
		}
	}
	return nil
}

// Recall reads the latest file of an earlier round.
func (m *FileMemory) Recall(round int, p *fl.Participant) error {
	rounds, err := m.rounds()
	if err != nil {
		return err
	}
	last, found := 0, false
	for _, r := range rounds {
		if r < round {
			last, found = r, true
		}
	}
	if !found {
		return nil
	}
	return m.read(last, p)
}

func (m *FileMemory) read(round int, p *fl.Participant) error {
	path := m.file(round)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("recall round %d: %w", round+1, err)
	}
	body, ok := bytes.CutPrefix(text, []byte(memoryMagic))
	if !ok && bytes.HasPrefix(text, []byte(memoryName)) {
		return m.ofAnotherVersion(path)
	}
	if !ok || len(body) < sha256.Size || sha256.Sum256(body[sha256.Size:]) != [sha256.Size]byte(body) {
		return fmt.Errorf("%s is damaged: the participant's own model of round %d is lost", path, round+1)
	}
	var r remembered
	if err := transfer.DecodeGob(body[sha256.Size:], &r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.Plan != m.plan || r.Round != round {
		return fmt.Errorf("%s belongs to round %d of the plan %.16s, and not to round %d of %.16s, which is that of run %s", path, r.Round+1, r.Plan, round+1, m.plan, m.run)
	}
	p.Kept, p.Account, p.Switch = r.Kept, r.Account, r.Switch
	return nil
}

// rounds are those with a file, in order.
func (m *FileMemory) rounds() ([]int, error) {
	entries, err := os.ReadDir(m.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the participant's memory: %w", err)
	}
	var out []int
	for _, e := range entries { // sorted by name, and so by round
		var r int
		if n, err := fmt.Sscanf(e.Name(), "round-%d", &r); n == 1 && err == nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// Seed is drawn once from the system's entropy.
func (m *FileMemory) Seed() (uint64, error) {
	text, err := os.ReadFile(m.seed())
	if errors.Is(err, fs.ErrNotExist) {
		if m.drawn == nil {
			m.drawn = make([]byte, 8)
			if _, err := rand.Read(m.drawn); err != nil {
				return 0, fmt.Errorf("draw a seed: %w", err)
			}
		}
		text = m.drawn
	} else if err != nil {
		return 0, fmt.Errorf("read the seed: %w", err)
	}
	if len(text) != 8 {
		return 0, fmt.Errorf("%s is damaged: it has %d bytes, wanted 8", m.seed(), len(text))
	}
	return binary.LittleEndian.Uint64(text), nil
}
