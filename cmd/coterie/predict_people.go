package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/sim"
)

// people are the persons that the flags mean: those of the run itself, or of another folder
// of the challenge's eight files.
func (f *rowFlags) people(m *artifact.Model) (artifact.People, error) {
	if f.source.Database != "" || f.source.Query != "" || f.source.Client != "" || f.cluster >= 0 || len(f.keep) > 0 {
		return artifact.People{}, fmt.Errorf("%w: the models are of people, whom --data names by the folder of their eight files (without it they are the run's own); leave out --database, --query, --client-column, --cluster and --keep", errUsage)
	}
	run, own, err := peopleRun(m.Path)
	if err != nil {
		return artifact.People{}, err
	}
	if f.source.Path != "" {
		run.Data.Source, run.Data.Persons, run.Data.PopulationSeed, run.Data.Households = config.Source{Path: f.source.Path}, 0, 0, ""
	} else if !own {
		return artifact.People{}, fmt.Errorf("%w: %s holds no run file that names its own people; name the folder of their eight files by --data", errUsage, m.Path)
	}
	fed, err := data.NewFolder(dataFolder("")).Load(run.Data, run.Seed)
	if err != nil {
		return artifact.People{}, err
	}
	if f.source.Path == "" {
		if err := samePeople(m.Path, fed.Report); err != nil {
			return artifact.People{}, err
		}
	}
	p := artifact.People{Client: f.client, Known: true}
	for i := range fed.Train {
		held := fed.Train[i].Held
		p.Clients = append(p.Clients, held)
		if g := contacts.HeldBy(held.People); g == nil || g.Target == nil {
			p.Known = false
		}
	}
	return p, nil
}

// peopleRun is the run that left a folder; not its own, if it has none: then only what
// kind of data they are is known.
func peopleRun(dir string) (run config.Run, own bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, sim.RunFile))
	if errors.Is(err, fs.ErrNotExist) {
		run.Data = config.Data{Kind: "pandemic", Partition: contacts.Central}
		return run, false, nil
	}
	if err != nil {
		return run, false, fmt.Errorf("the run's own people: %w", err)
	}
	if run, err = config.Resolve(text, nil, sim.Checks()...); err != nil {
		return run, false, fmt.Errorf("%s: %w", filepath.Join(dir, sim.RunFile), err)
	}
	return run, true, nil
}

// samePeople says whether what was loaded is what the run was trained on: a generated
// population depends on the households at hand, and files may have changed.
func samePeople(dir string, now *data.LoadReport) error {
	res, err := report.Load(dir)
	if err != nil {
		return err
	}
	if then := res.Data; then == nil || now == nil || then.Rows != now.Rows || !slices.Equal(then.Notes, now.Notes) {
		return fmt.Errorf("the people of %s are not those that it was trained on: then %s, now %s; set COTERIE_DATA as it was then, or name a folder of people by --data", dir, loadedWords(then), loadedWords(now))
	}
	return nil
}

// loadedWords say in a line what was loaded.
func loadedWords(r *data.LoadReport) string {
	if r == nil {
		return "nothing known"
	}
	return strings.Join(append([]string{fmt.Sprintf("%d persons", r.Rows)}, r.Notes...), ", ")
}
