package trainer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// A frame is a prefix of 16 bytes (magic, length of the header, length of the
// values in bytes; both little-endian), a JSON header and float32 values,
// little-endian: docs/trainer.md.
const (
	magic      = "CTR1"
	prefixSize = 16
	maxHeader  = 64 << 10
	pieceSize  = 64 << 10 // values are converted in pieces of so many bytes
)

// protocol is the version that both sides name in their first frame.
const protocol = 1

// request is a header that we send.
type request struct {
	Op         string  `json:"op"`
	ID         uint64  `json:"id"`
	Protocol   int     `json:"protocol,omitempty"`
	Parameters int     `json:"parameters,omitempty"`
	Epochs     int     `json:"epochs,omitempty"`
	Step       float64 `json:"step,omitempty"`
	Batch      int     `json:"batch,omitempty"`
	Loss       string  `json:"loss,omitempty"`
	Examples   []int   `json:"examples,omitempty"`
}

// answer is a header that we are sent.
type answer struct {
	ID         uint64   `json:"id"`
	Error      string   `json:"error"`
	Protocol   int      `json:"protocol"`
	Parameters int      `json:"parameters"`
	Examples   int      `json:"examples"`
	Loss       *float64 `json:"loss"`
	Wrong      int      `json:"wrong"`
}

// writeFrame sends a header and values. piece is memory for one piece.
func writeFrame(w io.Writer, q request, values []float64, piece []byte) error {
	header, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("write the %s request: %w", q.Op, err)
	}
	prefix := append(make([]byte, 0, prefixSize+len(header)), magic...)
	prefix = binary.LittleEndian.AppendUint32(prefix, uint32(len(header)))
	prefix = binary.LittleEndian.AppendUint64(prefix, 4*uint64(len(values)))
	if _, err := w.Write(append(prefix, header...)); err != nil {
		return err
	}
	for len(values) > 0 {
		some := values[:min(len(values), pieceSize/4)]
		values = values[len(some):]
		piece = piece[:0]
		for _, v := range some {
			f := float32(v)
			if math.IsInf(float64(f), 0) || f != f {
				return fmt.Errorf("%w: the value %v does not fit a float32", errOurs, v)
			}
			piece = binary.LittleEndian.AppendUint32(piece, math.Float32bits(f))
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

var (
	errOurs  = errors.New("model")            // faults that are not the child's
	errEnded = errors.New("its output ended") // the child is about to end, too
)

// readFrame reads a frame whose values fill dst exactly, unless the header reports
// an error or the size is wrong. What is not expected is refused before it is read.
// Values that are not finite are refused, unless they are of single examples, whose
// fault must not show in what becomes of the others.
func readFrame(r io.Reader, id uint64, dst []float64, finite bool, piece []byte) (answer, error) {
	a, size, err := readHeader(r, id)
	switch {
	case err != nil:
		return a, err
	case a.Error != "" && size == 0:
		return a, nil
	case size != 4*uint64(len(dst)):
		return a, fmt.Errorf("it announced %d bytes of values, expected are %d (%d float32)", size, 4*len(dst), len(dst))
	}
	return a, readValues(r, dst, finite, piece)
}

func readHeader(r io.Reader, id uint64) (a answer, size uint64, err error) {
	var prefix [prefixSize]byte
	if n, err := io.ReadFull(r, prefix[:]); err != nil {
		if n > 0 && !bytes.HasPrefix(prefix[:n], []byte(magic)[:min(n, len(magic))]) {
			return a, 0, notAFrame(prefix[:n])
		}
		return a, 0, closedEarly("the frame's prefix", err)
	}
	if string(prefix[:4]) != magic {
		return a, 0, notAFrame(prefix[:])
	}
	length := binary.LittleEndian.Uint32(prefix[4:])
	if length > maxHeader {
		return a, 0, fmt.Errorf("its header has %d bytes; allowed: up to %d", length, maxHeader)
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(r, header); err != nil {
		return a, 0, closedEarly("the header", err)
	}
	dec := json.NewDecoder(bytes.NewReader(header))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return answer{}, 0, fmt.Errorf("its header is not what the protocol allows: %w", err)
	}
	if dec.More() {
		return answer{}, 0, errors.New("its header holds more than one JSON object")
	}
	if a.ID != id {
		return answer{}, 0, fmt.Errorf("it answered request %d, expected is %d", a.ID, id)
	}
	return a, binary.LittleEndian.Uint64(prefix[8:]), nil
}

func readValues(r io.Reader, dst []float64, finite bool, piece []byte) error {
	for done := 0; done < len(dst); {
		some := piece[:4*min(len(dst)-done, pieceSize/4)]
		if _, err := io.ReadFull(r, some); err != nil {
			return closedEarly(fmt.Sprintf("the values, of which %d of %d had come", done, len(dst)), err)
		}
		for ; len(some) > 0; some = some[4:] {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(some)))
			if finite && (math.IsNaN(v) || math.IsInf(v, 0)) {
				return fmt.Errorf("value %d is %v; allowed: finite numbers", done, v)
			}
			dst[done] = v
			done++
		}
	}
	return nil
}

func notAFrame(begin []byte) error {
	return fmt.Errorf("it wrote %q to its standard output, which is for frames only; print to standard error", begin)
}

func closedEarly(where string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w within %s", errEnded, where)
	}
	return fmt.Errorf("reading %s: %w", where, err)
}
