package sim

import (
	"fmt"

	"github.com/coterie-fl/coterie/fl"
)

// siloCheckpoint is a run of silos between two rounds: the server's state, and what
// every silo keeps.
type siloCheckpoint struct {
	ConfigSHA256 string
	Seed         uint64
	Seconds      float64
	State        fl.State
	Personal     [][]float64
	Paid         []fl.SiloPaid
	Record       siloRecord
	// Draws is silosDraw of the program that made it.
	Draws int
}

// silosDraw is raised when the same run file and seed hold out other examples or draw
// other batches: to go on with those would train on what was held out before.
const silosDraw = 1

func (s *Silos) snapshot(configHash string, seconds float64) ([]byte, error) {
	c := siloCheckpoint{ConfigSHA256: configHash, Seed: s.run.Seed, Seconds: seconds, State: *s.state, Record: s.record, Draws: silosDraw}
	for i := range s.participants {
		c.Personal = append(c.Personal, s.participants[i].Personal)
		c.Paid = append(c.Paid, s.participants[i].Paid)
	}
	return encodeCheckpoint(c)
}

// restore continues from the directory's checkpoint, if it has one.
func (s *Silos) restore(d *Directory, configHash string) (float64, error) {
	var c siloCheckpoint
	found, err := readCheckpoint(d, &c)
	if err != nil || !found {
		return 0, err
	}
	if c.ConfigSHA256 != configHash || c.Seed != s.run.Seed {
		return 0, fmt.Errorf("%s belongs to another run file: %s was changed after the run began", d.File(CheckpointFile), d.File(RunFile))
	}
	if c.Draws != silosDraw {
		return 0, fmt.Errorf("%s was made by another version, which holds out other examples: to go on would train on what was held out; remove the file to start the run again", d.File(CheckpointFile))
	}
	fits := len(c.Personal) == len(s.participants) && len(c.Paid) == len(s.participants) &&
		len(c.State.Hypotheses) == len(s.state.Hypotheses)
	for i := range c.Personal {
		fits = fits && len(c.Personal[i]) == len(s.participants[i].Personal)
	}
	if !fits {
		return 0, fmt.Errorf("%s does not fit the run; remove the file to start the run again", d.File(CheckpointFile))
	}
	s.state, s.record = &c.State, c.Record
	for i := range s.participants {
		s.participants[i].Personal, s.participants[i].Paid = c.Personal[i], c.Paid[i]
	}
	return c.Seconds, nil
}
