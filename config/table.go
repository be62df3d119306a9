package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/invopop/jsonschema"
)

// Cell is a value of a table as run files write it: text, a number, true or false.
type Cell string

// Source says where rows or pictures lie. It is local: a federation's plan has none.
type Source struct {
	Path         string `yaml:"path,omitempty" jsonschema_description:"a file, a folder, or a pattern such as wards/*.csv: one file a client, named after it, unless client names a column; seen from the run file's folder"`
	Format       string `yaml:"format,omitempty" jsonschema:"enum=csv,enum=parquet" jsonschema_description:"table: csv (comma, semicolon or tab; gzip), or parquet; empty: as the file's name says"`
	Client       string `yaml:"client,omitempty" jsonschema_description:"table: the column that names the client"`
	Database     string `yaml:"database,omitempty" jsonschema_description:"table: postgres://user@host/name or sqlite:FILE, instead of a path; without a password"`
	Query        string `yaml:"query,omitempty" jsonschema_description:"table: what is asked of the database, in a read-only transaction"`
	PasswordEnv  string `yaml:"password_env,omitempty" jsonschema_description:"table: the environment variable that holds the database's password"`
	PasswordFile string `yaml:"password_file,omitempty" jsonschema_description:"table: the file that holds it; seen from the run file's folder"`
}

// Column is a column of a table and what is public about it.
type Column struct {
	Name     string    `yaml:"name" jsonschema_description:"as the header has it"`
	Type     string    `yaml:"type,omitempty" jsonschema:"enum=number,enum=category,enum=yes/no" jsonschema_description:"number: within a public range; category: one of a public list, anything else is other; yes/no"`
	Range    []float64 `yaml:"range,omitempty" jsonschema_description:"number: lowest and highest public value; what lies outside is moved to the nearer one"`
	Values   []Cell    `yaml:"values,omitempty" jsonschema_description:"category: the public list; yes/no: how no and yes are written; empty: no/yes, n/y, false/true or 0/1"`
	Missing  string    `yaml:"missing,omitempty" jsonschema:"enum=refuse,enum=constant,enum=indicator" jsonschema_description:"an empty cell: is a fault (the default), stands for a public constant, or sets an input of its own"`
	Constant Cell      `yaml:"constant,omitempty" jsonschema_description:"missing constant: what an empty cell stands for"`
}

// TestPart says which rows are held out, where a share of each client's is not meant.
type TestPart struct {
	Column string `yaml:"column,omitempty" jsonschema_description:"table: rows with value in this column are held out"`
	Value  Cell   `yaml:"value,omitempty" jsonschema_description:"table: of that column"`
	Path   string `yaml:"path,omitempty" jsonschema_description:"a file, folder or pattern of its own, laid out as the source is; seen from the run file's folder"`
}

// JSONSchema says that a cell may be written as text, as a number, or as true or false.
func (Cell) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// TakenFromData says, for every key in not_public, that its value tells of the data: no
// proof about any protection covers that.
func (d Data) TakenFromData() []string {
	var out []string
	for _, key := range d.NotPublic {
		out = append(out, key+" was taken from the data (data.not_public)")
	}
	return out
}

// Under is the block with its paths seen from a folder, the run file's, instead of from
// the working directory.
func (d Data) Under(folder string) (Data, error) {
	for _, path := range []*string{&d.Source.Path, &d.Source.PasswordFile, &d.Test.Path} {
		if err := under(folder, path); err != nil {
			return d, err
		}
	}
	if file, ok := strings.CutPrefix(d.Source.Database, "sqlite:"); ok {
		if err := under(folder, &file); err != nil {
			return d, err
		}
		d.Source.Database = "sqlite:" + file
	}
	return d, nil
}

func under(folder string, path *string) error {
	if *path == "" || filepath.IsAbs(*path) {
		return nil
	}
	whole, err := filepath.Abs(filepath.Join(folder, *path))
	if err != nil {
		return fmt.Errorf("find %s: %w", *path, err)
	}
	*path = whole
	return nil
}
