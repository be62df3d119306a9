package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
)

// ProgressFile tells whoever watches how far a run is: a Progress a line, and a file that is
// touched every few seconds, so that a run that was killed can be told from one that works.
// It is gone when the result is there. Nothing reads it to go on with.
const ProgressFile = "progress.jsonl"

// Progress is one line of ProgressFile. All of it is known in simulation only.
type Progress struct {
	Seconds float64 `json:"seconds"` // spent on the run
	Method  string  `json:"method"`
	Round   int     `json:"round"` // rounds made
	Rounds  int     `json:"rounds"`
	Doing   string  `json:"doing"`
	Clients int     `json:"clients"` // have begun what is being done, of so many
	Of      int     `json:"of"`
	Step    int     `json:"step"` // of the only client, of so many
	Steps   int     `json:"steps"`
	// Record is the round's, as the result's history will have it; null between rounds.
	Record *RoundRecord `json:"record"`
	// Low and High are the 95 % interval of the record's loss over those who judge; null:
	// fewer than two do.
	Low  *event.Number `json:"low"`
	High *event.Number `json:"high"`
	// Privacy is what the participant that is most exposed has spent so far, and Ceiling
	// what it may; null: not known yet, or none. Accountants take a while: where epsilon is
	// not added up round by round, it is told seldom.
	Privacy *event.Statement `json:"privacy"`
	Ceiling *event.Number    `json:"ceiling"`
}

// words are what a run is doing, in ProgressFile.
var words = map[Doing]string{Training: "training", Judging: "judging", Finishing: "finishing", Stopping: "stopped"}

// The pace of ProgressFile: a round a line, but no more lines than this many seconds apart,
// and later on than one in so many of all seconds, so that neither quick rounds nor long
// runs make it large. A run within a round says so more seldom, and touches the file between.
const (
	linesApart   = 200 * time.Millisecond
	touchesApart = 2 * time.Second
	linesInAll   = 1000
)

// teller writes ProgressFile. Its faults are nobody's: a run that cannot be watched goes on.
type teller struct {
	mu      sync.Mutex
	file    *os.File // nil: it cannot be written
	began   time.Time
	before  float64 // seconds
	line    time.Time
	record  time.Time // the last line that had one
	touched time.Time
	priced  time.Time
	pricing time.Duration // what it took the last time
}

// startTelling begins, or goes on with, the file of a run.
func startTelling(d *Directory, began time.Time, before float64) *teller {
	w := &teller{began: began, before: before}
	file, err := os.OpenFile(d.File(ProgressFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return w
	}
	w.file = file
	var end [1]byte
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		if _, err := file.ReadAt(end[:], info.Size()-1); err == nil && end[0] != '\n' { // a kill cut it
			_, _ = file.Write([]byte{'\n'})
		}
	}
	return w
}

func (w *teller) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}

// due says whether a line may be written now, if the last of its kind was so long ago.
func (w *teller) due(now, last time.Time, apart time.Duration) bool {
	share := time.Duration(w.before*float64(time.Second)) + now.Sub(w.began)
	return w.file != nil && now.Sub(last) >= max(apart, share/linesInAll)
}

// beat says that the run is at work, if it has not for a while.
func (w *teller) beat(m Moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return
	}
	now := time.Now()
	switch {
	case w.due(now, w.line, touchesApart) || m.Doing == Stopping:
		w.write(now, progressOf(m))
	case now.Sub(w.touched) >= touchesApart:
		w.touched = now
		_ = os.Chtimes(w.file.Name(), now, now)
	}
}

// round writes the run's last record, if that is due; the last round's always is.
func (w *teller) round(s *Simulation, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	n := len(s.record.Rounds)
	// Of quick rounds only some are recorded: the judge still has what it said of this one.
	if w.file == nil || !last && !w.due(now, w.record, linesApart) || n == 0 || s.record.Rounds[n-1] != s.rounds.State.Round {
		return
	}
	p := progressOf(s.Moment())
	record := s.record.record(s, n-1)
	p.Record = &record
	if j, ok := s.judge.(interface{ spread() float64 }); ok {
		if half := j.spread(); !math.IsNaN(half) && !math.IsInf(half, 0) {
			p.Low, p.High = numberIf(true, s.progress.Loss-half), numberIf(true, s.progress.Loss+half)
		}
	}
	w.price(s, now, &p)
	w.record = now
	w.write(now, p)
}

// The pace of prices: the first after a while, and no more than one part in so many of all
// time is spent on them.
const (
	firstPrice   = 2 * time.Second
	pricesInTime = 200
)

// price tells what was spent so far, if that is known or due.
func (w *teller) price(s *Simulation, now time.Time, p *Progress) {
	a, everybody := s.rounds.Algorithm, s.rounds.Participants
	if s.spent != nil {
		stated := a.StateTotals(0, 0, 0) // the terms are everybody's
		stated.Epsilon = *p.Record.Max
		p.Privacy, p.Ceiling = &stated.Statement, stated.Ceiling
		return
	}
	since := w.priced
	if since.IsZero() {
		since = w.began
	}
	if s.run.Algorithm.ClientsPerRound != len(everybody) || now.Sub(since) < max(firstPrice, pricesInTime*w.pricing) {
		return
	}
	most := 0
	for i := range everybody {
		if everybody[i].Plan.Target.Epsilon > everybody[most].Plan.Target.Epsilon {
			most = i
		}
	}
	spent, _, err := a.Spend(&everybody[most])
	w.priced, w.pricing = now, time.Since(now)
	if err != nil {
		return
	}
	stated := spent.Statement()
	target := everybody[most].Plan.Target.Epsilon
	p.Privacy, p.Ceiling = &stated, numberIf(target > 0, target)
}

func progressOf(m Moment) Progress {
	return Progress{
		Method: m.Method, Round: m.Round, Rounds: m.Rounds, Doing: words[m.Doing],
		Clients: m.Clients, Of: m.Of, Step: m.Step, Steps: m.Steps,
	}
}

// write appends a line, whole. After a fault nothing more is written.
func (w *teller) write(now time.Time, p Progress) {
	w.line, w.touched = now, now
	p.Seconds = w.before + now.Sub(w.began).Seconds()
	text, err := json.Marshal(p)
	if err != nil {
		return // a model that has left the numbers: its other rounds are told
	}
	if _, err = w.file.Write(append(text, '\n')); err != nil {
		w.file.Close()
		w.file = nil
	}
}

// ReadProgress takes up the lines of a ProgressFile that are whole, from some byte on, and
// says where the next one begins. A run that was resumed goes back: records of rounds that
// are made again are dropped. Lines that cannot be read are passed over.
func ReadProgress(file *os.File, from int64, lines []Progress) ([]Progress, int64, error) {
	info, err := file.Stat()
	if err != nil {
		return lines, from, fmt.Errorf("read how far a run is: %w", err)
	}
	if info.Size() < from { // another run's
		lines, from = nil, 0
	}
	text := make([]byte, min(info.Size()-from, mostProgress))
	n, _ := file.ReadAt(text, from)
	text = text[:bytes.LastIndexByte(text[:n], '\n')+1]
	for line := range bytes.Lines(text) {
		var p Progress
		if json.Unmarshal(line, &p) != nil {
			continue
		}
		if k := len(lines); k > 0 && lines[k-1].Record == nil { // only the newest of those matters
			lines = lines[:k-1]
		}
		for k := len(lines); k > 0 && p.Record != nil && lines[k-1].Record != nil && lines[k-1].Record.Round >= p.Record.Round; k-- {
			lines = lines[:k-1]
		}
		lines = append(lines, p)
	}
	return lines, from + int64(len(text)), nil
}

// mostProgress is how many bytes are taken up at once.
const mostProgress = 64 << 20

// spread is half the width of the 95 % interval of the mean loss over clients.
func (j *clientJudge) spread() float64 {
	_, half := metrics.Spread(j.losses[:j.jobs])
	return half
}

// spread is half the width of the 95 % interval of the loss over participants, each of
// which counts by its held-out examples: what it moves the figure by is taken for linear.
func (j *ownJudge) spread() float64 {
	loss, total := 0.0, 0.0
	for i, held := range j.held {
		loss, total = loss+float64(held.Len())*j.losses[i], total+float64(held.Len())
	}
	moves := make([]float64, len(j.held))
	for i, held := range j.held {
		moves[i] = float64(len(moves)) * float64(held.Len()) / total * (j.losses[i] - loss/total)
	}
	_, half := metrics.Spread(moves)
	return half
}
