package data

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Rotated and masked MNIST, paper 002, appendix B.1: pictures are shuffled and
// shared evenly among silos; the silos of one group turn theirs by the same angle;
// every silo lays one mask of white patches over all of its own.
const (
	digitClasses = 10
	rotations    = 4
	white        = 255
)

func init() {
	Register(Kind{
		Get: idxFiles("MNIST", "mnist"),
		DataKind: SiloKind("rotated-mnist", func(r *config.Run) {
			classified(r, "cross-silo-mnist")
			r.Data.Silos, r.Data.MaskSize = 40, 2
			r.Privacy.Delta = 1e-7
		}, "silos", "mask", "mask_size", "train_limit"),
		Check: func(c *config.Checker, d config.Data) {
			c.Require(d.Silos%rotations == 0, "data.silos", "is %d; allowed: a multiple of %d, the number of rotations", d.Silos, rotations)
		},
		Shape: wholeShape(Shape{Classes: digitClasses, Height: 28, Width: 28, Channels: 1}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			p, err := loadIDXParts(f, "mnist")
			if err != nil {
				return nil, err
			}
			return RotatedSilos(p.train, p.test, RotatedOptions{Seed: seed, Silos: d.Silos, Mask: d.Mask, MaskSize: d.MaskSize, TrainLimit: d.TrainLimit})
		},
		Words: func(config.Data) string {
			return "MNIST’s digits, shared among silos of which every quarter turns its own by another angle"
		},
	})
}

// RotatedOptions say how MNIST becomes a federation of silos.
type RotatedOptions struct {
	Seed  uint64
	Silos int
	// Mask is the probability of a patch at every place of the mask; MaskSize is a
	// patch's side.
	Mask       float64
	MaskSize   int
	TrainLimit int
}

// RotatedSilos shares the pictures of both parts of MNIST among silos. Silo k is in
// group k*4/Silos, whose pictures are turned by so many quarters, counter-clockwise.
func RotatedSilos(train, test *Images, o RotatedOptions) (*Federation, error) {
	switch {
	case o.Silos < 1 || o.Silos%rotations != 0 || o.Silos > train.Len() || o.Silos > test.Len():
		return nil, fmt.Errorf("rotated MNIST: %d silos; allowed: a multiple of %d, at most a silo a picture (%d, %d)", o.Silos, rotations, train.Len(), test.Len())
	case !(o.Mask >= 0 && o.Mask <= 1) || o.MaskSize < 1 || o.MaskSize > train.Height:
		return nil, fmt.Errorf("rotated MNIST: patches of %d pixels with probability %v; allowed: 1 to %d, and 0 to 1", o.MaskSize, o.Mask, train.Height)
	case train.Height != train.Width || test.Height != train.Height || test.Width != train.Width:
		return nil, fmt.Errorf("rotated MNIST: pictures of %d by %d and of %d by %d; quarter turns need squares of one size", train.Height, train.Width, test.Height, test.Width)
	}
	report := LoadReport{Source: "mnist", Rows: train.Len() + test.Len()}
	silos := newPictureSilos(digitClasses, o.TrainLimit, report)
	family := rng.NewFamily(o.Seed, "rotated mnist")
	parts := [2]*Images{train, test}
	var order, sizes = [2][]int{}, [2]int{}
	var turned [2]*Images
	for p, im := range parts {
		order[p] = keyedOrder(&family, p, im.Len())
		sizes[p] = im.Len() / o.Silos
		if over := im.Len() % o.Silos; over > 0 {
			silos.f.Report.leaveOutMany(leftUneven, over)
		}
		turned[p] = &Images{Height: im.Height, Width: im.Width, Pixels: make([]byte, len(im.Pixels)), Labels: im.Labels}
	}
	for k := range o.Silos {
		group := k * rotations / o.Silos
		mask := drawMask(family.Stream(2, k), train.Height, o)
		var held [2]Pictures
		for p, im := range parts {
			index := order[p][k*sizes[p] : (k+1)*sizes[p] : (k+1)*sizes[p]]
			for _, i := range index {
				turn(turned[p].picture(i), im.picture(i), im.Height, group)
				lay(turned[p].picture(i), mask)
			}
			held[p] = Pictures{Images: turned[p], Index: index}
		}
		name := fmt.Sprintf("silo %d", k)
		silos.add(Client{Pictures: held[0], Group: group, Name: name, Held: &Client{Pictures: held[1], Group: group, Name: name}})
	}
	silos.keep()
	return silos.done()
}

// drawMask marks the pixels that a silo's patches cover.
func drawMask(s *rng.Stream, side int, o RotatedOptions) []bool {
	mask := make([]bool, side*side)
	if o.Mask == 0 {
		return mask
	}
	for y := 0; y < side; y += o.MaskSize {
		for x := 0; x < side; x += o.MaskSize {
			if s.Float64() >= o.Mask {
				continue
			}
			for dy := y; dy < min(side, y+o.MaskSize); dy++ {
				for dx := x; dx < min(side, x+o.MaskSize); dx++ {
					mask[dy*side+dx] = true
				}
			}
		}
	}
	return mask
}

// lay paints what the mask covers white.
func lay(picture []byte, mask []bool) {
	for i, covered := range mask {
		if covered {
			picture[i] = white
		}
	}
}
