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
	Path         string `yaml:"path,omitempty" jsonschema_description:"a file, a folder, or a pattern such as wards/*.csv, one file a client that is named after it, unless client names a column; seen from the folder of the file that says so; empty: there is a database instead"`
	Format       string `yaml:"format,omitempty" jsonschema:"enum=csv,enum=parquet" jsonschema_description:"for tables csv (comma, semicolon or tab; gzip) or parquet; empty: as the file's name says"`
	Client       string `yaml:"client,omitempty" jsonschema_description:"for tables the column that names the client; empty: the file's name does"`
	Database     string `yaml:"database,omitempty" jsonschema_description:"for tables postgres://user@host/name or sqlite:FILE, without a password; empty: there is a path instead"`
	Query        string `yaml:"query,omitempty" jsonschema_description:"what is asked of the database, in a read-only transaction; empty: there is none"`
	PasswordEnv  string `yaml:"password_env,omitempty" jsonschema_description:"environment variable that holds the database's password; empty: none does"`
	PasswordFile string `yaml:"password_file,omitempty" jsonschema_description:"file that holds the database's password, seen from the folder of the file that says so; empty: none does"`
}

// Column is a column of a table and what is public about it.
type Column struct {
	Name     string    `yaml:"name" jsonschema_description:"the column, as the header has it"`
	Type     string    `yaml:"type,omitempty" jsonschema:"enum=number,enum=category,enum=yes/no" jsonschema_description:"what the column holds: number, a number in a public range; category, one of a public list, anything else being other; yes/no, one of two answers"`
	Range    []float64 `yaml:"range,omitempty" only:".type=number" jsonschema_description:"lowest and highest public value; what lies outside is moved to the nearer one"`
	Values   []Cell    `yaml:"values,omitempty" only:".type=category|yes/no" jsonschema_description:"for a category the public list; for yes/no how no and yes are written (empty: no/yes, n/y, false/true or 0/1)"`
	Missing  string    `yaml:"missing,omitempty" jsonschema:"enum=refuse,enum=constant,enum=indicator" jsonschema_description:"what an empty cell is: a fault, a public constant, or an input of its own; empty: a fault"`
	Constant Cell      `yaml:"constant,omitempty" only:".missing=constant" jsonschema_description:"what an empty cell stands for"`
}

// TestPart says which rows are held out, where a share of each client's is not meant.
type TestPart struct {
	Column string `yaml:"column,omitempty" jsonschema_description:"for tables a column that marks the rows that are held out; empty: none does"`
	Value  Cell   `yaml:"value,omitempty" jsonschema_description:"the value in column that marks a row as held out; empty: there is no column"`
	Path   string `yaml:"path,omitempty" jsonschema_description:"a file, folder or pattern of held-out examples, laid out as the source is, seen from the folder of the file that says so; empty: there is none"`
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
	for _, path := range []*string{&d.Source.Path, &d.Source.PasswordFile, &d.Test.Path, &d.Projection, &d.Merges} {
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
