package cuda

import (
	"errors"
	"os"
	"time"
)

// How long a helper is waited for. Tests have others.
var (
	// greetWithin is until it says who it is: the driver readies a device in a second, or in some ten
	// where nothing keeps the driver loaded and it finds many devices.
	greetWithin = time.Minute
	// answerWithin is until it answers. Kernels that the driver sees for the first time are compiled for
	// half a minute, longer on a slow processor, and under a sanitizer a step may take minutes; nothing
	// takes as long as this but a device that hangs.
	answerWithin = 30 * time.Minute
	// leaveWithin is until it ends a conversation, or itself with the last one, which is when tools that
	// it runs under write what they found.
	leaveWithin = time.Minute
	// lostWithin is the same once the device is lost, or the helper: there is nothing to wait for.
	lostWithin = 10 * time.Second
)

const (
	killWithin  = 5 * time.Second // until a killed one is no more, unless the driver holds it
	wordsWithin = time.Second     // until one that has hung up has ended, and its last words are here
)

// patient reads what a helper says, and waits for it so long at the most.
type patient struct {
	f    *os.File
	most time.Duration
}

// Read waits a minute at a time: where both programs are stopped for hours, and go on, as a shell has them
// do, that counts as one minute.
func (p *patient) Read(to []byte) (int, error) {
	for waited := time.Duration(0); ; {
		some := min(p.most-waited, time.Minute)
		if err := p.f.SetReadDeadline(time.Now().Add(some)); err != nil {
			return 0, err
		}
		n, err := p.f.Read(to)
		if waited += some; !errors.Is(err, os.ErrDeadlineExceeded) || waited >= p.most {
			return n, err
		}
	}
}
