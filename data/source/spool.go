package source

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// spool is a table's encoded rows in a temporary file, in the order of the table, and whose
// they are. What it holds in memory is a number a row and a name a client. The file has no
// name any more once it is open, where the system allows that: whatever becomes of the
// program, no rows stay behind.
type spool struct {
	file  *os.File
	width int
	names []string // by client, sorted
	first []int    // by client: its first place in order, and an end
	order []int32  // rows of the file, client by client
	sum   [sha256.Size]byte
}

// loadCrowd reads a table into a spool.
func loadCrowd(_ *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
	switch {
	case d.Source.Path == "" && d.Source.Database == "":
		return nil, fmt.Errorf("data.source names neither a path nor a database: where do the rows lie?")
	case d.Test != (config.TestPart{}) || len(d.Sensitive) > 0 || d.TrainLimit > 0:
		return nil, errors.New("data.test, data.sensitive and data.train_limit are for clients that are held: set run.hold to all, or leave them out")
	}
	e, err := encodingOf(d)
	if err != nil {
		return nil, err
	}
	s := &spooling{spool: spool{width: len(e.Inputs)}, hash: sha256.New(), place: map[string]int32{}, seed: seed, share: d.TestShare}
	if err := s.begin(); err != nil {
		return nil, err
	}
	r := Reading{Source: d.Source, Encoding: e, LeaveOut: d.TargetMissing == "leave-out"}
	tally, err := r.Each(context.Background(), s.take)
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.hashNames()
	tiny := s.sort()
	silos := emptySilos(d, e, tally)
	if len(s.names)+len(tiny) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: no rows after the header", silos.Report.Source), s.Close())
	}
	f, err := silos.Crowd(&s.spool, tiny, tableOptions(d, seed, e))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return f, nil
}

// spooling fills a spool.
type spooling struct {
	spool
	out    *bufio.Writer
	hash   hash.Hash // of the rows and whose they are
	seed   uint64
	share  float64
	place  map[string]int32 // of a client, as they come
	trains []bool           // by place: it has rows that are not held out
	of     []int32          // by row: whose it is
	buffer []byte
	last   string
	at     int32
	holder data.Holder
}

func (s *spooling) begin() (err error) {
	if s.file, err = os.CreateTemp("", "coterie-rows-"); err != nil {
		return fmt.Errorf("a place for the table's rows (TMPDIR): %w", err)
	}
	_ = os.Remove(s.file.Name()) // where that is not possible, Close does it
	s.out = bufio.NewWriterSize(s.file, 1<<20)
	return nil
}

func (s *spooling) take(b *Batch) error {
	for i, name := range b.Clients {
		if len(s.of) == math.MaxInt32 {
			return fmt.Errorf("more than %d rows; run.hold asked goes no further", math.MaxInt32)
		}
		if len(s.of) == 0 || name != s.last {
			s.last, s.at, s.holder = name, s.client(name), data.NewHolder(s.seed, s.share, name)
		}
		x, y := b.X[i*s.width:(i+1)*s.width], b.Y[i]
		s.of = append(s.of, s.at)
		s.trains[s.at] = s.trains[s.at] || !s.holder.Holds(x, y, &s.buffer)
		s.buffer = s.buffer[:0]
		for _, v := range x {
			s.buffer = binary.LittleEndian.AppendUint64(s.buffer, math.Float64bits(v))
		}
		s.buffer = binary.LittleEndian.AppendUint64(s.buffer, math.Float64bits(y))
		if _, err := s.out.Write(s.buffer); err != nil {
			return fmt.Errorf("the table's rows in a temporary file (TMPDIR): %w", err)
		}
		s.buffer = binary.LittleEndian.AppendUint32(s.buffer, uint32(s.at))
		s.hash.Write(s.buffer)
	}
	return nil
}

func (s *spooling) client(name string) int32 {
	at, ok := s.place[name]
	if !ok {
		at, name = int32(len(s.names)), string([]byte(name)) // not the piece of a file that it was read from
		s.place[name] = at
		s.names, s.trains = append(s.names, name), append(s.trains, false)
	}
	return at
}

// hashNames ends the hash: behind the rows stands whose the numbers are that they end with.
func (s *spooling) hashNames() {
	fmt.Fprintln(s.hash, len(s.of))
	for _, name := range s.names {
		fmt.Fprintf(s.hash, "%q\n", name)
	}
	s.hash.Sum(s.sum[:0])
}

// sort puts clients in the order of their names, so that it tells nothing of the file, and
// finds everybody's rows. Who has none to train on is left out, and named.
func (s *spooling) sort() (tiny []data.TinySilo) {
	s.place = nil
	counts, rank, byName := make([]int32, len(s.names)), make([]int32, len(s.names)), make([]int32, len(s.names))
	for _, at := range s.of {
		counts[at]++
	}
	for i := range byName {
		byName[i] = int32(i)
	}
	slices.SortFunc(byName, func(a, b int32) int { return strings.Compare(s.names[a], s.names[b]) })
	var names []string
	rows := 0
	for _, at := range byName {
		if rank[at] = -1; !s.trains[at] {
			tiny = append(tiny, data.TinySilo{Name: s.names[at], Rows: int(counts[at])})
			continue
		}
		rank[at] = int32(len(names))
		names, s.first = append(names, s.names[at]), append(s.first, rows)
		rows += int(counts[at])
	}
	s.names = names
	next := slices.Clone(s.first)
	s.first = append(s.first, rows)
	s.order = make([]int32, rows)
	for row, at := range s.of {
		if r := rank[at]; r >= 0 {
			s.order[next[r]] = int32(row)
			next[r]++
		}
	}
	s.of, s.trains = nil, nil
	return tiny
}

// Digest is the hash of all rows and whose they are, as they were read.
func (s *spool) Digest() [sha256.Size]byte { return s.sum }

// Len is the number of clients.
func (s *spool) Len() int { return len(s.names) }

// Close ends the file.
func (s *spool) Close() error {
	err := s.file.Close()
	_ = os.Remove(s.file.Name()) // it is gone already, but on systems that keep open files
	return err
}

// Read is a client's rows, in the order of the table. Those that follow one another in the
// file are read at once.
func (s *spool) Read(c *data.Client, i int) error {
	rows, size := s.order[s.first[i]:s.first[i+1]], 8*(s.width+1)
	x, y := slices.Grow(c.X[:0], len(rows)*s.width), slices.Grow(c.Y[:0], len(rows))
	buffer := make([]byte, len(rows)*size)
	for from := 0; from < len(rows); {
		end := from + 1
		for end < len(rows) && rows[end] == rows[end-1]+1 {
			end++
		}
		if _, err := s.file.ReadAt(buffer[from*size:end*size], int64(rows[from])*int64(size)); err != nil {
			return fmt.Errorf("the rows of client %s in the temporary file: %w", s.names[i], err)
		}
		from = end
	}
	for r := range rows {
		at := buffer[r*size : (r+1)*size]
		for j := range s.width {
			x = append(x, math.Float64frombits(binary.LittleEndian.Uint64(at[8*j:])))
		}
		y = append(y, math.Float64frombits(binary.LittleEndian.Uint64(at[8*s.width:])))
	}
	*c = data.Client{Rows: data.Rows{X: x, Y: y, Features: s.width}, Name: s.names[i]}
	return nil
}
