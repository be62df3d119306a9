package data

import (
	"fmt"
	"path/filepath"
)

// Images are pictures with labels or, if Targets is set, with values; pixels as
// bytes.
type Images struct {
	Height, Width int
	Channels      int    // innermost; 0: grey
	Pixels        []byte // one picture after another
	Labels        []int
	Targets       []float64
}

// Len is the number of pictures.
func (im *Images) Len() int { return max(len(im.Labels), len(im.Targets)) }

// Depth is the number of channels.
func (im *Images) Depth() int { return max(1, im.Channels) }

// picture is the pixels of picture i.
func (im *Images) picture(i int) []byte {
	n := im.Height * im.Width * im.Depth()
	return im.Pixels[i*n : (i+1)*n]
}

// turn writes a square picture, turned counter-clockwise by quarters, to dst.
func turn(dst, src []byte, side, quarters int) {
	// Where the first pixel comes from, and how far to go for one down, one across.
	start, down, across := 0, side, 1
	for range quarters {
		start, down, across = start+(side-1)*across, -across, down
	}
	for y := range side {
		at := start + y*down
		for x := range side {
			dst[y*side+x] = src[at]
			at += across
		}
	}
}

// LoadIDXImages reads part "train" or "t10k" of MNIST or Fashion-MNIST from the
// folder of real data.
func LoadIDXImages(folder, set, part string, classes int) (*Images, error) {
	base := filepath.Join(folder, set, part)
	dims, pixels, err := ReadIDXFile(base + "-images-idx3-ubyte.gz")
	if err != nil {
		return nil, err
	}
	shape, labels, err := ReadIDXFile(base + "-labels-idx1-ubyte.gz")
	if err != nil {
		return nil, err
	}
	if len(dims) != 3 || len(shape) != 1 || dims[0] != shape[0] {
		return nil, fmt.Errorf("%s: pictures of shape %v and labels of shape %v do not go together", base, dims, shape)
	}
	im := &Images{Height: dims[1], Width: dims[2], Pixels: pixels, Labels: make([]int, len(labels))}
	for i, l := range labels {
		if int(l) >= classes {
			return nil, fmt.Errorf("%s: label %d of picture %d; allowed: 0 to %d", base, l, i, classes-1)
		}
		im.Labels[i] = int(l)
	}
	return im, nil
}
