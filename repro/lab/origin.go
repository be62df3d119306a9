package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/model"
)

// Origin is what a cell was computed by: its bits are those of a kernel.
type Origin struct {
	Kernel string `json:"kernel"`
	// Devices are those that its runs asked for, each once; none: they asked for none.
	Devices []compute.Used `json:"devices,omitempty"`
}

// String is where the cell was computed.
func (o Origin) String() (text string) {
	if len(o.Devices) == 0 {
		return "the processor, kernel " + o.Kernel
	}
	for i, d := range o.Devices {
		if i > 0 {
			text += "; and "
		}
		text += d.String()
	}
	return text
}

// sources gathers what a cell's runs were computed by.
type sources struct {
	mu     sync.Mutex
	origin Origin
}

// Note takes up what computed a part of the cell that is being made, outside its own runs.
func (l *Lab) Note(used *compute.Used) {
	if l.sources != nil && used != nil {
		l.sources.note(used.Kernel(), used)
	}
}

// note takes up what one run was computed by.
func (s *sources) note(kernel string, used *compute.Used) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if used != nil && !slices.Contains(s.origin.Devices, *used) {
		if s.origin.Devices = append(s.origin.Devices, *used); used.Name != "" {
			s.origin.Kernel = kernel // before the processor's, which others of its runs may have
		}
	}
}

// cell is the result of a cell with its origin, as it is stored and sent.
type cell struct {
	Value json.RawMessage `json:"value"`
	Origin
}

var errNoValue = errors.New("a cell's result has no value")

// UnmarshalJSON refuses what is no such result.
func (c *cell) UnmarshalJSON(text []byte) error {
	type plain cell
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plain)(c)); err != nil {
		return err
	}
	if len(c.Value) == 0 {
		return errNoValue
	}
	return nil
}

// compute makes a cell with a lab of its own, which notes what computed it.
func (l *Lab) compute(of func(*Lab) (any, error)) (any, error) {
	own := &Lab{
		Options: l.Options, Context: l.Context, Folder: l.Folder, id: l.id, timed: l.timed, needs: l.needs,
		cells: l.cells, began: l.began, keep: l.keep, sources: &sources{origin: Origin{Kernel: model.Kernel()}},
	}
	value, err := of(own)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	return cell{text, own.sources.origin}, err
}

// noteOrigin counts a cell of the experiment's by what computed it.
func (l *Lab) noteOrigin(o Origin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.origins == nil {
		l.origins = map[string]int{}
	}
	l.origins[o.String()]++
}

// computedBy is what the experiment's cells were computed by, in words; nothing where all
// were by this process's processor.
func (l *Lab) computedBy() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onProcessor != "" {
		return []string{l.onProcessor}
	}
	here := Origin{Kernel: model.Kernel()}.String()
	if _, all := l.origins[here]; len(l.origins) == 0 || all && len(l.origins) == 1 {
		return nil
	}
	for _, by := range slices.Sorted(maps.Keys(l.origins)) {
		lines = append(lines, fmt.Sprintf("%d cells: %s", l.origins[by], by))
	}
	return lines
}
