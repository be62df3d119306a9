package study

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"image/png"
)

// shownWidth is about how wide a small picture is drawn: pixels are enlarged a
// whole number of times, so that all have one size.
const shownWidth = 112

// shownStrip is a row of pictures.
type shownStrip struct {
	Title, Note string
	Pictures    []shownPicture
}

type shownPicture struct {
	Caption, Alt  string
	Source        template.URL
	Width, Height int  // as shown
	Large         bool // does not fit the usual column
}

func newShownStrip(s Strip) (shownStrip, error) {
	view := shownStrip{Title: s.Title, Note: s.Note}
	for i, p := range s.Pictures {
		source, err := greyPNG(p)
		if err != nil {
			return shownStrip{}, fmt.Errorf("picture %d (%q) of strip %q: %w", i+1, p.Caption, s.Title, err)
		}
		times := max(1, shownWidth/p.Width)
		view.Pictures = append(view.Pictures, shownPicture{
			Caption: p.Caption, Alt: cmp.Or(p.Caption, fmt.Sprintf("Picture %d of %d", i+1, len(s.Pictures))), Source: source,
			Width: p.Width * times, Height: p.Height * times, Large: p.Width > shownWidth,
		})
	}
	return view, nil
}

// greyPNG puts a picture into an address, so that the page needs no other file.
func greyPNG(p Picture) (template.URL, error) {
	grey := &image.Gray{Pix: p.Pixels, Stride: p.Width, Rect: image.Rect(0, 0, p.Width, p.Height)}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&b, grey); err != nil {
		return "", fmt.Errorf("writing it as PNG: %w", err)
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), nil
}
