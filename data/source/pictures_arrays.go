package source

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/data"
)

// arrayFaults collects what is wrong with one archive: of many alike only some are listed.
type arrayFaults struct {
	path   string
	listed pictureFaults
	more   int
}

func (f *arrayFaults) add(format string, args ...any) {
	if len(f.listed) >= mostFaultsFile {
		f.more++
		return
	}
	f.listed.add(f.path, fmt.Errorf(format, args...))
}

func (f *arrayFaults) all() pictureFaults {
	if f.more > 0 {
		f.listed.add(f.path, fmt.Errorf("and %d faults more", f.more))
	}
	return f.listed
}

// takePicture takes a picture's pixels in the public form, which are valid until it
// returns, and its label: a place in the list of classes, 0 where nobody asks for it.
type takePicture func(pixels []byte, label int) error

// readArchive reads a client's npz file or idx pair, picture after picture. It changes
// nothing in the reader: several run at the same time. Who takes pictures and returns an
// error ends it there; the faults are then of no use.
func (r *pictureReader) readArchive(part pictureClient, take takePicture) pictureFaults {
	faults := &arrayFaults{path: part.archive}
	n := 0
	count := func(pixels []byte, label int) error {
		n++
		return take(pixels, label)
	}
	if !strings.HasSuffix(part.archive, ".npz") {
		r.readIDX(part.archive, part.labels, faults, count)
	} else if err := r.openNPZ(part.archive, faults, count); err != nil {
		faults.add("%w", withoutPath(err))
	}
	if n == 0 && len(faults.listed) == 0 {
		faults.add("holds no picture; remove the file, or put a client's pictures into it")
	}
	return faults.all()
}

// labels are those of an archive's pictures, in their order.
type labels []int

// add adds the label of the next picture, which is a place in data.classes.
func (l *labels) add(label int64, classes int, faults *arrayFaults) {
	if label < 0 || label >= int64(classes) {
		faults.add("picture %d has label %d; allowed: 0 to %d, the places in data.classes", len(*l), label, classes-1)
		label = 0
	}
	*l = append(*l, int(label))
}

// of is a picture's label; 0 where there is none, which is a fault or nobody's question.
func (l labels) of(picture int) int {
	if picture < len(l) {
		return l[picture]
	}
	return 0
}

// arrayShape is a store of pictures as an archive has it.
type arrayShape struct{ n, height, width, channels int }

// shapeOf reads dimensions: number, height, width and, if there is a fourth, channels.
func (r *pictureReader) shapeOf(dims []int) (arrayShape, error) {
	if len(dims) == 3 {
		dims = append(slices.Clone(dims), 1)
	}
	if len(dims) != 4 || dims[3] != 1 && dims[3] != 3 {
		return arrayShape{}, fmt.Errorf("pictures have the shape %v; allowed: number, height, width, and then perhaps channels, 1 or 3", dims)
	}
	if err := checkSide(dims[1], dims[2]); err != nil {
		return arrayShape{}, fmt.Errorf("every picture %w", err)
	}
	return arrayShape{dims[0], dims[1], dims[2], dims[3]}, r.fits(dims[0])
}

// eachPicture scales n pictures, whose lines read gives one after another, until it fails.
func (r *pictureReader) eachPicture(s arrayShape, of labels, take takePicture, read func(picture, y int, line []byte) error) (err error) {
	scale, raw := newScaler(s.height, s.width, r), make([]byte, s.width*s.channels)
	one := make([]byte, r.size())
	for i := 0; i < s.n && err == nil; i++ {
		scale.scale(one, func(y int, out []byte) {
			if err == nil {
				err = read(i, y, raw)
				setChannels(out, r.channels, raw, s.channels)
			}
		})
		if err == nil {
			err = take(one, of.of(i))
		}
	}
	return err
}

// readIDX reads a pair of idx files, or the pictures alone.
func (r *pictureReader) readIDX(images, labelled string, faults *arrayFaults, take takePicture) {
	var shape []int
	var values []byte
	open := func(path string, read func() error) {
		file, err := openRegular(path)
		if err == nil {
			file.Close()
			err = read()
		}
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without the path, which stands before it already
		}
		if err != nil {
			faults.listed.add(path, err)
		}
	}
	var x *data.IDX
	open(images, func() (err error) {
		x, err = data.OpenIDX(images)
		return err
	})
	if x != nil {
		defer x.Close()
	}
	if !r.unlabelled {
		open(labelled, func() (err error) {
			shape, values, err = data.ReadIDXFile(labelled)
			return err
		})
	}
	if len(faults.listed) > 0 {
		return
	}
	s, err := r.shapeOf(x.Dims)
	switch {
	case err != nil:
		faults.add("%w", err)
		return
	case !r.unlabelled && (len(shape) != 1 || shape[0] != s.n):
		faults.add("pictures of the shape %v, but labels of the shape %v in %s; allowed: a label a picture", x.Dims, shape, labelled)
		return
	}
	var own labels
	for _, v := range values {
		own.add(int64(v), len(r.classes), faults)
	}
	err = r.eachPicture(s, own, take, func(_, _ int, line []byte) error { return x.Next(line) })
	if err == nil {
		err = x.End()
	}
	if err != nil {
		faults.add("%w", err)
	}
}

// openNPZ reads an npz file, NumPy's archive of arrays.
func (r *pictureReader) openNPZ(path string, faults *arrayFaults, take takePicture) error {
	file, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return r.readNPZ(file, info.Size(), faults, take)
}

func (r *pictureReader) readNPZ(in io.ReaderAt, size int64, faults *arrayFaults, take takePicture) error {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return fmt.Errorf("is no npz file: %w", err)
	}
	x, errX := memberOf(z, "x", "images")
	var y *zip.File
	var errY error
	if !r.unlabelled {
		y, errY = memberOf(z, "y", "labels")
	}
	if err := errors.Join(errX, errY); err != nil {
		return err
	}
	var own labels
	if y != nil {
		if own, errY = r.readLabels(y, faults); errY != nil {
			faults.add("array %s: %w", y.Name, errY)
		}
	}
	n, errX := r.readImages(x, own, faults, take)
	switch {
	case errX != nil:
		faults.add("array %s: %w", x.Name, errX)
	case y != nil && errY == nil && n != len(own):
		faults.add("has %d pictures and %d labels; allowed: a label a picture", n, len(own))
	}
	return nil
}

// memberOf is the archive's one array of several names that it may have.
func memberOf(z *zip.Reader, names ...string) (*zip.File, error) {
	var found []*zip.File
	for _, f := range z.File {
		if slices.Contains(names, strings.TrimSuffix(f.Name, ".npy")) {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("has %d arrays named %s; allowed: one", len(found), strings.Join(names, " or "))
	}
	return found[0], nil
}

// readLabels reads an array of whole numbers, of the shape (n) or (n, 1).
func (r *pictureReader) readLabels(member *zip.File, faults *arrayFaults) (own labels, err error) {
	a, err := openArray(member)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if len(a.shape) == 2 && a.shape[1] == 1 {
		a.shape = a.shape[:1]
	}
	if len(a.shape) != 1 || a.kind != 'i' && a.kind != 'u' {
		return nil, fmt.Errorf("labels have the type %q and the shape %v; allowed: whole numbers, one a picture", a.descr, a.shape)
	}
	if err := r.fits(a.shape[0]); err != nil {
		return nil, err
	}
	value := make([]byte, a.bytes)
	for range a.shape[0] {
		if _, err := io.ReadFull(a, value); err != nil {
			return nil, fmt.Errorf("is cut: %w", err)
		}
		own.add(a.whole(value), len(r.classes), faults)
	}
	return own, a.end()
}

// readImages reads an array of bytes, or of floats from 0 to 1, and says how many pictures
// it has.
func (r *pictureReader) readImages(member *zip.File, own labels, faults *arrayFaults, take takePicture) (n int, err error) {
	a, err := openArray(member)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	if !(a.kind == 'f' || a.kind == 'u' && a.bytes == 1) {
		return 0, fmt.Errorf("pictures have the type %q; allowed: uint8 (0 to 255), float32 and float64 (0 to 1)", a.descr)
	}
	s, err := r.shapeOf(a.shape)
	if err != nil {
		return 0, err
	}
	raw, told := make([]byte, s.width*s.channels*a.bytes), -1
	err = r.eachPicture(s, own, take, func(i, y int, line []byte) error {
		if _, err := io.ReadFull(a, raw); err != nil {
			return fmt.Errorf("is cut in picture %d: %w", i, err)
		}
		if a.kind == 'u' {
			copy(line, raw)
			return nil
		}
		for j := range line {
			v := a.float(raw[j*a.bytes:])
			if !(v >= 0 && v <= 1) {
				if told != i {
					faults.add("picture %d has the value %v in row %d, column %d; allowed: floats from 0 to 1, or uint8", i, v, y, j/s.channels)
				}
				told, v = i, 0
			}
			line[j] = byte(float64(v*255) + 0.5) // rounded here, not fused into one operation
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return s.n, a.end()
}

// whole is a whole number of the array; one that int64 cannot hold is the largest.
func (a *array) whole(b []byte) int64 {
	var v uint64
	switch a.bytes {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	if a.kind == 'u' {
		return int64(min(v, math.MaxInt64))
	}
	shift := 64 - 8*a.bytes
	return int64(v<<shift) >> shift
}

// float is a floating-point number of the array.
func (a *array) float(b []byte) float64 {
	if a.bytes == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
