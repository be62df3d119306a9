package contacts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/internal/pool"
)

// mostNumber bounds the numbers of persons, households and places in the files.
const mostNumber = 1 << 53

// reading is what has been read so far.
type reading struct {
	workers    int
	pool       *pool.Pool
	tables     map[string]*table
	faults     Faults
	graph      *Graph
	person     []numbered[person]
	household  []numbered[household]
	persons    *numbers
	residences *numbers
	locations  *numbers
	regions    []uint8  // by residence
	homes      []uint32 // by household: its residence; unknown: not yet
	homesTold  bool     // by the household table; otherwise by where its persons are at home
	scenes     bool     // contacts are kept with time and place
}

// Read reads a population from the challenge's eight files in a folder, plain or gzip, with
// or without a prefix such as va_. Rows may stand in any order. The file of targets may be
// missing. All faults, up to some a file, are listed at once, as [*Faults].
func Read(dir string) (*Graph, error) { return read(dir, false) }

// ReadScenes is Read of a graph that holds when and where contacts took place, too.
func ReadScenes(dir string) (*Graph, error) { return read(dir, true) }

func read(dir string, scenes bool) (*Graph, error) {
	r := &reading{workers: runtime.GOMAXPROCS(0), graph: &Graph{}, scenes: scenes}
	if err := r.find(dir); err != nil {
		return nil, err
	}
	r.pool = pool.New(r.workers)
	defer r.pool.Close()
	// What later files refer to must be whole before they are read.
	for _, stage := range [][]func() error{
		{r.readPersons, r.readHouseholds, r.readResidences, r.readLocations},
		{r.join},
		{r.readAssignments, r.settle, r.readNetwork, r.readTraining, r.readTarget},
	} {
		for _, read := range stage {
			if err := read(); err != nil {
				return nil, err
			}
		}
		if err := r.faults.orNil(); err != nil {
			return nil, err
		}
	}
	return r.graph, nil
}

// find finds the files in the folder.
func (r *reading) find(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the folder of the population: %w", err)
	}
	r.tables = map[string]*table{}
	for _, name := range Files() {
		var found []string
		for _, e := range entries {
			plain := strings.TrimSuffix(e.Name(), ".gz")
			if plain == name || strings.HasSuffix(plain, "_"+name) {
				found = append(found, e.Name())
			}
		}
		switch {
		case len(found) == 1:
			columns := readColumns[name]
			if r.scenes {
				columns = slices.Concat(columns, sceneColumns[name])
			}
			r.tables[name] = &table{name: found[0], path: filepath.Join(dir, found[0]), columns: columns}
		case len(found) > 1:
			r.faults.add(name, 0, "there are %d of them in %s: %s; leave one there", len(found), dir, strings.Join(found, ", "))
		case name != targetFile:
			r.faults.add(name, 0, "is missing in %s, with or without a prefix or .gz; the eight files are: %s", dir, strings.Join(Files(), ", "))
		}
	}
	return r.faults.orNil()
}

// readColumns are those that are read; others may be there.
var readColumns = map[string][]string{
	personFile:     {"pid", "hid", "age", "sex"},
	householdFile:  {"hid", "hh_size"},
	residenceFile:  {"rlid", "longitude", "latitude"},
	locationFile:   {"alid"},
	assignmentFile: {"pid", "lid", "activity_type", "duration"},
	networkFile:    {"pid1", "pid2", "duration", "activity1", "activity2"},
	trainingFile:   {"pid", "day", "state"},
	targetFile:     {"pid", "infected"},
}

// sceneColumns are those that are read as well where scenes are asked for.
var sceneColumns = map[string][]string{
	locationFile: {"longitude", "latitude", "work", "school", "shopping", "other", "college", "religion"}, // as the bits of Did
	networkFile:  {"lid", "start_time"},
}

type person struct {
	household int64
	age, sex  uint8
}

type household struct {
	residence int64
	size      uint8
}

// collect reads a table whose rows are kept.
func collect[T any](r *reading, t *table, into *[]numbered[T], parse func(l *line) (int64, T, bool)) error {
	return t.readBlocks(r.workers, &r.faults, func(b *parsed) func(l *line) {
		rows := new([]numbered[T])
		b.found = rows
		return func(l *line) {
			if number, row, ok := parse(l); ok {
				*rows = append(*rows, numbered[T]{number, l.number, row})
			}
		}
	}, func(found any) { *into = append(*into, *found.(*[]numbered[T])...) })
}

func (r *reading) readPersons() error {
	t := r.tables[personFile]
	err := collect(r, t, &r.person, func(l *line) (int64, person, bool) {
		pid, ok1 := l.integer(t, 0, 0, mostNumber)
		hid, ok2 := l.integer(t, 1, 0, mostNumber)
		age, ok3 := l.integer(t, 2, 0, maxAge)
		sex, ok4 := l.integer(t, 3, 1, 2)
		return pid, person{hid, uint8(age), uint8(sex)}, ok1 && ok2 && ok3 && ok4
	})
	if err != nil {
		return err
	}
	if len(r.person) == 0 && r.faults.count(t.name) == 0 {
		r.faults.add(t.name, 0, "no persons")
	}
	if len(r.person) > MostPersons {
		r.faults.add(t.name, 0, "%d persons; allowed: at most %d", len(r.person), MostPersons)
	}
	r.persons = inOrderOf(r.person, t, "pid", &r.faults)
	return nil
}

func (r *reading) readHouseholds() error {
	t := r.tables[householdFile]
	header, err := t.header()
	if err != nil {
		return err
	}
	r.homesTold = slices.Contains(header, "rlid")
	if r.homesTold {
		t.columns = append(slices.Clone(t.columns), "rlid")
	}
	return collect(r, t, &r.household, func(l *line) (int64, household, bool) {
		hid, ok1 := l.integer(t, 0, 0, mostNumber)
		size, ok2 := l.integer(t, 1, 1, maxHousehold)
		h, ok3 := household{size: uint8(size)}, true
		if r.homesTold {
			h.residence, ok3 = l.integer(t, 2, 0, mostNumber)
		}
		return hid, h, ok1 && ok2 && ok3
	})
}

// header are a table's columns.
func (t *table) header() ([]string, error) {
	in, done, err := t.open()
	if err != nil {
		return nil, err
	}
	defer done()
	text, err := in.ReadString('\n')
	if err != nil && len(text) == 0 {
		return nil, nil // what is missing is found by reading
	}
	names := strings.Split(strings.TrimRight(text, "\r\n"), ",")
	for i := range names {
		names[i] = strings.ToLower(strings.Trim(strings.TrimSpace(names[i]), `"`))
	}
	return names, nil
}

func (r *reading) readResidences() error {
	type residence struct {
		region uint8
		at     Place
	}
	t := r.tables[residenceFile]
	var rows []numbered[residence]
	err := collect(r, t, &rows, func(l *line) (int64, residence, bool) {
		rlid, ok1 := l.integer(t, 0, 0, mostNumber)
		longitude, ok2 := l.degrees(t, 1, -180, 180)
		latitude, ok3 := l.degrees(t, 2, -90, 90)
		return rlid, residence{uint8(RegionAt(longitude, latitude)), placeAt(longitude, latitude, 0)}, ok1 && ok2 && ok3
	})
	if err != nil {
		return err
	}
	r.residences = inOrderOf(rows, t, "rlid", &r.faults)
	r.regions = make([]uint8, len(rows))
	for i, row := range rows {
		if r.regions[i] = row.row.region; r.scenes {
			r.graph.Places = append(r.graph.Places, row.row.at)
		}
	}
	return nil
}

func (r *reading) readLocations() error {
	t := r.tables[locationFile]
	var rows []numbered[Place]
	err := collect(r, t, &rows, func(l *line) (int64, Place, bool) {
		alid, ok := l.integer(t, 0, 0, mostNumber)
		if !r.scenes || !ok {
			return alid, Place{}, ok
		}
		at, ok := l.location(t)
		return alid, at, ok
	})
	if err != nil {
		return err
	}
	r.locations = inOrderOf(rows, t, "alid", &r.faults)
	if r.scenes { // after the residences
		for _, row := range rows {
			r.graph.Places = append(r.graph.Places, row.row)
		}
	}
	return nil
}

// location is where a line's place lies, and what for.
func (l *line) location(t *table) (Place, bool) {
	longitude, ok1 := l.degrees(t, 1, -180, 180)
	latitude, ok2 := l.degrees(t, 2, -90, 90)
	at, ok := placeAt(longitude, latitude, 0), ok1 && ok2
	for bit := range 6 {
		serves, known := l.integer(t, 3+bit, 0, 1)
		at.For, ok = at.For|Did(serves<<bit), ok && known
	}
	return at, ok
}
