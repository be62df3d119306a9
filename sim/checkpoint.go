package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/fl"
)

// checkpointMagic stands first in a checkpoint; the number is its version.
const checkpointMagic = "coterie checkpoint 1\n"

// checkpoint is a run between two rounds. Randomness is keyed by round and
// client, so nothing else is needed to go on as if nothing had happened.
type checkpoint struct {
	ConfigSHA256 string
	Seed         uint64
	Seconds      float64 // spent on the run so far
	State        fl.State
	Sampler      fl.SamplerState
	Accounts     []account.Metric
	Switch       []float64
	Progress     progress
	Record       recorder
}

func (s *Simulation) snapshot(configHash string, seconds float64) ([]byte, error) {
	c := checkpoint{
		ConfigSHA256: configHash, Seed: s.run.Seed, Seconds: seconds,
		State: *s.state, Sampler: s.sampler.State, Progress: s.progress, Record: s.record,
	}
	for i := range s.participants {
		c.Accounts = append(c.Accounts, s.participants[i].Account)
		c.Switch = append(c.Switch, s.participants[i].Switch)
	}
	return encodeCheckpoint(c)
}

func encodeCheckpoint(c any) ([]byte, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(c); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	sum := sha256.Sum256(body.Bytes())
	return append(append([]byte(checkpointMagic), sum[:]...), body.Bytes()...), nil
}

// restore continues from the directory's checkpoint, if it has one, and returns
// the seconds already spent.
func (s *Simulation) restore(d *Directory, configHash string) (float64, error) {
	var c checkpoint
	found, err := readCheckpoint(d, &c)
	if err != nil || !found {
		return 0, err
	}
	switch {
	case c.ConfigSHA256 != configHash || c.Seed != s.run.Seed:
		return 0, fmt.Errorf("%s belongs to another run file: %s was changed after the run began", d.File(CheckpointFile), d.File(RunFile))
	case len(c.Accounts) != len(s.participants) || len(c.Switch) != len(s.participants),
		len(c.State.Hypotheses) != len(s.state.Hypotheses), len(c.State.Idle) != len(s.state.Idle),
		len(c.Progress.Best) != len(s.progress.Best), len(c.Progress.Cluster) != len(s.participants):
		return 0, fmt.Errorf("%s does not fit the run; remove the file to start the run again", d.File(CheckpointFile))
	}
	s.state, s.sampler.State, s.progress = &c.State, c.Sampler, c.Progress
	size := s.record.size
	s.record = c.Record
	s.record.size = size
	for i := range s.participants {
		s.participants[i].Account, s.participants[i].Switch = c.Accounts[i], c.Switch[i]
	}
	return c.Seconds, nil
}

// readCheckpoint reads the directory's checkpoint, if it has one.
func readCheckpoint(d *Directory, c any) (found bool, err error) {
	raw, err := os.ReadFile(d.File(CheckpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // stopped before the first one: start again
	}
	if err != nil {
		return false, fmt.Errorf("checkpoint: %w", err)
	}
	if err := decodeCheckpoint(raw, c); err != nil {
		return false, fmt.Errorf("%s: %w; remove the file to start the run again", d.File(CheckpointFile), err)
	}
	return true, nil
}

func decodeCheckpoint(raw []byte, c any) error {
	body, ok := bytes.CutPrefix(raw, []byte(checkpointMagic))
	if !ok || len(body) < sha256.Size {
		return fmt.Errorf("not a checkpoint of this version")
	}
	sum, body := body[:sha256.Size], body[sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return fmt.Errorf("damaged: its checksum is wrong")
	}
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(c); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}
