// Package progress shows on a terminal how far work has come.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Bar shows how far work has come: a bar on a terminal, a line every few
// seconds elsewhere. It is safe for concurrent use.
type Bar struct {
	mu       sync.Mutex
	done     bool
	w        io.Writer
	what     string
	total    int
	terminal bool
	every    time.Duration
	shown    time.Time
	said     string // by Say
	now      func() time.Time
}

// IsTerminal says whether w is a person's screen.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// New counts up to total on w.
func New(w io.Writer, terminal bool, what string, total int) *Bar {
	p := &Bar{w: w, what: what, total: total, terminal: terminal, every: 5 * time.Second, now: time.Now}
	if terminal {
		p.every = 100 * time.Millisecond
	}
	p.shown = p.now()
	return p
}

// Tick says how many are done, and something about them.
func (p *Bar) Tick(done int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick(done, note)
}

func (p *Bar) tick(done int, note string) {
	words := fmt.Sprintf("%d/%d %s", done, p.total, note)
	if !p.terminal {
		words = fmt.Sprintf("%d of at most %d, %s", done, p.total, note)
	}
	p.show(float64(done)/float64(max(1, p.total)), words)
}

const barWidth = 24

// Show says, in words of the caller's, where the work is, and which share of it is done.
// It may be called as often as one likes: most calls show nothing.
func (p *Bar) Show(share float64, words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(share, words)
}

func (p *Bar) show(share float64, words string) {
	t := p.now()
	if t.Sub(p.shown) < p.every {
		return
	}
	p.shown = t
	filled := int(barWidth * max(0, min(1, share)))
	p.write(fmt.Sprintf("[%s%s] ", strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled)), words)
}

// Say shows words at once, and once.
func (p *Bar) Say(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if words != p.said {
		p.said = words
		p.write("", words)
	}
}

func (p *Bar) write(bar, words string) {
	switch {
	case p.done:
	case p.terminal:
		fmt.Fprintf(p.w, "\r\x1b[K%s %s%s", p.what, bar, words)
	default:
		fmt.Fprintf(p.w, "%s: %s\n", p.what, words)
	}
}

// Done clears the bar, which shows nothing more.
func (p *Bar) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Of is Tick for work whose total grows as it is found.
func (p *Bar) Of(done, total int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
	p.tick(done, note)
}
