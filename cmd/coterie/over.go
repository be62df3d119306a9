package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/sim"
)

// What commands call the files that they write and those that they read.
var (
	writtenFlags = []string{"out", "report"}
	readFlags    = []string{"data", "database", "merges", "model", "password-file"}
)

// The files of a folder that are read where the folder is named: of a run those that it
// rests on, of data what ends like data.
var (
	runFiles    = []string{sim.RunFile, sim.ResultFile, artifact.DescriptionFile, artifact.ModelFile, artifact.PersonalFile, artifact.MergesFile}
	textEndings = []string{".txt", ".txt.gz"}
	dataEndings = slices.Concat(textEndings, []string{".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz", ".tab.gz", ".parquet", ".npz"})
)

// notOver refuses to write a file over one that the same command reads: it would be gone.
func notOver(cmd *cobra.Command, args []string) error {
	for _, name := range writtenFlags {
		flag := cmd.Flags().Lookup(name)
		if flag == nil || flag.Value.String() == "" {
			continue
		}
		there, err := os.Stat(flag.Value.String())
		if err != nil || there.IsDir() {
			continue // nothing is there, or a folder is meant
		}
		refuse := func(read, how string) error {
			if info, err := os.Stat(read); err == nil && os.SameFile(there, info) {
				return fmt.Errorf("%w: --%s %s would replace %s, which is read (%s): name another file", errUsage, name, flag.Value, read, how)
			}
			return nil
		}
		for _, read := range readFlags {
			if f := cmd.Flags().Lookup(read); f != nil && f.Value.String() != "" {
				for _, file := range filesAt(strings.TrimPrefix(f.Value.String(), "sqlite:"), endsIn(dataEndings)) {
					if err := refuse(file, "--"+read); err != nil {
						return err
					}
				}
			}
		}
		for _, arg := range args {
			for _, file := range filesAt(arg, func(name string) bool { return slices.Contains(runFiles, name) || endsIn(textEndings)(name) }) {
				if err := refuse(file, arg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func endsIn(endings []string) func(name string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(strings.ToLower(name), e) })
	}
}

// filesAt are the files that a path or a pattern names; of a folder those that are read.
func filesAt(path string, isRead func(name string) bool) []string {
	info, err := os.Stat(path)
	if err != nil {
		found, _ := filepath.Glob(path)
		return found
	}
	if !info.IsDir() {
		return []string{path}
	}
	inside, err := os.ReadDir(path)
	if err != nil {
		return nil // whoever reads it says so
	}
	var found []string
	for _, f := range inside {
		if !f.IsDir() && isRead(f.Name()) {
			found = append(found, filepath.Join(path, f.Name()))
		}
	}
	return found
}
