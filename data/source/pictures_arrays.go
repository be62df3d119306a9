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

// readArchive reads a client's npz file or idx pair. It changes nothing in the reader:
// several run at the same time.
func (r *pictureReader) readArchive(part pictureClient) (*data.Images, pictureFaults) {
	faults := &arrayFaults{path: part.archive}
	im := r.store(0)
	if part.labels != "" {
		r.readIDX(im, part.archive, part.labels, faults)
	} else if err := r.openNPZ(im, part.archive, faults); err != nil {
		faults.add("%w", withoutPath(err))
	}
	if im.Len() == 0 && len(faults.listed) == 0 {
		faults.add("holds no picture; remove the file, or put a client's pictures into it")
	}
	return im, faults.all()
}

// addLabel adds the label of the next picture, which is a place in data.classes.
func (r *pictureReader) addLabel(im *data.Images, label int64, faults *arrayFaults) {
	if label < 0 || label >= int64(len(r.classes)) {
		faults.add("picture %d has label %d; allowed: 0 to %d, the places in data.classes", len(im.Labels), label, len(r.classes)-1)
		label = 0
	}
	im.Labels = append(im.Labels, int(label))
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

// addPictures adds n pictures, whose lines read gives one after another, until it fails.
// Memory is taken as they arrive.
func (r *pictureReader) addPictures(im *data.Images, s arrayShape, read func(picture, y int, line []byte) error) (err error) {
	scale, raw := newScaler(s.height, s.width, r), make([]byte, s.width*s.channels)
	one := make([]byte, r.size())
	for i := 0; i < s.n && err == nil; i++ {
		scale.scale(one, func(y int, out []byte) {
			if err == nil {
				err = read(i, y, raw)
				setChannels(out, r.channels, raw, s.channels)
			}
		})
		im.Pixels = append(im.Pixels, one...)
	}
	return err
}

// readIDX reads a pair of idx files.
func (r *pictureReader) readIDX(im *data.Images, images, labels string, faults *arrayFaults) {
	var dims, shape []int
	var pixels, values []byte
	for _, f := range []struct {
		path   string
		dims   *[]int
		values *[]byte
	}{{images, &dims, &pixels}, {labels, &shape, &values}} {
		file, err := openRegular(f.path)
		if err == nil {
			file.Close()
			*f.dims, *f.values, err = data.ReadIDXFile(f.path)
		}
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without the path, which stands before it already
		}
		if err != nil {
			faults.listed.add(f.path, err)
		}
	}
	if len(faults.listed) > 0 {
		return
	}
	s, err := r.shapeOf(dims)
	switch {
	case err != nil:
		faults.add("%w", err)
		return
	case len(shape) != 1 || shape[0] != s.n:
		faults.add("pictures of the shape %v, but labels of the shape %v in %s; allowed: a label a picture", dims, shape, labels)
		return
	}
	for _, v := range values {
		r.addLabel(im, int64(v), faults)
	}
	wide := s.width * s.channels
	_ = r.addPictures(im, s, func(i, y int, line []byte) error {
		copy(line, pixels[(i*s.height+y)*wide:])
		return nil
	})
}

// openNPZ reads an npz file, NumPy's archive of arrays.
func (r *pictureReader) openNPZ(im *data.Images, path string, faults *arrayFaults) error {
	file, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return r.readNPZ(im, file, info.Size(), faults)
}

func (r *pictureReader) readNPZ(im *data.Images, in io.ReaderAt, size int64, faults *arrayFaults) error {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return fmt.Errorf("is no npz file: %w", err)
	}
	x, errX := memberOf(z, "x", "images")
	y, errY := memberOf(z, "y", "labels")
	if err := errors.Join(errX, errY); err != nil {
		return err
	}
	if errY = r.readLabels(im, y, faults); errY != nil {
		faults.add("array %s: %w", y.Name, errY)
	}
	n, errX := r.readImages(im, x, faults)
	switch {
	case errX != nil:
		faults.add("array %s: %w", x.Name, errX)
	case errY == nil && n != len(im.Labels):
		faults.add("has %d pictures and %d labels; allowed: a label a picture", n, len(im.Labels))
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
func (r *pictureReader) readLabels(im *data.Images, member *zip.File, faults *arrayFaults) error {
	a, err := openArray(member)
	if err != nil {
		return err
	}
	defer a.Close()
	if len(a.shape) == 2 && a.shape[1] == 1 {
		a.shape = a.shape[:1]
	}
	if len(a.shape) != 1 || a.kind != 'i' && a.kind != 'u' {
		return fmt.Errorf("labels have the type %q and the shape %v; allowed: whole numbers, one a picture", a.descr, a.shape)
	}
	if err := r.fits(a.shape[0]); err != nil {
		return err
	}
	value := make([]byte, a.bytes)
	for range a.shape[0] {
		if _, err := io.ReadFull(a, value); err != nil {
			return fmt.Errorf("is cut: %w", err)
		}
		r.addLabel(im, a.whole(value), faults)
	}
	return a.end()
}

// readImages reads an array of bytes, or of floats from 0 to 1, and says how many pictures
// it has.
func (r *pictureReader) readImages(im *data.Images, member *zip.File, faults *arrayFaults) (n int, err error) {
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
	err = r.addPictures(im, s, func(i, y int, line []byte) error {
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
