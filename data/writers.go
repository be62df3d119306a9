package data

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	Register(Kind{
		Get: "UNIPEN train_r01_v07 (doi 10.5281/zenodo.1195803): unipen-by-writer/; MNIST with QMNIST's writers: mnist-by-writer/; LEAF's FEMNIST: femnist/*.json",
		DataKind: config.DataKind{
			Name:     "writers",
			Defaults: func(d *config.Data) { d.Set, d.Rotated = "unipen", 0.5 },
			Keys:     []string{"set", "rotated", "train_share", "ink"},
		},
		// The set decides about classes.
		Shape: func(config.Data) (Shape, bool) { return Shape{Height: 28, Width: 28}, false },
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			w, err := f.writerImages(d.Set)
			if err != nil {
				return nil, err
			}
			fed, err := w.Federation(WriterOptions{Seed: seed, HeldOut: 1 - d.TrainShare, Rotated: d.Rotated, InkLow: d.Ink != "light"})
			if err != nil {
				return nil, err
			}
			fed.Classes = w.Classes
			return fed, nil
		},
		Words: func(d config.Data) string {
			set := map[string]string{"unipen": "UNIPEN, 62 classes", "mnist": "MNIST, 10 classes", "femnist": "FEMNIST, 62 classes"}[d.Set]
			return fmt.Sprintf("Handwriting (%s): every writer is a client; a writer’s pictures are turned by 90 degrees with probability %v", set, d.Rotated)
		},
	})
}

// Writer is one person and the pictures of their hand.
type Writer struct {
	Name  string
	Index []int // of the pictures, ascending
}

// WriterImages are pictures of handwriting by writer: background 0, ink 255.
type WriterImages struct {
	Images  *Images
	Classes int
	Writers []Writer
	Report  LoadReport
}

// NewWriterImages checks that pictures, labels and writers fit: every picture
// belongs to exactly one writer, every writer has one, no name is there twice.
func NewWriterImages(im *Images, classes int, writers []Writer) (*WriterImages, error) {
	n := im.Len()
	if im.Height < 1 || im.Width < 1 || im.Height > maxIDX/im.Width {
		return nil, fmt.Errorf("pictures of %d by %d", im.Height, im.Width)
	}
	if size := im.Height * im.Width; n > maxIDX/size || len(im.Pixels) != n*size {
		return nil, fmt.Errorf("%d pixels for %d pictures of %d by %d", len(im.Pixels), n, im.Height, im.Width)
	}
	for i, l := range im.Labels {
		if l < 0 || l >= classes {
			return nil, fmt.Errorf("picture %d: label %d; allowed: 0 to %d", i, l, classes-1)
		}
	}
	owner := make([]int, n) // writer + 1
	names := make(map[string]bool, len(writers))
	for w, writer := range writers {
		if names[writer.Name] {
			return nil, fmt.Errorf("writer %q is there twice", writer.Name)
		}
		names[writer.Name] = true
		if len(writer.Index) == 0 {
			return nil, fmt.Errorf("writer %q has no picture", writer.Name)
		}
		for _, i := range writer.Index {
			if i < 0 || i >= n {
				return nil, fmt.Errorf("writer %q: picture %d; allowed: 0 to %d", writer.Name, i, n-1)
			}
			if owner[i] != 0 {
				return nil, fmt.Errorf("picture %d belongs to writer %q and to writer %q", i, writers[owner[i]-1].Name, writer.Name)
			}
			owner[i] = w + 1
		}
	}
	if i := slices.Index(owner, 0); i >= 0 {
		return nil, fmt.Errorf("picture %d belongs to no writer", i)
	}
	if len(writers) == 0 {
		return nil, fmt.Errorf("no writer and no picture")
	}
	return &WriterImages{Images: im, Classes: classes, Writers: writers}, nil
}

// WriterOptions say how writers become a federation.
type WriterOptions struct {
	Seed uint64
	// HeldOut is the share of writers that validate, rounded up to whole writers.
	HeldOut float64
	// Rotated is the probability that a writer's pictures are turned by 90 degrees
	// counter-clockwise, as rot_c ~ Bernoulli in paper 000; turned writers are group 1,
	// the others group 0.
	Rotated float64
	// InkLow stores background as 255 and ink as 0, as LEAF has it: value v
	// becomes 1-v. Without it a model can still invert the bytes as it reads them.
	InkLow bool
}

// Federation makes every writer a client. Rotation and polarity are applied once,
// to a copy of the pictures; w stays as it is.
func (w *WriterImages) Federation(o WriterOptions) (*Federation, error) {
	if !(o.HeldOut >= 0 && o.HeldOut < 1) {
		return nil, fmt.Errorf("writers: a held-out share of %v; allowed: 0 to below 1", o.HeldOut)
	}
	train, rest, err := splitKeyed(o.Seed, "data: writers held out", len(w.Writers), 1-o.HeldOut)
	if err != nil {
		return nil, fmt.Errorf("writers: %w", err)
	}
	turned, err := drawRotated(o.Seed, len(w.Writers), o.Rotated)
	if err != nil {
		return nil, err
	}
	im, err := w.render(turned, o.InkLow)
	if err != nil {
		return nil, err
	}
	clients := make([]Client, len(w.Writers))
	for i, writer := range w.Writers {
		clients[i] = Client{Pictures: Pictures{Images: im, Index: writer.Index}, Name: writer.Name}
		if turned[i] {
			clients[i].Group = 1
		}
	}
	return &Federation{Features: im.Height * im.Width, Train: those(clients, train), Validation: those(clients, rest)}, nil
}

// drawRotated draws the writers whose pictures are turned. A writer's coin is
// keyed by its number, so it does not depend on how many others there are.
func drawRotated(seed uint64, n int, share float64) ([]bool, error) {
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("writers: a rotated share of %v; allowed: 0 to 1", share)
	}
	turned := make([]bool, n)
	family := rng.NewFamily(seed, "data: rotated writers")
	var s rng.Stream
	for i := range turned {
		s.Key(&family, 0, i)
		turned[i] = s.Float64() < share
	}
	return turned, nil
}

// render copies the pictures, turns those of some writers, and inverts.
func (w *WriterImages) render(turned []bool, inkLow bool) (*Images, error) {
	im := &Images{Height: w.Images.Height, Width: w.Images.Width, Labels: w.Images.Labels}
	if !slices.Contains(turned, true) && !inkLow {
		im.Pixels = w.Images.Pixels
		return im, nil
	}
	im.Pixels = slices.Clone(w.Images.Pixels)
	for i, yes := range turned {
		if !yes {
			continue
		}
		if im.Height != im.Width {
			return nil, fmt.Errorf("writers: pictures of %d by %d cannot be turned by 90 degrees in place; they must be square", im.Height, im.Width)
		}
		for _, k := range w.Writers[i].Index {
			turn(im.picture(k), w.Images.picture(k), im.Width, 1)
		}
	}
	if inkLow {
		for i, b := range im.Pixels {
			im.Pixels[i] = 255 - b
		}
	}
	return im, nil
}

// writerImages reads a set of handwriting.
func (f *Folder) writerImages(set string) (*WriterImages, error) {
	switch set {
	case "mnist":
		return once(f, set, []string{"mnist", "mnist-by-writer"}, func(folder string) (*WriterImages, error) { return LoadMNISTWriters(folder, "train") })
	case "femnist":
		return once(f, set, []string{"femnist"}, func(folder string) (*WriterImages, error) { return LoadLEAF(filepath.Join(folder, "femnist")) })
	}
	return once(f, set, []string{"unipen-by-writer"}, LoadUNIPEN)
}
