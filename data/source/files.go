package source

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The formats of files.
const (
	formatCSV     = "csv"
	formatParquet = "parquet"
)

// tableEndings are those of the files of a folder that are read.
var tableEndings = []string{".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz", ".tab.gz", ".parquet"}

// files are those that the source's path names, in the order of their names. In a folder
// what is no table by its ending is skipped and named; a file that is named itself, or by
// a pattern, is read whatever its ending.
func (r *Reading) files() (files, skipped []string, err error) {
	path := r.Source.Path
	info, err := os.Stat(path)
	folder := err == nil && info.IsDir()
	var found []string
	switch {
	case folder:
		inside, err := os.ReadDir(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read the table: %w", err)
		}
		for _, f := range inside {
			found = append(found, filepath.Join(path, f.Name()))
		}
	case err == nil:
		return []string{path}, nil, nil
	default:
		if found, err = filepath.Glob(path); err != nil {
			return nil, nil, fmt.Errorf("%s %q is no pattern: %w", r.key(), path, err)
		}
	}
	for _, f := range found {
		info, err := os.Stat(f)
		name := filepath.Base(f)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("read the table: %w", err)
		case info.IsDir(), name[0] == '.',
			folder && !slices.ContainsFunc(tableEndings, func(e string) bool { return strings.HasSuffix(strings.ToLower(name), e) }):
			skipped = append(skipped, name)
		default:
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		what := "names no file"
		if folder {
			what = "is a folder without a file that ends in " + strings.Join(tableEndings, ", ")
		}
		return nil, nil, fmt.Errorf("%s %q %s", r.key(), r.Source.Path, what)
	}
	slices.Sort(files)
	if r.Source.Client == "" && r.Client == "" {
		return files, skipped, oneEach(files)
	}
	return files, skipped, nil
}

func (r *Reading) key() string { return cmp.Or(r.Key, "data.source.path") }

// oneEach refuses two files of one client.
func oneEach(files []string) error {
	seen := map[string]string{}
	for _, f := range files {
		name := ClientOf(f)
		if other, ok := seen[name]; ok {
			return fmt.Errorf("the files %s and %s are both of the client %q: rename one, join them, or name a column in data.source.client", filepath.Base(other), filepath.Base(f), name)
		}
		seen[name] = f
	}
	return nil
}

// formatOf is that of a file: the run file's word, or its ending's.
func (r *Reading) formatOf(path string) string {
	switch {
	case r.Source.Format != "":
		return r.Source.Format
	case strings.HasSuffix(strings.ToLower(path), ".parquet"):
		return formatParquet
	}
	return formatCSV
}
