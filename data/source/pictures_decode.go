package source

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"os"
)

// decodeFile reads a PNG or JPEG file, told by its first bytes, into a picture of the
// public form.
func (r *pictureReader) decodeFile(path string, dst []byte) error {
	f, err := openRegular(path)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	img, err := decodePicture(f)
	if err != nil {
		return err
	}
	r.draw(img, dst)
	return nil
}

// withoutPath is the error without the path, which stands before it already.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// decodePicture decodes what has a believable size. Decoders are called by their names:
// which others the program knows must not change what a picture is.
func decodePicture(f *os.File) (image.Image, error) {
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	size, decode := png.DecodeConfig, png.Decode
	switch head = head[:n]; {
	case bytes.Equal(head, []byte("\x89PNG\r\n\x1a\n")):
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		size, decode = jpeg.DecodeConfig, jpeg.Decode
	default:
		return nil, fmt.Errorf("is neither a PNG nor a JPEG file: it begins with %q; remove it from the folder", head)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	claims, err := size(f)
	if err != nil {
		return nil, fmt.Errorf("is broken: %w", err)
	}
	if err := checkSide(claims.Height, claims.Width); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("is broken: %w", err)
	}
	return img, nil
}

// draw scales a picture into dst. What is transparent is so on black.
func (r *pictureReader) draw(img image.Image, dst []byte) {
	b := img.Bounds()
	line := image.NewRGBA(image.Rect(0, 0, b.Dx(), 1))
	colours := make([]byte, 3*b.Dx())
	s := newScaler(b.Dy(), b.Dx(), r)
	s.scale(dst, func(y int, out []byte) {
		draw.Draw(line, line.Rect, img, image.Pt(b.Min.X, b.Min.Y+y), draw.Src)
		for x := range b.Dx() {
			copy(colours[3*x:3*x+3], line.Pix[4*x:])
		}
		setChannels(out, r.channels, colours, 3)
	})
}

// setChannels turns one line of pixels into pixels of 1 or 3 channels: grey by the
// weights of ITU-R BT.601, in whole numbers, so that grey stays what it is.
func setChannels(out []byte, channels int, line []byte, have int) {
	switch {
	case channels == have:
		copy(out, line)
	case channels == 1:
		for x := range out {
			c := line[3*x:]
			out[x] = byte((19595*uint32(c[0]) + 38470*uint32(c[1]) + 7471*uint32(c[2]) + 1<<15) >> 16)
		}
	default:
		for x, v := range line {
			out[3*x], out[3*x+1], out[3*x+2] = v, v, v
		}
	}
}
