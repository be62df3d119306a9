package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

func init() {
	kind := data.SiloKind("pictures", func(r *config.Run) {
		r.Model = config.Model{Kind: "network"} // its layers are the user's to choose
		r.Algorithm.Local.Batch, r.Algorithm.Local.Step, r.Algorithm.Local.Loss = 100, 0.1, "cross-entropy"
	}, "source", "height", "width", "channels", "classes", "test_share", "test", "train_limit", "not_public")
	silos := kind.Settings
	kind.Settings = func(r *config.Run) {
		silos(r)
		r.Data.Standardise, r.Privacy.MomentsShare = "", 0 // pixels have a public range
	}
	kind.Settle = func(r *config.Run, given func(path string) bool) {
		if r.Data.Test.Path != "" && !given("data.test_share") {
			r.Data.TestShare = 0
		}
	}
	data.Register(data.Kind{
		DataKind: kind,
		Get:      "nothing is built in: name your own in data.source (docs/data.md)",
		Check:    checkPictures,
		Shape: func(d config.Data) (data.Shape, bool) {
			s := data.Shape{Classes: len(d.Classes), Height: d.Height, Width: d.Width, Channels: d.Channels}
			return s, s.Classes > 0 && s.Height > 0 && s.Width > 0 && s.Channels > 0
		},
		Load: func(f *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
			type read struct {
				clients []data.Client
				report  *data.LoadReport
			}
			all, err := data.Kept(f, readingKey(d), func() (*read, error) {
				clients, report, err := readPictures(d)
				return &read{clients, report}, err
			})
			if err != nil {
				return nil, err
			}
			return pictureFederation(d, seed, *all.report, false, all.clients...)
		},
		One: func(d config.Data, seed uint64, name string) (*data.Federation, error) {
			client, report, err := Pictures(d, d.Source.Path, name)
			if err != nil {
				return nil, err
			}
			return pictureFederation(d, seed, *report, true, *client)
		},
		Words: pictureWords,
	})
}

// checkPictures says what is wrong with the block. Where the pictures lie is no part of
// it: a federation's server has none.
func checkPictures(c *config.Checker, d config.Data) {
	checkForm(c, d)
	s := d.Source
	s.Path = ""
	c.Require(s == config.Source{}, "data.source", "has keys of tables; allowed for pictures: path")
	c.Require(d.Test.Column == "" && d.Test.Value == "", "data.test", "names a column, but pictures have none; allowed: path, or data.test_share")
	c.Require(d.Test.Path == "" || d.TestShare == 0, "data.test_share", "is %v, but data.test.path names pictures to test with; give one of them", d.TestShare)
	for i, key := range d.NotPublic {
		c.Require(strings.TrimSpace(key) != "", fmt.Sprintf("data.not_public.%d", i), "is empty; name a key of this file, for example data.classes")
	}
}

// checkForm says what is wrong with what is public about every picture.
func checkForm(c *config.Checker, d config.Data) {
	for _, side := range []struct {
		path  string
		value int
	}{{"data.height", d.Height}, {"data.width", d.Width}} {
		c.Require(side.value > 0 && side.value <= mostPublicSide, side.path, "is %d, but pictures need a public size in pixels, which all are scaled to; allowed: 1 to %d, for example 28", side.value, mostPublicSide)
	}
	c.Require(d.Channels == 1 || d.Channels == 3, "data.channels", "is %d; allowed: 1 (grey) or 3 (colour)", d.Channels)
	c.Require(len(d.Classes) >= 2, "data.classes", "has %d names; allowed: 2 or more, the public list of the class folders' names (for idx and npz: what label 0, 1, … means)", len(d.Classes))
	seen := map[config.Cell]bool{}
	for i, name := range d.Classes {
		at := fmt.Sprintf("data.classes.%d", i)
		c.Require(!seen[name], at, "%q stands twice", name)
		c.Require(name != "" && !strings.HasPrefix(string(name), ".") && !strings.ContainsAny(string(name), `/\`), at,
			"%q cannot be a folder's name; allowed: not empty, no dot at the beginning, no slash", name)
		seen[name] = true
	}
}

func pictureWords(d config.Data) string {
	colour := "grey"
	if d.Channels == 3 {
		colour = "colour"
	}
	held := ""
	if d.Test.Path != "" {
		held = ", with a test part of every client’s own"
	}
	if len(d.Classes) == 0 {
		return "Pictures of one's own: class folders of PNG or JPEG, idx pairs, or npz files, a folder or file a client"
	}
	return fmt.Sprintf("Pictures of one's own: %d classes, %d by %d pixels in %s%s", len(d.Classes), d.Height, d.Width, colour, held)
}

// Pictures reads one client's pictures from its own folder (class folders directly, one
// idx pair, or one npz file) or from its file: pixels and labels come out as in a
// simulation that finds them under that name. If data.test.path is set, it names the same
// client's test part. Nothing else is held out: pictureFederation does that.
func Pictures(d config.Data, path, name string) (*data.Client, *data.LoadReport, error) {
	r, err := newPictureReader(d)
	if err != nil {
		return nil, nil, err
	}
	parts := []pictureClient{r.find(path, name)}
	if d.Test.Path != "" {
		parts = append(parts, r.find(d.Test.Path, name))
	}
	read := r.read(parts)
	if err := r.faults.err(path); err != nil {
		return nil, nil, err
	}
	c := read[0]
	if len(read) > 1 {
		c.Held = &read[1]
	}
	return &c, pictureReport(c), nil
}

// readPictures reads all clients of data.source.path, with their test parts if
// data.test.path names some.
func readPictures(d config.Data) ([]data.Client, *data.LoadReport, error) {
	if d.Source.Path == "" {
		return nil, nil, fmt.Errorf("data.source.path is missing: name the folder that has a folder (or an idx pair, or an npz file) a client")
	}
	r, err := newPictureReader(d)
	if err != nil {
		return nil, nil, err
	}
	parts := r.findAll(d.Source.Path)
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].name
	}
	if d.Test.Path != "" {
		for _, part := range r.findAll(d.Test.Path) {
			if slices.Contains(names, part.name) {
				parts = append(parts, part)
			} else {
				r.faults.add(part.path, fmt.Errorf("has pictures to test client %q with, which has none to train with in %s", part.name, d.Source.Path))
			}
		}
	}
	read := r.read(parts)
	if err := r.faults.err(d.Source.Path); err != nil {
		return nil, nil, err
	}
	clients, tests := read[:len(names)], read[len(names):]
	for i := range clients {
		if d.Test.Path == "" {
			continue
		}
		clients[i].Held = &data.Client{Name: names[i], Pictures: data.Pictures{Images: clients[i].Images}}
		if at := slices.IndexFunc(tests, func(t data.Client) bool { return t.Name == names[i] }); at >= 0 {
			clients[i].Held = &tests[at]
		}
	}
	return clients, pictureReport(clients...), nil
}

func pictureReport(clients ...data.Client) *data.LoadReport {
	r := &data.LoadReport{Source: "pictures"}
	for i := range clients {
		r.Rows += clients[i].Len()
		if clients[i].Held != nil {
			r.Rows += clients[i].Held.Len()
		}
	}
	r.Kept = r.Rows
	return r
}

// pictureFederation is the federation of clients as they were read: data.test_share of
// every client's pictures is held out, unless it has a test part, and data.train_limit
// bounds the rest. Both go by a hash of each picture that the seed and the client's name
// key, so that a participant that reads its own pictures alone gets those of the
// simulation; keepEmpty is for that one, which stays without pictures to train on.
func pictureFederation(d config.Data, seed uint64, report data.LoadReport, keepEmpty bool, clients ...data.Client) (*data.Federation, error) {
	silos := data.Silos{All: clients, Classes: len(d.Classes), Report: report, NotCovered: d.TakenFromData()}
	return silos.Federation(data.SiloOptions{Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: data.Unscaled, KeepEmpty: keepEmpty})
}
