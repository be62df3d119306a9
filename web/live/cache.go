package live

import (
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/sim"
)

// cache keeps what was made of files until they change.
type cache struct {
	mu      sync.Mutex
	files   map[string]*kept
	weight  int64
	clock   int64
	courses map[string]*course
}

func newCache() cache { return cache{files: map[string]*kept{}, courses: map[string]*course{}} }

// kept is what was made of one file.
type kept struct {
	modified     time.Time
	size, weight int64
	used         int64
	value        any
	err          error
}

const (
	mostKept = 64 << 20  // bytes of files whose content is kept
	mostRead = 512 << 20 // bytes of one file
	aLine    = 4 << 10   // what a few figures of a file weigh
)

// load is what parse makes of a thing's file. Small says that little of the file is kept. A
// file that is being replaced is read whole, before or after.
func load[T any](f *Folder, t thing, name, use string, small bool, parse func(text []byte) (T, error)) (T, error) {
	full := path.Join(t.id, name)
	var none T
	open, err := f.root.Open(full)
	if err != nil {
		return none, fmt.Errorf("%s: %w", full, err)
	}
	defer open.Close()
	info, err := open.Stat()
	if err != nil {
		return none, fmt.Errorf("%s: %w", full, err)
	}
	c := &f.loaded
	c.mu.Lock()
	c.clock++
	k := c.files[use+full]
	if k != nil && k.modified.Equal(info.ModTime()) && k.size == info.Size() {
		k.used = c.clock
		c.mu.Unlock()
		value, _ := k.value.(T)
		return value, k.err
	}
	c.mu.Unlock()
	k = &kept{modified: info.ModTime(), size: info.Size(), weight: info.Size()}
	if small {
		k.weight = aLine
	}
	text, err := io.ReadAll(io.LimitReader(open, mostRead))
	value := none
	if err == nil {
		value, err = parse(text)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", full, err)
	}
	k.value, k.err = value, err
	c.keep(use+full, k)
	return value, err
}

// keep puts something in, and what was not used for longest out.
func (c *cache) keep(key string, k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.files[key]; old != nil {
		c.weight -= old.weight
	}
	k.used = c.clock
	c.files[key] = k
	for c.weight += k.weight; c.weight > mostKept && len(c.files) > 1; {
		oldest := ""
		for name, one := range c.files {
			if name != key && (oldest == "" || one.used < c.files[oldest].used) {
				oldest = name
			}
		}
		c.weight -= c.files[oldest].weight
		delete(c.files, oldest)
	}
}

// course is how far a run that goes on has come: what was read of its file so far.
type course struct {
	lines []sim.Progress
	next  int64
}

// mostCourses is of how many runs lines are kept.
const mostCourses = 100

// progress is what a run that goes on tells of itself; nothing: not yet.
func (f *Folder) progress(folder string) []sim.Progress {
	file, err := f.root.Open(path.Join(folder, sim.ProgressFile))
	c := &f.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.courses, folder)
		return nil
	}
	defer file.Close()
	one := c.courses[folder]
	if one == nil {
		one = &course{}
		if len(c.courses) >= mostCourses {
			clear(c.courses)
		}
		c.courses[folder] = one
	}
	if one.lines, one.next, err = sim.ReadProgress(file, one.next, one.lines); err != nil {
		return nil
	}
	return append([]sim.Progress{}, one.lines...)
}
