package sim

import (
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// readStart reads what training starts from: a file, or a folder's usual one.
func readStart(path string, block config.Model, s data.Shape) ([]float64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		path = filepath.Join(path, model.StartFile)
	}
	return model.ReadStart(os.DirFS(filepath.Dir(path)), filepath.Base(path), block, s)
}
