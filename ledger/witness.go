package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Option is a choice at Open or Read.
type Option func(*Ledger)

// WithWitness keeps the ledger's head in a file elsewhere, best on another disk: a
// ledger that is put back from an old copy, and the file is not, is found out at the
// next Open without any server. The file is durable before an operation returns, and
// so before noise is drawn. Read checks it and writes nothing. Its folder must exist: a
// disk that is not mounted is not made up for.
func WithWitness(path string) Option {
	return func(l *Ledger) { l.witness = path }
}

// testimony is the witness's file: how far the ledger had come.
type testimony struct {
	Version int  `json:"version"`
	Records int  `json:"records"`
	Head    Hash `json:"head"` // of the last of them
}

const (
	testimonyVersion = 1
	maxTestimony     = 4096
)

// hear reads the witness, before the log is read: a ledger may be ahead of it.
func (l *Ledger) hear() error {
	if l.witness == "" {
		return nil
	}
	text, err := l.disk.read(l.witness, maxTestimony)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // whether that may be, corroborated says
	}
	if err != nil {
		return fmt.Errorf("read the ledger's witness: %w", err)
	}
	var w testimony
	if err := json.Unmarshal(text, &w); err != nil || w.Version != testimonyVersion || w.Records < 1 {
		return fmt.Errorf("%w: its witness %s does not hold what was written there", ErrCorrupt, l.witness)
	}
	l.testified = &w
	return nil
}

// meet holds the record that the ledger has just read against the witness.
func (l *Ledger) meet() {
	if w := l.testified; w != nil && l.state.records == w.Records {
		l.met = l.state.head == w.Head
	}
}

// corroborated says whether the log that was read contains what the witness saw.
func (l *Ledger) corroborated() error {
	switch {
	case l.witness == "":
		return nil
	case l.testified == nil && len(l.state.order) > 0:
		return fmt.Errorf("%w: the witness %s is missing, and without it nobody can say whether this is the newest copy: put it back, or, if this ledger never had one, call it with coterie ledger witness", ErrRollback, l.witness)
	case l.testified == nil || l.met:
		return nil
	}
	return fmt.Errorf("%w: its witness %s has seen %d records with head %s, this ledger has %d and not that one: put the newest copy of %s back",
		ErrRollback, l.witness, l.testified.Records, l.testified.Head, l.state.records, l.path(logFile))
}

// testify makes the witness see what the ledger has written.
func (l *Ledger) testify() error {
	if l.witness == "" {
		return nil
	}
	text, err := json.Marshal(testimony{testimonyVersion, l.state.records, l.state.head})
	if err != nil {
		return err
	}
	f, err := replace(l.disk, l.witness, append(text, '\n'))
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("tell the ledger's witness: %w", err)
	}
	return nil
}

// CallWitness gives an existing ledger a witness, from now on: it takes the log for the
// newest copy. A file that is there already is left alone.
func CallWitness(dir, path string) error {
	if _, err := (systemDisk{}).read(path, maxTestimony); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there already; a witness is called once", path), err)
	}
	l, err := open(systemDisk{}, dir, wallClock, func(l *Ledger) ([]record, error) {
		if l.state.records == 0 {
			return nil, fmt.Errorf("there is no ledger in %s", dir)
		}
		l.witness = path
		return nil, nil
	})
	if err != nil {
		return err
	}
	return l.Close()
}
