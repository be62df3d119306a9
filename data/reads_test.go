package data

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// keyProbes are, for kinds of data that lie in the folder of real data, another value of
// every key that the kind says it reads, and what is set beside it so that the key means
// something.
var keyProbes = map[string]map[string][2]func(d *config.Data){
	"adult": {
		"test_share":         {func(d *config.Data) { d.TestShare = 0.4 }},
		"samples":            {func(d *config.Data) { d.Samples = 7 }},
		"partition":          {func(d *config.Data) { d.Partition = "sex" }},
		"sensitive_features": {func(d *config.Data) { d.SensitiveFeatures = true }},
	},
	"agnews": {"train_limit": {func(d *config.Data) { d.TrainLimit = 9 }}},
	"compas": {
		"test_share":         {func(d *config.Data) { d.TestShare = 0.4 }},
		"samples":            {func(d *config.Data) { d.Samples = 7 }},
		"partition":          {func(d *config.Data) { d.Partition = "sex" }},
		"sensitive_features": {func(d *config.Data) { d.SensitiveFeatures = true }},
		"train_share":        {func(d *config.Data) { d.TrainShare = 0.5 }},
	},
	"fashion-mnist": {
		"task":        {func(d *config.Data) { d.Task = TaskReconstruct }},
		"train_limit": {func(d *config.Data) { d.TrainLimit = 9 }},
	},
	"hospital": {
		"test_share":  {func(d *config.Data) { d.TestShare = 0.4 }},
		"year":        {func(d *config.Data) { d.Year = 2011 }},
		"drgs":        {func(d *config.Data) { d.DRGs = d.DRGs[:2] }},
		"index":       {func(d *config.Data) { d.Index = "code" }},
		"train_share": {func(d *config.Data) { d.TrainShare = 0.5 }},
	},
	"cifar10": {"train_limit": {func(d *config.Data) { d.TrainLimit = 9 }}},
	"mnist":   {"train_limit": {func(d *config.Data) { d.TrainLimit = 9 }}},
	"rotated-mnist": {
		"silos":       {func(d *config.Data) { d.Silos = 8 }},
		"mask":        {func(d *config.Data) { d.Mask = 0.3 }},
		"mask_size":   {func(d *config.Data) { d.MaskSize = 4 }, func(d *config.Data) { d.Mask = 0.3 }},
		"train_limit": {func(d *config.Data) { d.TrainLimit = 9 }},
	},
	"school":  rowSiloProbes,
	"vehicle": rowSiloProbes,
	"writers": {
		"test_share":  {func(d *config.Data) { d.TestShare = 0.4 }},
		"set":         {func(d *config.Data) { d.Set = "mnist" }},
		"rotated":     {func(d *config.Data) { d.Rotated = 0.1 }},
		"train_share": {func(d *config.Data) { d.TrainShare = 0.5 }},
		"ink":         {func(d *config.Data) { d.Ink = "light" }},
	},
}

var rowSiloProbes = map[string][2]func(d *config.Data){
	"test_share":  {func(d *config.Data) { d.TestShare = 0.4 }},
	"train_limit": {func(d *config.Data) { d.TrainLimit = 9 }},
	"standardise": {func(d *config.Data) { d.Standardise = "none" }},
	"centre":      {func(d *config.Data) { d.Centre = slices.Repeat([]float64{1}, len(d.Centre)) }, constants},
	"scale":       {func(d *config.Data) { d.Scale = slices.Repeat([]float64{2}, len(d.Scale)) }, constants},
}

// constants are public ones for a kind's rows.
func constants(d *config.Data) {
	shape, _ := ShapeOf(*d)
	d.Standardise = "public"
	d.Centre, d.Scale = make([]float64, shape.Features), slices.Repeat([]float64{1}, shape.Features)
}

// TestKindsReadTheKeysThatTheyName: what docs/run-file.md says a kind of data reads
// changes what is loaded.
func TestKindsReadTheKeysThatTheyName(t *testing.T) {
	folder := NewFolder(os.Getenv("COTERIE_DATA"))
	if folder == nil {
		t.Skip("COTERIE_DATA is not set: no real data")
	}
	for _, kind := range slices.Sorted(maps.Keys(keyProbes)) {
		usual := ""
		for _, key := range kinds[kind].Keys {
			probe, ok := keyProbes[kind][key]
			if !ok {
				t.Errorf("%s says that it reads %s: nothing here changes it", kind, key)
				continue
			}
			d := config.Default(kind, "", "paper").Data
			if usual == "" {
				usual = loaded(t, folder, d)
			}
			before := usual
			if probe[1] != nil {
				probe[1](&d)
				before = loaded(t, folder, d)
			}
			probe[0](&d)
			if loaded(t, folder, d) == before {
				t.Errorf("%s says that it reads %s, but loads the same with another value", kind, key)
			}
		}
	}
}

// loaded is a hash of what is loaded: everybody's first examples.
func loaded(t *testing.T, f *Folder, d config.Data) string {
	t.Helper()
	all, err := f.Load(d, 1)
	if err != nil {
		t.Fatalf("%+v: %v", d, err)
	}
	h := sha256.New()
	fmt.Fprintln(h, all.Shape())
	var add func(c *Client)
	add = func(c *Client) {
		fmt.Fprintln(h, c.Name, c.Len())
		var buffer []byte
		for i := range min(c.Len(), 10) {
			buffer = c.appendBytes(i, buffer)
		}
		h.Write(buffer)
		if c.Held != nil {
			add(c.Held)
		}
	}
	for _, some := range [][]Client{all.Train, all.Validation} {
		fmt.Fprintln(h, len(some))
		for i := range some {
			add(&some[i])
		}
	}
	return string(h.Sum(nil))
}
