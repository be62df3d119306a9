package source

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// block is a data block of 4x4 pictures in grey of two classes.
func pictureBlock(path string) config.Data {
	return config.Data{Kind: "pictures", Source: config.Source{Path: path}, Height: 4, Width: 4, Channels: 1, Classes: []config.Cell{"cat", "dog"}, TestShare: 0.25}
}

// put writes a file, and the folders above it.
func put(t *testing.T, content []byte, path ...string) string {
	t.Helper()
	at := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}

func pngOf(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plain is a picture of one colour.
func plain(width, height int, c color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Set(i%width, i/width, c)
	}
	return img
}

// twoClients has pictures of every form in two clients' class folders.
func twoClients(t *testing.T) string {
	dir := t.TempDir()
	for i := range 20 {
		put(t, pngOf(t, plain(4, 4, color.Gray{uint8(10 * i)})), dir, "north", "cat", fmt.Sprintf("%02d.png", i))
	}
	put(t, pngOf(t, plain(9, 6, color.RGBA{255, 0, 0, 255})), dir, "north", "dog", "red.PNG")
	put(t, jpegOf(t, plain(16, 8, color.Gray{200})), dir, "south", "dog", "b.jpeg")
	put(t, jpegOf(t, plain(4, 4, color.Gray{100})), dir, "south", "dog", "a")
	put(t, pngOf(t, plain(4, 4, color.Gray{7})), dir, "south", "dog", "c.png")
	put(t, nil, dir, ".DS_Store")
	put(t, nil, dir, "south", "dog", ".hidden")
	return dir
}

// TestPicturesOfClassFolders: names, labels, order, and every pixel.
func TestPicturesOfClassFolders(t *testing.T) {
	dir := twoClients(t)
	clients, report, err := readPictures(pictureBlock(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(clients) != 2 || clients[0].Name != "north" || clients[1].Name != "south" || report.Rows != 24 || report.Kept != 24 {
		t.Fatal(clients, report)
	}
	north, south := clients[0].Images, clients[1].Images
	if north.Len() != 21 || north.Labels[19] != 0 || north.Labels[20] != 1 || !slices.Equal(south.Labels, []int{1, 1, 1}) {
		t.Error(north.Labels, south.Labels)
	}
	for i := range 20 {
		if got := north.Pixels[16*i : 16*i+16]; !bytes.Equal(got, bytes.Repeat([]byte{uint8(10 * i)}, 16)) {
			t.Errorf("picture %d: %v", i, got)
		}
	}
	// Red is 0.299 of white; JPEG of one colour keeps it.
	for i, want := range map[int]byte{20: 76} {
		if got := north.Pixels[16*i]; got != want {
			t.Errorf("red became %d, want %d", got, want)
		}
	}
	for i, want := range []byte{100, 200, 7} { // by the files' names
		if got := south.Pixels[16*i]; got != want {
			t.Errorf("south %d: %d, want %d", i, got, want)
		}
	}
	d := pictureBlock(dir)
	d.Channels = 3
	if clients, _, err = readPictures(d); err != nil {
		t.Fatal(err)
	}
	if red := clients[0].Images.Pixels[48*20 : 48*20+6]; !bytes.Equal(red, []byte{255, 0, 0, 255, 0, 0}) || clients[1].Images.Channels != 3 {
		t.Error(red)
	}
	// Labels are places in the list, whatever its order, and so is the order of pictures.
	d.Classes = []config.Cell{"dog", "bird", "cat"}
	if clients, _, err = readPictures(d); err != nil || clients[0].Images.Labels[0] != 0 || clients[0].Images.Labels[1] != 2 || clients[0].Images.Pixels[0] != 255 {
		t.Error(clients[0].Images.Labels, err)
	}
	d.Classes = pictureBlock(dir).Classes
	// A pattern of folders is the folder's clients.
	d.Source.Path = filepath.Join(dir, "n*")
	if clients, _, err = readPictures(d); err != nil || len(clients) != 1 || clients[0].Name != "north" {
		t.Error(clients, err)
	}
}

// TestPicturesOfOneClient: a participant that reads its own folder alone holds what the
// simulation gives it, down to which pictures are held out and left out.
func TestPicturesOfOneClient(t *testing.T) {
	dir := twoClients(t)
	d := pictureBlock(dir)
	d.TrainLimit = 9
	kind, err := data.KindOf(d)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := kind.Load(nil, d, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range whole.Names() {
		one, report, err := Pictures(d, filepath.Join(dir, name), name)
		if err != nil {
			t.Fatal(err)
		}
		own, err := pictureFederation(d, 7, *report, true, *one)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(own.Train[0], whole.Train[i]) {
			t.Errorf("%s: alone %+v, in the simulation %+v", name, own.Train[0], whole.Train[i])
		}
	}
	north := whole.Train[0]
	if held := north.Held.Len(); north.Len() != 9 || held < 1 || held > 11 {
		t.Errorf("north trains on %d and holds out %d", north.Len(), held)
	}
	for _, at := range north.Index {
		if slices.Contains(north.Held.Index, at) {
			t.Errorf("picture %d is trained on and held out", at)
		}
	}
	if whole.Classes != 2 || whole.Shape() != (data.Shape{Classes: 2, Height: 4, Width: 4, Channels: 1}) {
		t.Errorf("shape %+v", whole.Shape())
	}
	if shape, ok := data.ShapeOf(d); !ok || shape != whole.Shape() {
		t.Errorf("the run file alone says %+v", shape)
	}
}

// TestHeldOutPicturesDoNotMoveOthers: without one picture all others stay where they are.
func TestHeldOutPicturesDoNotMoveOthers(t *testing.T) {
	dir := twoClients(t)
	d := pictureBlock(dir)
	part := func() map[byte]bool {
		clients, report, err := readPictures(d)
		if err != nil {
			t.Fatal(err)
		}
		f, err := pictureFederation(d, 3, *report, false, clients...)
		if err != nil {
			t.Fatal(err)
		}
		held := map[byte]bool{}
		for _, at := range f.Train[0].Held.Index {
			held[f.Train[0].Images.Pixels[16*at]] = true
		}
		return held
	}
	before := part()
	if err := os.Remove(filepath.Join(dir, "north", "cat", "03.png")); err != nil {
		t.Fatal(err)
	}
	after := part()
	delete(before, 30)
	if len(before) == 0 || !reflect.DeepEqual(before, after) {
		t.Errorf("held out before %v, after %v", before, after)
	}
}

// TestTestPathOfPictures: every client is judged on the part of its name, nothing else is
// held out, and a test part of a stranger is a fault.
func TestTestPathOfPictures(t *testing.T) {
	dir, test := twoClients(t), t.TempDir()
	put(t, pngOf(t, plain(4, 4, color.Gray{1})), test, "north", "cat", "t.png")
	d := pictureBlock(dir)
	d.Test.Path, d.TestShare = test, 0
	clients, report, err := readPictures(d)
	if err != nil || report.Rows != 25 {
		t.Fatal(report, err)
	}
	f, err := pictureFederation(d, 3, *report, false, clients...)
	if err != nil {
		t.Fatal(err)
	}
	north, south := f.Train[0], f.Train[1]
	if north.Len() != 21 || north.Held.Len() != 1 || north.Held.Images.Pixels[0] != 1 || south.Len() != 3 || south.Held.Len() != 0 {
		t.Errorf("%d, %d, %d, %d", north.Len(), north.Held.Len(), south.Len(), south.Held.Len())
	}
	put(t, jpegOf(t, plain(4, 4, color.Gray{2})), test, "south", "dog", "t")
	if both, _, err := readPictures(d); err != nil || both[0].Held.Images.Pixels[0] != 1 || both[1].Held.Images.Pixels[0] != 2 || both[1].Held.Name != "south" {
		t.Errorf("%+v, %v", both, err)
	}
	d.Test.Path = filepath.Join(test, "north")
	one, _, err := Pictures(d, filepath.Join(dir, "north"), "north")
	if err != nil || !reflect.DeepEqual(*one, clients[0]) {
		t.Errorf("alone %+v (%v), want %+v", one, err, clients[0])
	}
	put(t, pngOf(t, plain(4, 4, color.Gray{1})), test, "west", "cat", "t.png")
	d.Test.Path = test
	if _, _, err := readPictures(d); err == nil || !strings.Contains(err.Error(), `west: has pictures to test client "west" with, which has none to train with`) {
		t.Error(err)
	}
}

// TestAllFaultsOfPicturesAtOnce: each with its path, and nothing is read.
func TestAllFaultsOfPicturesAtOnce(t *testing.T) {
	dir := twoClients(t)
	good := pngOf(t, plain(4, 4, color.Gray{7}))
	put(t, []byte("hello"), dir, "north", "cat", "note.txt")
	put(t, nil, dir, "north", "cat", "empty.png")
	put(t, good[:len(good)-20], dir, "north", "dog", "cut.png")
	put(t, jpegOf(t, plain(64, 64, color.Gray{1}))[:300], dir, "north", "dog", "cut.jpg")
	put(t, hugePNG(good), dir, "north", "dog", "huge.png")
	put(t, good, dir, "north", "bird", "a.png")
	put(t, good, dir, "south", "loose.png")
	put(t, good, dir, "top.png")
	put(t, good, dir, "south", "dog", "more", "a.png")
	if err := os.MkdirAll(filepath.Join(dir, "west", "cat"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "south", "dog", "link.png")); err != nil {
		t.Fatal(err)
	}
	clients, report, err := readPictures(pictureBlock(dir))
	if err == nil || clients != nil || report != nil {
		t.Fatal(clients, err)
	}
	want := []string{
		"north/bird: is the folder of a class \"bird\" that data.classes does not list; allowed: cat, dog",
		"north/cat/empty.png: is neither a PNG nor a JPEG file",
		"north/cat/note.txt: is neither a PNG nor a JPEG file: it begins with \"hello\"",
		"north/dog/cut.jpg: is broken: ",
		"north/dog/cut.png: is broken: ",
		"north/dog/huge.png: has 60000 by 60000 pixels; allowed",
		"south/dog/link.png: no such file",
		"south/dog/more: no plain file",
		"south/loose.png: stands outside the class folders",
		"top.png: names no client",
		"west: holds no picture",
	}
	text := err.Error()
	if !strings.Contains(text, fmt.Sprintf("%d faults", len(want))) {
		t.Errorf("not %d faults", len(want))
	}
	rest := text
	for _, line := range want { // by path
		_, after, ok := strings.Cut(rest, "\n  "+filepath.Join(dir, line))
		if !ok {
			t.Errorf("no line %q in its place in\n%s", line, text)
			continue
		}
		rest = after
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the faults do not wrap what happened")
	}
	for path, words := range map[string]string{
		"":                            "data.source.path is missing",
		filepath.Join(dir, "no"):      "no such file",
		filepath.Join(dir, "no*"):     "", // north is there
		filepath.Join(dir, "x*"):      "is a pattern that nothing fits",
		filepath.Join(dir, "top.png"): "is a file",
		t.TempDir():                   "has no client",
	} {
		if _, _, err := readPictures(pictureBlock(path)); words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := Pictures(pictureBlock(""), filepath.Join(dir, "top.png"), "top"); err == nil || !strings.Contains(err.Error(), "is no client's") {
		t.Error(err)
	}
}

// TestTooManyPictures: what would not fit into memory is refused before it is taken.
func TestTooManyPictures(t *testing.T) {
	d := tiny(t.TempDir())
	d.Height, d.Width, d.Channels = 4096, 4096, 3
	put(t, npz(t, zip.Deflate, "x", npy("|u1", "(400, 1, 1)", make([]byte, 400)), "y", npy("|u1", "(400,)", make([]byte, 400))), d.Source.Path, "north.npz")
	if _, _, err := readPictures(d); err == nil || !strings.Contains(err.Error(), "has 400 pictures, which would take more than 16 GiB of memory; allowed at 4096x4096x3: 341") {
		t.Error(err)
	}
}

// hugePNG is a PNG whose header claims 60,000 by 60,000 pixels.
func hugePNG(good []byte) []byte {
	out := bytes.Clone(good)
	copy(out[16:24], []byte{0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60})
	sum := crc32.ChecksumIEEE(out[12:29])
	copy(out[29:33], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return out
}

// TestCheckPictures: all faults of the block at once, at their places.
func TestCheckPictures(t *testing.T) {
	base := "data: {kind: pictures, height: 8, width: 8, channels: 1, classes: [cat, dog]%s}\nmodel: {layers: [{kind: flatten}, {kind: linear, units: 2}]}\n"
	for extra, path := range map[string]string{
		"":                                   "",
		", source: {path: x}":                "",
		", test: {path: x}":                  "",
		", not_public: [data.height]":        "",
		", test: {path: x}, test_share: 0.2": "data.test_share",
		", test_share: 0":                    "data.test_share",
		", test: {column: x}":                "data.test",
		", source: {path: x, client: y}":     "data.source",
		", not_public: [\"\"]":               "data.not_public.0",
		", target: x":                        "data.target",
		", standardise: public":              "data.standardise",
	} {
		run, err := config.Resolve(fmt.Appendf(nil, base, extra), nil, data.Check)
		if path == "" && err != nil || path != "" && (err == nil || !strings.Contains(err.Error(), path+": ")) {
			t.Errorf("%q: %v", extra, err)
		}
		if err != nil {
			continue
		}
		if want := map[bool]float64{true: 0, false: 0.2}[run.Data.Test.Path != ""]; run.Data.TestShare != want {
			t.Errorf("%q: a test share of %v, want %v", extra, run.Data.TestShare, want)
		}
		text, err := run.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.Resolve(text, nil, data.Check)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(twice, text) {
			t.Errorf("%q: its own file reads as %s (%v)", extra, twice, err)
		}
	}
	_, err := config.Resolve([]byte("data: {kind: pictures, classes: [a, a, \"\", .b, c/d], channels: 2}\n"), nil, data.Check)
	for _, path := range []string{"data.height: is 0", "data.width: is 0", "data.channels: is 2", "data.classes.1: \"a\" stands twice", "data.classes.2: ", "data.classes.3: ", "data.classes.4: "} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("no fault %s in %v", path, err)
		}
	}
	for _, d := range []config.Data{{}, {Height: 1 << 40, Width: 1 << 40, Channels: 3, Classes: pictureBlock("").Classes}} {
		if _, _, err := Pictures(d, twoClients(t), "north"); !errors.Is(err, config.ErrInvalid) {
			t.Errorf("%+v was read: %v", d, err)
		}
	}
	if shape, whole := data.ShapeOf(config.Data{Kind: "pictures", Height: 3, Classes: []config.Cell{"a", "b"}}); whole {
		t.Error(shape)
	}
}
