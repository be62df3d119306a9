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

// checkpointMagic stands first in a checkpoint; the number is its version. It is raised,
// too, when the same run file and seed hold out other examples or draw other batches: to
// go on with those would train on what was held out before.
const checkpointMagic = "coterie checkpoint 2\n"

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
	Kept         []fl.Kept
	Progress     progress
	Record       recorder
}

func (s *Simulation) snapshot(configHash string, seconds float64) ([]byte, error) {
	c := checkpoint{
		ConfigSHA256: configHash, Seed: s.run.Seed, Seconds: seconds,
		State: *s.rounds.State, Sampler: s.sampler.State, Progress: s.progress, Record: s.record,
	}
	for i := range s.rounds.Participants {
		p := &s.rounds.Participants[i]
		c.Accounts, c.Switch, c.Kept = append(c.Accounts, p.Account), append(c.Switch, p.Switch), append(c.Kept, p.Kept)
	}
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
	raw, err := os.ReadFile(d.File(CheckpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // stopped before the first one: start again
	}
	if err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	var c checkpoint
	if err := decodeCheckpoint(raw, &c); err != nil {
		return 0, fmt.Errorf("%s: %w; remove the file to start the run again", d.File(CheckpointFile), err)
	}
	if c.ConfigSHA256 != configHash || c.Seed != s.run.Seed {
		return 0, fmt.Errorf("%s belongs to another run file: %s was changed after the run began", d.File(CheckpointFile), d.File(RunFile))
	}
	k := len(s.rounds.Participants)
	fit := len(c.Accounts) == k && len(c.Switch) == k && len(c.Kept) == k && len(c.Progress.Cluster) == k &&
		len(c.State.Hypotheses) == len(s.rounds.State.Hypotheses) && len(c.State.Memory) == len(s.rounds.State.Memory) &&
		len(c.Progress.Best) == len(s.progress.Best)
	for i := range c.Kept {
		fit = fit && len(c.Kept[i].Personal) == len(s.rounds.Participants[i].Personal)
	}
	if !fit {
		return 0, fmt.Errorf("%s does not fit the run; remove the file to start the run again", d.File(CheckpointFile))
	}
	s.rounds.State, s.sampler.State, s.progress = &c.State, c.Sampler, c.Progress
	size := s.record.size
	s.record = c.Record
	s.record.size = size
	for i := range s.rounds.Participants {
		p := &s.rounds.Participants[i]
		p.Account, p.Switch, p.Kept = c.Accounts[i], c.Switch[i], c.Kept[i]
	}
	return c.Seconds, nil
}

func decodeCheckpoint(raw []byte, c *checkpoint) error {
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
