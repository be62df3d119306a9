package data

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
)

// unipenClasses are the digits, A to Z and a to z, in LEAF's order.
const unipenClasses = 62

// unipenSide is the height and width of a picture.
const unipenSide = 28

// LoadUNIPEN reads UNIPEN62 by writer from the folder of real data: the pictures,
// and the table of writers, with whose counts they must agree.
func LoadUNIPEN(folder string) (*WriterImages, error) {
	path := filepath.Join(folder, "unipen-by-writer", "unipen62_by_writer.bin.gz")
	r, done, err := openData(path)
	if err != nil {
		return nil, err
	}
	defer done()
	w, err := ReadWRT1(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w.Report.Source = path
	list := filepath.Join(folder, "unipen-by-writer", "writers.csv")
	in, done, err := openData(list)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := nameWriters(w, list, in); err != nil {
		return nil, err
	}
	return w, nil
}

// ReadWRT1 reads the format WRT1, little endian: "WRT1", n and the number of
// writers as uint32, n writers as uint16 (non-decreasing), n labels as bytes
// (below 62), n pictures of 28 by 28 bytes. Memory is taken as the data arrive.
func ReadWRT1(r io.Reader) (*WriterImages, error) {
	in := bufio.NewReader(r)
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, fmt.Errorf("wrt1: no header of 12 bytes: %w", err)
	}
	if string(head[:4]) != "WRT1" {
		return nil, fmt.Errorf("wrt1: the file begins with %q, not with WRT1", head[:4])
	}
	n, writers := int64(binary.LittleEndian.Uint32(head[4:])), int(binary.LittleEndian.Uint32(head[8:]))
	const size = unipenSide * unipenSide
	if n < 1 || n > maxIDX/size {
		return nil, fmt.Errorf("wrt1: the header says %d pictures; allowed: 1 to %d", n, maxIDX/size)
	}
	if writers < 1 || int64(writers) > n || writers > 1<<16 {
		return nil, fmt.Errorf("wrt1: the header says %d writers of %d pictures; allowed: 1 to %d", writers, n, min(n, 1<<16))
	}
	ids, err := readBlock(in, 2*n, "writers")
	if err != nil {
		return nil, err
	}
	labels, err := readBlock(in, n, "labels")
	if err != nil {
		return nil, err
	}
	pixels, err := readBlock(in, n*size, "pictures")
	if err != nil {
		return nil, err
	}
	switch _, err := in.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("wrt1: there are bytes after the %d pictures that the header says", n)
	case err != io.EOF:
		return nil, fmt.Errorf("wrt1: after the last picture: %w", err)
	}
	im := &Images{Height: unipenSide, Width: unipenSide, Pixels: pixels, Labels: make([]int, n)}
	list := make([]Writer, writers)
	before := 0
	for i := range im.Labels {
		id := int(binary.LittleEndian.Uint16(ids[2*i:]))
		if id < before || id >= writers {
			return nil, fmt.Errorf("wrt1: picture %d is of writer %d, after writer %d; allowed: %d to %d", i, id, before, before, writers-1)
		}
		before = id
		list[id].Index = append(list[id].Index, i)
		im.Labels[i] = int(labels[i])
	}
	for id := range list {
		list[id].Name = fmt.Sprint(id)
	}
	w, err := NewWriterImages(im, unipenClasses, list)
	if err != nil {
		return nil, fmt.Errorf("wrt1: %w", err)
	}
	w.Report.Rows, w.Report.Kept = int(n), int(n)
	return w, nil
}

// readBlock reads exactly size bytes.
func readBlock(r io.Reader, size int64, what string) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(size, 1<<20))) // a header may claim more than there is
	if got, err := io.CopyN(&b, r, size); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("wrt1: %d of %d bytes of %s: %w", got, size, what, err)
	}
	return b.Bytes(), nil
}

// nameWriters reads writers.csv: the set that each writer belongs to, and how
// many digits and letters it wrote, which must be what the pictures say.
func nameWriters(w *WriterImages, name string, r io.Reader) error {
	t, at, err := openTable(name, r, "writer", "unipen_set", "samples", "digits", "upper", "lower")
	if err != nil {
		return err
	}
	for id := range w.Writers {
		row, err := t.next()
		if err == io.EOF {
			return fmt.Errorf("%s: %d writers, the pictures are of %d", name, id, len(w.Writers))
		}
		if err != nil {
			return err
		}
		if _, err := row.integer(at[0], id, id); err != nil {
			return err
		}
		counts := [4]int{len(w.Writers[id].Index)} // all, digits, upper, lower
		for _, i := range w.Writers[id].Index {
			switch l := w.Images.Labels[i]; {
			case l < 10:
				counts[1]++
			case l < 36:
				counts[2]++
			default:
				counts[3]++
			}
		}
		for k, want := range counts {
			got, err := row.integer(at[2+k], 0, maxIDX)
			if err != nil {
				return err
			}
			if got != want {
				return row.faultf(at[2+k], "writer %d has %d there and %d among the pictures", id, got, want)
			}
		}
		w.Writers[id].Name = fmt.Sprintf("%s-%d", row.cells[at[1]], id)
	}
	if _, err := t.next(); err == nil {
		return t.faultf("", "one more writer than the %d of the pictures", len(w.Writers))
	} else if err != io.EOF {
		return err
	}
	return nil
}
