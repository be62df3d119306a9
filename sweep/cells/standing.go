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
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, StandingFile)
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
