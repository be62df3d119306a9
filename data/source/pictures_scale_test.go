package source

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"
)

// scaled is a picture of bytes, scaled.
func scaled(src []byte, height, width, channels, newHeight, newWidth int) []byte {
	r := &pictureReader{height: newHeight, width: newWidth, channels: channels}
	dst := make([]byte, r.size())
	next := 0
	newScaler(height, width, r).scale(dst, func(y int, line []byte) {
		if y != next {
			panic("lines are asked for out of order, or twice")
		}
		next++
		copy(line, src[y*width*channels:])
	})
	if next != height {
		panic("lines were left out")
	}
	return dst
}

// naive is one value of the scaled picture, in floating point: the integral over an area
// along a side that becomes smaller, a straight line along one that becomes larger.
func naiveScale(src []byte, height, width, channels, newHeight, newWidth, i, j, c int) float64 {
	side := func(at, old, fresh int) map[int]float64 {
		w, ratio := map[int]float64{}, float64(old)/float64(fresh)
		if fresh <= old {
			from, to := float64(at)*ratio, float64(at+1)*ratio
			for p := range old {
				if overlap := min(to, float64(p+1)) - max(from, float64(p)); overlap > 0 {
					w[p] = overlap / ratio
				}
			}
			return w
		}
		middle := min(max((float64(at)+0.5)*ratio-0.5, 0), float64(old-1))
		p := int(middle)
		w[p] = 1 - (middle - float64(p))
		if p+1 < old {
			w[p+1] = middle - float64(p)
		}
		return w
	}
	sum := 0.0
	for y, wy := range side(i, height, newHeight) {
		for x, wx := range side(j, width, newWidth) {
			sum += wy * wx * float64(src[(y*width+x)*channels+c])
		}
	}
	return sum
}

// TestScaleAgreesWithTheNaiveWay for sides that grow, shrink and stay, and asks for every
// line once.
func TestScaleAgreesWithTheNaiveWay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h, w, c := 1+random.IntN(12), 1+random.IntN(12), 1+2*random.IntN(2)
		nh, nw := 1+random.IntN(12), 1+random.IntN(12)
		src := make([]byte, h*w*c)
		for i := range src {
			src[i] = byte(random.IntN(256))
		}
		got := scaled(src, h, w, c, nh, nw)
		for at, v := range got {
			want := naiveScale(src, h, w, c, nh, nw, at/(nw*c), at/c%nw, at%c)
			if math.Abs(float64(v)-want) > 0.5+1e-9 {
				t.Fatalf("%dx%dx%d to %dx%d, value %d: %d, want %v", h, w, c, nh, nw, at, v, want)
			}
		}
		if h == nh && w == nw && !bytes.Equal(got, src) {
			t.Fatal("the same size changed")
		}
	}
	if got := scaled([]byte{0, 100, 200, 40}, 2, 2, 1, 1, 1); got[0] != 85 {
		t.Error(got)
	}
}

// TestDrawReadsEveryKindOfPicture: grey of any value stays, whatever holds it; colours
// become grey by the usual weights; parts of larger pictures start where they start.
func TestDrawReadsEveryKindOfPicture(t *testing.T) {
	grey, colour := &pictureReader{height: 1, width: 1, channels: 1}, &pictureReader{height: 1, width: 1, channels: 3}
	one, three := make([]byte, 1), make([]byte, 3)
	for v := range 256 {
		g := color.Gray{uint8(v)}
		palette := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{g})
		deep := image.NewGray16(image.Rect(0, 0, 1, 1))
		deep.Set(0, 0, g)
		simple := image.NewGray(image.Rect(5, 7, 8, 9))
		simple.Set(6, 8, g)
		part := simple.SubImage(image.Rect(6, 8, 7, 9))
		for _, img := range []image.Image{plain(1, 1, g), palette, deep, part} {
			grey.draw(img, one)
			colour.draw(img, three)
			if one[0] != g.Y || !bytes.Equal(three, []byte{g.Y, g.Y, g.Y}) {
				t.Fatalf("%T of %d became %v and %v", img, v, one, three)
			}
		}
	}
	wide := image.NewGray(image.Rect(2, 1, 5, 3)) // 3 pixels across, 2 down
	copy(wide.Pix, []byte{1, 2, 3, 4, 5, 6})
	for _, size := range []struct {
		height, width int
		want          []byte
	}{{2, 3, []byte{1, 2, 3, 4, 5, 6}}, {1, 3, []byte{3, 4, 5}}, {2, 1, []byte{2, 5}}} {
		r := &pictureReader{height: size.height, width: size.width, channels: 1}
		got := make([]byte, r.size())
		if r.draw(wide, got); !bytes.Equal(got, size.want) {
			t.Errorf("%dx%d: %v, want %v", size.height, size.width, got, size.want)
		}
	}
	for c, want := range map[color.RGBA]byte{{255, 0, 0, 255}: 76, {0, 255, 0, 255}: 150, {0, 0, 255, 255}: 29, {0, 0, 0, 0}: 0} {
		if grey.draw(plain(1, 1, c), one); one[0] != want {
			t.Errorf("%v became %d, want %d", c, one[0], want)
		}
	}
}
