package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/bytepair"
)

// Cut has the folder carry the pairs that its models' words are made of, so that whoever
// has the folder can cut text as in training. Nil: there are no words.
func (d *Description) Cut(words *bytepair.Encoding) error {
	if words == nil {
		return nil
	}
	var err error
	d.merges, d.MergesSHA256, err = pairsOf(words)
	return err
}

// pairsOf are an encoding's pairs as a file has them, and their hash.
func pairsOf(words *bytepair.Encoding) (text []byte, hash string, err error) {
	var out bytes.Buffer
	if err := words.Write(&out); err != nil {
		return nil, "", fmt.Errorf("describe the words: %w", err)
	}
	sum := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(sum[:]), nil
}

// ErrWords means that text cannot be cut into the words that models were trained on.
var ErrWords = errors.New("other words than the models'")

// fits says whether the folder's words are these; a folder that was written before it
// carried any does not know.
func (d *Description) fits(words *bytepair.Encoding, from string) error {
	if _, hash, err := pairsOf(words); err != nil || d.MergesSHA256 == "" || hash == d.MergesSHA256 {
		return err
	}
	return fmt.Errorf("%w: the first %d words that %s makes are not those that the models were trained on", ErrWords, d.Shape.Vocabulary, from)
}

// SameWords says whether the models of a folder, if it describes any, are of these words.
func SameWords(dir string, words *bytepair.Encoding) error {
	text, err := os.ReadFile(filepath.Join(dir, DescriptionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var d Description
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("%s: %w", DescriptionFile, err)
	}
	if err := d.fits(words, "the run's data block"); err != nil {
		return fmt.Errorf("%w; set data.merges %s", err, filepath.Join(dir, MergesFile))
	}
	return nil
}

// words is how text is cut for the models: by the file that is named, or else by what the
// folder carries. One that carries nothing is of an older version: then by what the run
// file beside it names, or GPT-2's pairs in the folder of real data.
func (m *Model) words(named string, folder *data.Folder) (*bytepair.Encoding, error) {
	own := filepath.Join(m.Path, MergesFile)
	switch {
	case named != "":
	case m.MergesSHA256 != "":
		named = own
	default:
		if text, err := os.ReadFile(filepath.Join(m.Path, "run.yaml")); err == nil {
			if file, err := config.Load(text); err == nil {
				named = file.Run.Data.Merges
			}
		}
	}
	e, err := folder.Encoding(config.Data{Vocabulary: m.Shape.Vocabulary, Merges: named})
	switch {
	case named == own && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing: the pairs that its models' words are made of; copy it from where the models come from, or name the file they were trained with (--merges): %w", own, err)
	case err != nil:
		return nil, err
	}
	switch err := m.fits(e, named); {
	case err != nil && named == own:
		return nil, fmt.Errorf("%w; copy %s, %s and %s from one folder", err, DescriptionFile, ModelFile, MergesFile)
	case err != nil:
		return nil, fmt.Errorf("%w; leave --merges out: the folder carries its own", err)
	}
	return e, nil
}
