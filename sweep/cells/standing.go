package cells

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// StandingFile is where a study that goes on says how far it is, for whoever looks.
const StandingFile = "standing.json"

// Standing is how many cells are done, of those that are known so far: later stages of a
// study are known once the earlier ones are done.
type Standing struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Write replaces a folder's standing. It is not synced: a lost one is told again.
func (s Standing) Write(folder string) error {
	return replace(filepath.Join(folder, StandingFile), s)
}

// CrewFile is where a sweep, a study or a run of many seeds that goes on says who makes its
// cells, for whoever looks: written anew every few seconds, it is the sign of life of cells
// that take long.
const CrewFile = "workers.json"

// Crew is who makes cells over a queue; nobody is named where there is none.
type Crew struct {
	Workers []Hand `json:"workers"`
}

// Hand is a worker, as it says of itself.
type Hand struct {
	Name  string   `json:"name"`
	Slots int      `json:"slots"` // cells at the same time
	Made  int64    `json:"made"`  // cells so far, of all who asked
	Doing []string `json:"doing"`
}

// Write replaces a folder's crew, as Standing's Write does.
func (c Crew) Write(folder string) error { return replace(filepath.Join(folder, CrewFile), c) }

func replace(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
