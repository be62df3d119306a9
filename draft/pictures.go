package draft

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // how pictures are written
	_ "image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// largestSide is what larger pictures are scaled down to.
const largestSide = 32

const picturesHead = `# A first run on the pictures of %s, drafted by coterie init.
#
# Careful: ` + ForYou + `.
# Lines marked "not public: replace or pay" hold values that were read off the data:
# whoever sees this file learns something from them that no proof covers, and the run's
# privacy claim is "heuristic" as long as data.not_public lists any of them. Replace each
# by what everybody knows without looking (the device takes pictures of 28 by 28; these
# are the ten digits), and delete its line from data.not_public.
`

const networkText = `model:
  kind: network
  layers:
    - {kind: conv, channels: 8, kernel: 3}
    - {kind: relu}
    - {kind: max-pool, kernel: 2}
    - {kind: linear, units: %d}
algorithm:
  kind: mr-mtl               # every client gets a model of its own, drawn to the others'
  mode: sound
  rounds: %d
  lambda: 0.1                # how strongly: 0 is everybody alone, large is one model for all
  weights: equal             # nobody's number of pictures is told
  local:
    step: 0.3
`

// newPictures looks at client folders with class folders.
func newPictures(ctx context.Context, r Request) (*Draft, error) {
	if r.Client != "" || r.Target != "" {
		return nil, fmt.Errorf("%w: %s holds folders, which are taken for clients with class folders of pictures: they take neither --client nor --target", ErrRequest, r.Path)
	}
	clients, err := folders(r.Path)
	if err != nil {
		return nil, err
	}
	d := &Draft{Kind: "pictures", Task: "classes", Target: Column{Name: "class folder"}, Columns: []Column{}}
	first := ""
	for _, name := range clients {
		rows := 0
		classes, err := folders(filepath.Join(r.Path, name))
		if err != nil {
			return nil, err
		}
		for _, class := range classes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			files, err := os.ReadDir(filepath.Join(r.Path, name, class))
			if err != nil {
				return nil, fmt.Errorf("look at the data: %w", err)
			}
			for _, f := range files {
				if !isPicture(f.Name()) {
					continue
				}
				rows++
				if first == "" {
					first = filepath.Join(r.Path, name, class, f.Name())
				}
			}
			if !slices.Contains(d.Target.Values, class) {
				d.Target.Values = append(d.Target.Values, class)
			}
		}
		d.Clients, d.Rows = append(d.Clients, Client{name, rows}), d.Rows+rows
	}
	slices.Sort(d.Target.Values)
	if first == "" || len(d.Target.Values) < 2 {
		return nil, fmt.Errorf("%w: %s holds folders, but not pictures of at least 2 classes as CLIENT/CLASS/FILE.png or .jpg; tables are a file, a folder of files, or a pattern", ErrRequest, r.Path)
	}
	return d, d.writePictures(r, first)
}

// folders are those in a folder, by name.
func folders(path string) ([]string, error) {
	inside, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("look at the data: %w", err)
	}
	var out []string
	for _, f := range inside {
		if f.IsDir() && f.Name()[0] != '.' {
			out = append(out, f.Name())
		}
	}
	return out, nil
}

func isPicture(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg":
		return true
	}
	return false
}

// sizeOf is a picture's height, width and channels, from its first bytes.
func sizeOf(path string) (height, width, channels int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("look at the data: %w", err)
	}
	defer file.Close()
	c, _, err := image.DecodeConfig(file)
	if err == nil && (c.Height < 1 || c.Width < 1) {
		err = errors.New("it has no pixels")
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%w: %s is no picture: %w", ErrRequest, path, err)
	}
	channels = 3
	if c.ColorModel == color.GrayModel || c.ColorModel == color.Gray16Model {
		channels = 1
	}
	height, width = c.Height, c.Width
	if most := max(height, width); most > 2*largestSide {
		height, width = max(1, height*largestSide/most), max(1, width*largestSide/most)
	}
	return height, width, channels, nil
}

func (d *Draft) writePictures(r Request, first string) error {
	height, width, channels, err := sizeOf(first)
	if err != nil {
		return err
	}
	path, err := r.from(r.Path)
	if err != nil {
		return err
	}
	s := settle(d.Clients, d.Rows)
	top, rest := &writer{marked: &d.NotPublic}, &writer{marked: &d.NotPublic}
	top.line("%sname: pictures\nseed: 1                      # keys which pictures are held out, and where training starts\ndata:", fmt.Sprintf(picturesHead, comment(filepath.Base(r.Path))))
	top.line("  kind: pictures\n  source: {path: %s}   # where they lie: never sent to anybody", quoted(path))
	top.line("  # All pictures are scaled to this size.")
	top.taken("data.height", "  height: %d", height)
	top.taken("data.width", "  width: %d", width)
	top.line("  # 1 is grey, 3 is colour.")
	top.taken("data.channels", "  channels: %d", channels)
	top.taken("data.classes", "  classes: %s", quotedList(d.Target.Values))
	top.line("  test_share: %v            # of every client's pictures, to judge its model on", heldOut)
	fmt.Fprintf(rest, networkText, len(d.Target.Values), s.rounds)
	rest.line("    # Pictures in a step, about: %s of public_size.", shareText(s))
	rest.taken("algorithm.local.batch", "    batch: %d", s.batch)
	rest.writePrivacy(s, "picture")
	d.finish(top, rest, judgeOwn)
	return d.writeFederation(r, s, []string{filepath.Join(r.Path, d.Clients[0].Name)})
}
