// Package progress shows on a terminal how far work has come.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Bar shows how far work has come: a bar on a terminal, a line every few
// seconds elsewhere.
type Bar struct {
	w        io.Writer
	what     string
	total    int
	terminal bool
	every    time.Duration
	shown    time.Time
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
	if t := p.now(); t.Sub(p.shown) >= p.every {
		p.shown = t
		p.show(done, note)
	}
}

const barWidth = 24

func (p *Bar) show(done int, note string) {
	if !p.terminal {
		fmt.Fprintf(p.w, "%s: %d of at most %d, %s\n", p.what, done, p.total, note)
		return
	}
	filled := min(barWidth, barWidth*done/max(1, p.total))
	fmt.Fprintf(p.w, "\r\x1b[K%s [%s%s] %d/%d %s", p.what,
		strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), done, p.total, note)
}

// Done clears the bar.
func (p *Bar) Done() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Of is Tick for work whose total grows as it is found.
func (p *Bar) Of(done, total int, note string) {
	p.total = total
	p.Tick(done, note)
}
