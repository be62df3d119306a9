package sim

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
)

// checkpointMagic stands first in a checkpoint; the number is its version. It is raised,
// too, when the same run file and seed hold out other examples or draw other batches: to
// go on with those would train on what was held out before. Versions before 4 do not say
// which data they are of.
const checkpointMagic = "coterie checkpoint 4\n"

// checkpoint is a run between two rounds or within one. Randomness is keyed by round and
// client, so nothing else is needed to go on as if nothing had happened.
type checkpoint struct {
	ConfigSHA256 string
	Seed         uint64
	Data         data.Fingerprint // that the run was begun on
	Seconds      float64          // spent on the run so far
	State        fl.State
	Sampler      fl.SamplerState
	Accounts     []account.Metric
	Switch       []float64
	Kept         []fl.Kept
	Progress     progress
	Record       recorder
	// Answers are of the round under way; nil: there is none.
	Answers *fl.Answers
	// Made and Sizes are of a round whose judgement was interrupted.
	Made   made
	Sizes  []int
	Traces []mech.StepTrace // since the last record; nil: steps are not watched
	// Lengths are those of the vectors that follow, value by value: encoded one by one, the
	// models of a large network would take longer than the second that an answer may take.
	Lengths []int
	// Singles are the lengths of those in single precision, which follow them.
	Singles []int
	// Asked is how many clients follow all that, of a run that holds no others.
	Asked int
	crowd *crowd
	given []byte // what follows, as it was read
}

// vectors are the long ones, in the order in which they follow.
func (c *checkpoint) vectors() []*[]float64 {
	all := []*[]float64{&c.State.Hypotheses, &c.State.Memory, &c.Progress.Best, &c.Record.Start}
	for i := range c.Kept {
		all = append(all, &c.Kept[i].Personal, &c.Kept[i].Last)
	}
	if c.Answers != nil {
		for i := range c.Answers.Vectors {
			all = append(all, &c.Answers.Vectors[i])
		}
		if c.Answers.Sum != nil {
			all = append(all, &c.Answers.Sum.Values)
		}
	}
	for i := range c.Kept {
		all = append(all, &c.Kept[i].Training.First, &c.Kept[i].Training.Second)
	}
	return all
}

// singles are the long ones in single precision, in the order in which they follow.
func (c *checkpoint) singles() (all []*[]float32) {
	for i := range c.Kept {
		clip := &c.Kept[i].Training.Clip
		all = append(all, &clip.Gradient, &clip.Direction)
	}
	return all
}

// snapshot is the run as it is now. It shares the run's memory: write it before going on.
func (s *Simulation) snapshot(configHash string, seconds float64) *checkpoint {
	c := &checkpoint{
		ConfigSHA256: configHash, Seed: s.run.Seed, Data: s.digest().Fingerprint(), Seconds: seconds, Traces: s.traces,
		State: *s.rounds.State, Sampler: s.sampler.State, Progress: s.progress, Record: s.record,
	}
	if c.crowd = s.rounds.crowd; c.crowd != nil {
		c.Asked = c.crowd.size
	}
	for i := range s.rounds.Participants {
		p := &s.rounds.Participants[i]
		c.Accounts, c.Switch, c.Kept = append(c.Accounts, p.Account), append(c.Switch, p.Switch), append(c.Kept, p.Kept)
	}
	if s.rounds.round.IsOpen() {
		answers := s.rounds.round.Answers()
		c.Answers = &answers
	}
	if s.made.Whole {
		c.Made, c.Sizes = s.made, s.record.size
	}
	return c
}

// write writes the version, the checkpoint without its vectors, the vectors, and a
// checksum of all that.
func (c *checkpoint) write(w io.Writer) error {
	sum, file := sha256.New(), bufio.NewWriterSize(w, 1<<16)
	both := io.MultiWriter(sum, file)
	head, vectors, singles := *c, c.vectors(), c.singles()
	head.Lengths, head.Singles = lengths(vectors), lengths(singles)
	if _, err := io.WriteString(both, checkpointMagic); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := gob.NewEncoder(both).Encode(head.withoutVectors()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := follow(both, vectors, func(to []byte, x float64) []byte {
		return binary.LittleEndian.AppendUint64(to, math.Float64bits(x))
	}); err != nil {
		return err
	}
	if err := follow(both, singles, func(to []byte, x float32) []byte {
		return binary.LittleEndian.AppendUint32(to, math.Float32bits(x))
	}); err != nil {
		return err
	}
	if c.crowd != nil {
		if err := c.crowd.write(both); err != nil {
			return err
		}
	}
	if _, err := file.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := file.Flush(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func lengths[F any](vectors []*[]F) (all []int) {
	for _, v := range vectors {
		all = append(all, len(*v))
	}
	return all
}

// followLength is how many values are written at a time.
const followLength = 1 << 13

// follow writes vectors value by value.
func follow[F any](w io.Writer, vectors []*[]F, add func(to []byte, x F) []byte) error {
	values := make([]byte, 0, followLength*8)
	for _, v := range vectors {
		for part := range slices.Chunk(*v, followLength) {
			values = values[:0]
			for _, x := range part {
				values = add(values, x)
			}
			if _, err := w.Write(values); err != nil {
				return fmt.Errorf("checkpoint: %w", err)
			}
		}
	}
	return nil
}

// withoutVectors is the checkpoint with its vectors left out.
func (c checkpoint) withoutVectors() checkpoint {
	c.Kept = slices.Clone(c.Kept)
	if c.Answers != nil {
		answers := *c.Answers
		answers.Vectors = slices.Clone(answers.Vectors)
		if answers.Sum != nil {
			sum := *answers.Sum
			answers.Sum = &sum
		}
		c.Answers = &answers
	}
	for _, v := range c.vectors() {
		*v = nil
	}
	for _, v := range c.singles() {
		*v = nil
	}
	return c
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
	seconds, err := s.resume(raw, configHash)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", d.File(CheckpointFile), err)
	}
	return seconds, nil
}

// resume continues from a checkpoint and returns the seconds already spent.
func (s *Simulation) resume(raw []byte, configHash string) (float64, error) {
	const again = "remove the file to start the run again"
	var c checkpoint
	if err := decodeCheckpoint(raw, &c); err != nil {
		return 0, fmt.Errorf("%w; %s", err, again)
	}
	if c.ConfigSHA256 != configHash || c.Seed != s.run.Seed {
		return 0, fmt.Errorf("it belongs to another run file: %s was changed after the run began", RunFile)
	}
	if what := s.digest().Changed(c.Data); what != "" {
		return 0, fmt.Errorf("it belongs to other data: they were changed after the run began (%s); put them back as they were to go on, or %s", what, again)
	}
	k := len(s.rounds.Participants)
	fit := len(c.Accounts) == k && len(c.Switch) == k && len(c.Kept) == k && len(c.Progress.Cluster) == k &&
		len(c.State.Hypotheses) == len(s.rounds.State.Hypotheses) && len(c.State.Memory) == len(s.rounds.State.Memory) &&
		len(c.Progress.Best) == len(s.progress.Best)
	if crowd := s.rounds.crowd; crowd != nil && fit {
		fit = crowd.resume(c.given) == nil
	} else {
		fit = fit && c.Asked == 0
	}
	for i := range c.Kept {
		fit = fit && len(c.Kept[i].Personal) == len(s.rounds.Participants[i].Personal)
	}
	s.rounds.round = fl.Round{}
	if a := c.Answers; fit && a != nil {
		fit = a.Number == c.State.Round && (len(a.Clients) == 0 || a.Clients[0] >= 0 && a.Clients[len(a.Clients)-1] < s.rounds.Count()) &&
			s.rounds.reopen(*a) == nil
	}
	if !fit {
		return 0, fmt.Errorf("it does not fit the run; %s", again)
	}
	s.rounds.State, s.sampler.State, s.progress, s.made = &c.State, c.Sampler, c.Progress, c.Made
	s.record.resume(c.Record, c.Sizes, s.rounds.Count())
	copy(s.traces, c.Traces)
	for i := range s.rounds.Participants {
		p := &s.rounds.Participants[i]
		p.Account, p.Switch, p.Kept = c.Accounts[i], c.Switch[i], c.Kept[i]
	}
	if s.rounds.after != nil && c.Answers != nil {
		for i, client := range c.Answers.Clients {
			if c.Answers.Released[i] {
				s.rounds.after(&s.rounds.Participants[client])
			}
		}
	}
	s.publish()
	return c.Seconds, nil
}

func decodeCheckpoint(raw []byte, c *checkpoint) error {
	end := len(raw) - sha256.Size
	if end < len(checkpointMagic) || !bytes.HasPrefix(raw, []byte(checkpointMagic)) {
		return fmt.Errorf("not a checkpoint of this version")
	}
	body, sum := raw[:end], raw[end:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return fmt.Errorf("damaged: its checksum is wrong")
	}
	body = bytes.TrimPrefix(body, []byte(checkpointMagic))
	left := bytes.NewReader(body) // of which a decoder reads no more than it needs
	if err := gob.NewDecoder(left).Decode(c); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return c.fill(body[len(body)-left.Len():])
}

// fill gives the vectors their values.
func (c *checkpoint) fill(values []byte) error {
	values, err := taken(values, c.vectors(), c.Lengths, 8, func(from []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(from)) })
	if err == nil {
		values, err = taken(values, c.singles(), c.Singles, 4, func(from []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(from)) })
	}
	if asked := c.Asked * 8 * askedWords; err == nil && asked > 0 && asked <= len(values) {
		values, c.given = values[asked:], values[:asked]
	}
	if err == nil && len(values) > 0 {
		err = fmt.Errorf("cannot be read: %d bytes too many", len(values))
	}
	return err
}

// taken gives vectors their values, of size bytes each, and is what is left.
func taken[F any](values []byte, all []*[]F, lengths []int, size int, value func(from []byte) F) ([]byte, error) {
	if len(lengths) != len(all) {
		return nil, fmt.Errorf("cannot be read: %d vectors of %d", len(lengths), len(all))
	}
	for i, n := range lengths {
		if n < 0 || n > len(values)/size {
			return nil, fmt.Errorf("cannot be read: vector %d of %d is cut", i, len(all))
		}
		if n > 0 { // what was nil stays so
			*all[i] = make([]F, n)
		}
		for j := range n {
			(*all[i])[j] = value(values[size*j:])
		}
		values = values[size*n:]
	}
	return values, nil
}
