package contacts

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// one reads the eight files that a participant of a federation has for itself. All that
// training could find wrong with them is found here, before anybody is asked anything: that
// it stops for it would tell of the data.
func one(d config.Data, _ uint64, name string) (*data.Federation, error) {
	g, err := Read(d.Source.Path)
	if err != nil {
		return nil, err
	}
	if windows := len(g.TrainingEnds()); windows != trainingWindows {
		return nil, fmt.Errorf("%s: the states of %d days give %d windows to train on; %d are wanted, of %d days", d.Source.Path, g.Days, windows, trainingWindows, 28+Window+Ahead)
	}
	if err := householdsAsDeclared(g); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Source.Path, err)
	}
	return &data.Federation{Features: Pooled, Classes: 2, Report: reportOf(d.Source.Path, g), Train: []data.Client{g.client(name)}}, nil
}

// loadOwn reads, for a simulation, what every participant would have for itself: a folder of
// eight files each, in one that is named like the participant.
func loadOwn(d config.Data) (*data.Federation, error) {
	if d.Source.Path == "" {
		return nil, fmt.Errorf("data.partition is %s, but data.source.path names no folder: to simulate it, name one that holds a folder of eight files for every participant", Own)
	}
	entries, err := os.ReadDir(d.Source.Path)
	if err != nil {
		return nil, fmt.Errorf("the participants' folders: %w", err)
	}
	all := &data.Federation{Features: Pooled, Classes: 2}
	persons := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		each := d
		each.Source.Path = filepath.Join(d.Source.Path, e.Name())
		f, err := one(each, 0, e.Name())
		if err != nil {
			return nil, err
		}
		all.Train = append(all.Train, f.Train...)
		persons += f.Train[0].Len()
	}
	if len(all.Train) == 0 {
		return nil, fmt.Errorf("%s holds no folder: data.partition %s wants one of eight files for every participant", d.Source.Path, Own)
	}
	all.Report = &data.LoadReport{Source: d.Source.Path, Rows: persons, Kept: persons, LeftOut: []data.LeftOut{}}
	return all, nil
}

// reportOf is what is said of files that were read.
func reportOf(path string, g *Graph) *data.LoadReport {
	return &data.LoadReport{Source: path, Rows: g.Persons(), Kept: g.Persons(), LeftOut: []data.LeftOut{}}
}

// KeepPromise says whether nobody among people to train on has more contacts than a promise
// allows; other examples have none to keep.
func KeepPromise(p data.People, degree int) error {
	t, ok := p.(trainees)
	if !ok {
		return nil
	}
	return Rule{Degree: degree}.promiseHolds(t.g)
}
