package source

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// TestKeptTables: a folder that keeps what was read gives every run the federation that it
// would have read for itself, whatever is held out, limited or scaled, and whatever an
// earlier run did to its own; and it reads each source once. Planted: rows that are given
// away, a key without the features.
func TestKeptTables(t *testing.T) {
	text := "split," + wardHeader
	for i := range 300 {
		text += fmt.Sprintf("%s,s%d,%d,%d,%s,%d,%d,%s\n", []string{"train", "test"}[i%5/4], i%3, i%2, i%100, []string{"A", "B", "C"}[i%3], 20+i%30, i%2, []string{"f", "m", "x"}[i%3])
	}
	path := write(t, "a.csv", text)
	share := ward(path)
	share.TestShare, share.Standardise = 0.3, string(data.Unscaled)
	other, limited, scaled, column, fewer := share, share, share, share, share
	other.TestShare = 0.5
	limited.TrainLimit = 20
	scaled.Standardise = string(data.BySilo)
	column.TestShare, column.Test = 0, config.TestPart{Column: "split", Value: "test"}
	fewer.Features = fewer.Features[:1]
	type load struct {
		d    config.Data
		seed uint64
	}
	loads := []load{{share, 1}, {share, 2}, {share, 1}, {other, 1}, {limited, 1}, {scaled, 1}, {column, 1}, {column, 2}, {fewer, 1}}
	var want []*data.Federation
	for _, l := range loads {
		f, err := LoadTable(l.d, l.seed, "")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, f)
	}
	folder := data.NewFolder("").Keeping()
	for _, d := range []config.Data{share, column, fewer} { // one key each
		if _, err := folder.Load(d, 9); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for i, l := range loads {
		got, err := folder.Load(l.d, l.seed)
		if err != nil {
			t.Fatalf("load %d reads again: %v", i, err)
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("load %d: another federation than a run of its own reads", i)
		}
		for k := range got.Train { // nothing of it is anybody else's
			spoil(&got.Train[k])
			spoil(got.Train[k].Held)
		}
	}
	if _, err := data.NewFolder("").Load(share, 1); err == nil {
		t.Error("a folder that keeps nothing has the table")
	}
}

func spoil(c *data.Client) {
	for i := range c.X {
		c.X[i] = -7
	}
	for i := range c.Y {
		c.Y[i] = -7
	}
}

// TestKeptPictures: the same of pictures.
func TestKeptPictures(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		path := filepath.Join(dir, []string{"north", "south"}[i%2], []string{"cat", "dog"}[i/2%2], fmt.Sprintf("%d.png", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		grey := image.NewGray(image.Rect(0, 0, 2, 2))
		grey.SetGray(0, 0, color.Gray{uint8(i)})
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(file, grey); err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	d := config.Data{Kind: "pictures", Source: config.Source{Path: dir}, Height: 2, Width: 2, Channels: 1, Classes: []config.Cell{"cat", "dog"}, TestShare: 0.3}
	folder := data.NewFolder("").Keeping()
	var want []*data.Federation
	for seed := range uint64(3) {
		f, err := data.NewFolder("").Load(d, seed)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, f)
	}
	if _, err := folder.Load(d, 9); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for seed, w := range want {
		got, err := folder.Load(d, uint64(seed))
		if err != nil || !reflect.DeepEqual(got, w) {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
