package data

import (
	"bufio"
	"fmt"
	"image"
	imagedraw "image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
)

// CIFAR-10: pictures of 32 by 32 in three colours, ten classes.
const (
	cifarSide    = 32
	cifarPixels  = cifarSide * cifarSide
	cifarValues  = 3 * cifarPixels
	cifarClasses = 10
)

// cifarWhole is the folder that the official archive of the binary version unpacks
// to; its batches hold 10,000 pictures each.
const cifarWhole = "cifar-10-batches-bin"

// LoadCIFAR reads both parts: cifar10/cifar-10-batches-bin, all 60,000 pictures, or
// else the stored part, PNG files with their table of labels.
func LoadCIFAR(folder string) (train, test *Images, report LoadReport, err error) {
	base := filepath.Join(folder, "cifar10")
	if whole := filepath.Join(base, cifarWhole); isFolder(whole) {
		report.Source = whole
		train, test, err = loadCIFARBatches(whole)
	} else {
		report.Source = base
		report.Notes = []string{"a part of CIFAR-10: silos are smaller than paper 002's, and models of all of it less accurate than the field's"}
		train, test, err = loadCIFARPart(base)
	}
	if err == nil {
		report.Rows = train.Len() + test.Len()
	}
	return train, test, report, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func newCIFAR() *Images { return &Images{Height: cifarSide, Width: cifarSide, Channels: 3} }

// loadCIFARBatches reads the official binary files: a label byte, then the planes
// of red, green and blue.
func loadCIFARBatches(folder string) (train, test *Images, err error) {
	train, test = newCIFAR(), newCIFAR()
	for i := 1; i <= 5; i++ {
		if err := readCIFARBatch(train, filepath.Join(folder, fmt.Sprintf("data_batch_%d.bin", i))); err != nil {
			return nil, nil, err
		}
	}
	return train, test, readCIFARBatch(test, filepath.Join(folder, "test_batch.bin"))
}

func readCIFARBatch(im *Images, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("a data file is missing or cannot be read (docs/data.md says how to get it): %w", err)
	}
	defer f.Close()
	in, record := bufio.NewReader(f), make([]byte, 1+cifarValues)
	for n := 0; ; n++ {
		_, err := io.ReadFull(in, record)
		if err == io.EOF && n > 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: cut within picture %d: %w; fetch it again", path, n, err)
		}
		if record[0] >= cifarClasses {
			return fmt.Errorf("%s, picture %d: label %d; allowed: 0 to %d", path, n, record[0], cifarClasses-1)
		}
		im.Labels = append(im.Labels, int(record[0]))
		for i := range cifarPixels {
			im.Pixels = append(im.Pixels, record[1+i], record[1+cifarPixels+i], record[1+2*cifarPixels+i])
		}
	}
}

// loadCIFARPart reads the stored part: cifar10_labels.csv.gz names for every
// picture its file, its place in it and its label.
func loadCIFARPart(folder string) (train, test *Images, err error) {
	path := filepath.Join(folder, "cifar10_labels.csv.gz")
	r, done, err := openData(path)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	t, columns, err := openTable(path, r, "file", "row", "label")
	if err != nil {
		return nil, nil, err
	}
	train, test = newCIFAR(), newCIFAR()
	strips := map[string][]byte{}
	for row, err := range t.rows() {
		if err != nil {
			return nil, nil, err
		}
		name := row.cells[columns[0]]
		into := train
		switch {
		case matches("cifar10_train_?.png", name):
		case matches("cifar10_test_?.png", name):
			into = test
		default:
			return nil, nil, row.faultf(columns[0], "%s; allowed: cifar10_train_N.png, cifar10_test_N.png", shorten(name))
		}
		strip, read := strips[name]
		if !read {
			if strip, err = readStrip(filepath.Join(folder, name)); err != nil {
				return nil, nil, err
			}
			strips[name] = strip
		}
		if err := into.takeCIFAR(row, columns, strip); err != nil {
			return nil, nil, err
		}
	}
	if train.Len() == 0 || test.Len() == 0 {
		return nil, nil, fmt.Errorf("%s: %d pictures to train and %d to test", path, train.Len(), test.Len())
	}
	return train, test, nil
}

func matches(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok && err == nil
}

// takeCIFAR adds the picture of a row of the table of labels.
func (im *Images) takeCIFAR(r row, columns []int, strip []byte) error {
	at, err := r.integer(columns[1], 0, len(strip)/cifarValues-1)
	if err != nil {
		return err
	}
	label, err := r.integer(columns[2], 0, cifarClasses-1)
	if err != nil {
		return err
	}
	im.Labels = append(im.Labels, label)
	im.Pixels = append(im.Pixels, strip[at*cifarValues:(at+1)*cifarValues]...)
	return nil
}

// readPNG reads a picture.
func readPNG(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("a data file is missing or cannot be read (docs/data.md says how to get it): %w", err)
	}
	defer f.Close()
	decoded, err := png.Decode(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return decoded, nil
}

// readStrip reads a PNG of pictures one below another, as red, green and blue
// bytes.
func readStrip(path string) ([]byte, error) {
	decoded, err := readPNG(path)
	if err != nil {
		return nil, err
	}
	size := decoded.Bounds().Size()
	if size.X != cifarSide || size.Y%cifarSide != 0 {
		return nil, fmt.Errorf("%s: %d by %d pixels; wanted: pictures of 32 by 32, one below another", path, size.X, size.Y)
	}
	rgba, ok := decoded.(*image.RGBA)
	if !ok {
		rgba = image.NewRGBA(image.Rectangle{Max: size})
		imagedraw.Draw(rgba, rgba.Bounds(), decoded, decoded.Bounds().Min, imagedraw.Src)
	}
	out := make([]byte, 0, 3*size.X*size.Y)
	for y := range size.Y {
		line := rgba.Pix[y*rgba.Stride : y*rgba.Stride+4*size.X]
		for x := 0; x < len(line); x += 4 {
			out = append(out, line[x], line[x+1], line[x+2])
		}
	}
	return out, nil
}
