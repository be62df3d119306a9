package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/durable"
)

// FingerprintFile says which data something in a folder was made on, for the owner of the
// data alone: results may be published, and what recognises private rows must not be.
const FingerprintFile = "data.fingerprint"

// AboutFingerprints stands first in every such file.
const AboutFingerprints = "Recognises the data that this folder was made on. It is for their owner alone: guesses at private rows can be tried against it. Leave it out of what you publish; without it the folder is not taken up again."

// fingerprinted is what the file of one run holds.
type fingerprinted struct {
	About string           `json:"about"`
	Data  data.Fingerprint `json:"data"`
}

// DataKey names the data that a run reads or draws: those of runs with one key are the same.
func DataKey(run config.Run) (string, error) {
	text, err := json.Marshal(run.Data)
	return fmt.Sprintf("%s seed %d asked %v", text, run.Seed, holdsAsked(run)), err
}

// DigestOf draws or reads the data that New would train on, to tell them from others.
func DigestOf(run config.Run, folder *data.Folder) (data.Digest, error) {
	federation, err := load(run, folder)
	if err != nil {
		return data.Digest{}, err
	}
	digest := federation.Digest()
	if federation.Crowd != nil {
		err = federation.Crowd.Close()
	}
	return digest, err
}

// NoteData writes into a folder which data it is made on.
func NoteData(folder string, d data.Digest) error {
	text, err := json.MarshalIndent(fingerprinted{AboutFingerprints, d.Fingerprint()}, "", " ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(folder, FingerprintFile), append(text, '\n'), 0o600)
}

// SameData refuses a folder that was made on other data than these, or does not say on which.
func SameData(folder string, d data.Digest) error {
	path := filepath.Join(folder, FingerprintFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not say which data it was made on: there is no %s, an earlier version made it or somebody removed that", folder, FingerprintFile)
	}
	if err != nil {
		return fmt.Errorf("on which data was it made: %w", err)
	}
	var noted fingerprinted
	if err = json.Unmarshal(text, &noted); err == nil && !noted.Data.Known() {
		err = errors.New("it has no fingerprint")
	}
	if err != nil {
		return fmt.Errorf("%s is damaged, and does not say which data the folder was made on: %w", path, err)
	}
	if what := d.Changed(noted.Data); what != "" {
		return fmt.Errorf("%s was made on other data: they were changed since (%s)", folder, what)
	}
	return nil
}
