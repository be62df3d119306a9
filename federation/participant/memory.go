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
)

// memoryMagic stands first in a participant's memory: a name, and its version.
const (
	memoryName  = "coterie memory "
	memoryMagic = memoryName + "2\n"
)

// Memory is what a participant keeps of one run besides its ledger: its own model
// above all. What holds after a round is saved before the round's release is
// stored, and a round begins from what held before it: a round that is made again
// after a crash starts from where it started before.
type Memory interface {
	// Save keeps what p holds after a round; what a first round has drawn for all later
	// ones is kept as if a round -1 had left it.
	Save(run string, round int, p *fl.Participant) error
	// Recall gives p what it held before a round; before the first it held nothing.
	Recall(run string, round int, p *fl.Participant) error
	// Seed is this participant's own for the run: what it draws by it (batches, say)
	// must be unknown to the server. It stays the same after a crash.
	Seed() (uint64, error)
}

// FileMemory keeps one file a round.
type FileMemory struct{ dir string }

// remembered is one file's content.
type remembered struct {
	Run     string
	Round   int // after which it holds
	Kept    fl.Kept
	Account account.Metric
	Switch  float64
}

// OpenMemory uses or makes the folder of a run's memory.
func OpenMemory(dir, run string) (*FileMemory, error) {
	sum := sha256.Sum256([]byte(run)) // a server chooses the run's name; it names no folder
	m := &FileMemory{dir: filepath.Join(dir, "memory", fmt.Sprintf("%x", sum[:8]))}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make room for the participant's memory: %w", err)
	}
	return m, nil
}

func (m *FileMemory) file(round int) string {
	return filepath.Join(m.dir, fmt.Sprintf("round-%010d", round))
}

// Save writes a file of its own and drops those that no round can begin from.
func (m *FileMemory) Save(run string, round int, p *fl.Participant) error {
	body, err := transfer.EncodeGob(remembered{Run: run, Round: round, Kept: p.Kept, Account: p.Account, Switch: p.Switch})
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
func (m *FileMemory) Recall(run string, round int, p *fl.Participant) error {
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
	return m.read(run, last, p)
}

func (m *FileMemory) read(run string, round int, p *fl.Participant) error {
	path := m.file(round)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("recall round %d: %w", round+1, err)
	}
	body, ok := bytes.CutPrefix(text, []byte(memoryMagic))
	if !ok && bytes.HasPrefix(text, []byte(memoryName)) {
		return fmt.Errorf("%s was written by another version of coterie, so that run %s cannot be gone on with here; the ledger keeps what was spent in it; join a new run, which the server begins with --new", path, run)
	}
	if !ok || len(body) < sha256.Size || sha256.Sum256(body[sha256.Size:]) != [sha256.Size]byte(body) {
		return fmt.Errorf("%s is damaged: the participant's own model of round %d is lost", path, round+1)
	}
	var r remembered
	if err := transfer.DecodeGob(body[sha256.Size:], &r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.Run != run || r.Round != round {
		return fmt.Errorf("%s belongs to round %d of run %q", path, r.Round+1, r.Run)
	}
	p.Kept, p.Account, p.Switch = r.Kept, r.Account, r.Switch
	return nil
}

// rounds are those with a file, in order.
func (m *FileMemory) rounds() ([]int, error) {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
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
	path := filepath.Join(m.dir, "seed")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = make([]byte, 8)
		if _, err := rand.Read(text); err != nil {
			return 0, fmt.Errorf("draw a seed: %w", err)
		}
		if err := durable.WriteFile(path, text, 0o600); err != nil {
			return 0, err
		}
	} else if err != nil {
		return 0, fmt.Errorf("read the seed: %w", err)
	}
	if len(text) != 8 {
		return 0, fmt.Errorf("%s is damaged: it has %d bytes, wanted 8", path, len(text))
	}
	return binary.LittleEndian.Uint64(text), nil
}
