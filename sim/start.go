package sim

import (
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// readStart reads what training starts from: a file, or a folder's usual one. A run's model
// of words must be of the same words.
func readStart(path string, block config.Model, f *data.Federation) ([]float64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		path = filepath.Join(path, model.StartFile)
	}
	theta, err := model.ReadStart(os.DirFS(filepath.Dir(path)), filepath.Base(path), block, f.Shape())
	if err == nil && f.Words != nil {
		err = artifact.SameWords(filepath.Dir(path), f.Words)
	}
	return theta, err
}
