package data

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
)

// SensitiveColumn is a sensitive attribute of the held-out rows.
type SensitiveColumn struct {
	Name   string
	Values []string
	// Groups is, client by client and row by row, the place in Values; -1: none of them.
	Groups [][]int32
}

// Partition says how the rows of a table become clients of Size rows each.
type Partition struct {
	Seed uint64
	Size int
	// By is a sensitive attribute: every client's rows then share its value, which is
	// the client's group. Empty: rows go to clients at random.
	By string
}

// piece is one client, as rows of a table.
type piece struct {
	rows  []int
	group int
}

// cut shuffles the rows, by seed and purpose, and deals them out. The last client
// of a group takes what is left, so that no row is lost.
func (d *Tabular) cut(p Partition, purpose string) ([]piece, error) {
	if p.Size < 1 {
		return nil, fmt.Errorf("clients of %d rows; allowed: 1 or more", p.Size)
	}
	groups := [][]int{shuffled(p.Seed, purpose, d.Len())}
	if p.By != "" {
		at := slices.IndexFunc(d.Sensitive, func(a Attribute) bool { return a.Name == p.By })
		if at < 0 {
			return nil, fmt.Errorf("there is no sensitive attribute %q", p.By)
		}
		order, attribute := groups[0], d.Sensitive[at]
		groups = make([][]int, len(attribute.Values))
		for _, row := range order {
			g := attribute.Groups[row]
			groups[g] = append(groups[g], row)
		}
	}
	var out []piece
	for g, rows := range groups {
		for chunk := range slices.Chunk(rows, p.Size) {
			out = append(out, piece{chunk, g})
		}
	}
	return out, nil
}

// clients copies the pieces' rows.
func (d *Tabular) clients(pieces []piece) []Client {
	out := make([]Client, len(pieces))
	for i, p := range pieces {
		out[i] = Client{Rows: d.pick(p.rows), Group: p.group}
	}
	return out
}

// sensitive are the attributes of the pieces' rows.
func (d *Tabular) sensitive(pieces []piece) []SensitiveColumn {
	var out []SensitiveColumn
	for _, a := range d.Sensitive {
		column := SensitiveColumn{Name: a.Name, Values: a.Values}
		for _, p := range pieces {
			groups := make([]int32, len(p.rows))
			for i, row := range p.rows {
				groups[i] = int32(a.Groups[row])
			}
			column.Groups = append(column.Groups, groups)
		}
		out = append(out, column)
	}
	return out
}

// Federation makes rows of train the clients that train and rows of test those that
// validate. If they are the same table, share of its clients train.
func (d *Tabular) Federation(test *Tabular, p Partition, share float64) (*Federation, error) {
	pieces, err := d.cut(p, "data: rows of a table")
	if err != nil {
		return nil, err
	}
	var held []piece
	if test != d {
		if held, err = test.cut(p, "data: rows of a test table"); err != nil {
			return nil, err
		}
	} else {
		train, rest, err := splitKeyed(p.Seed, "data: clients held out", len(pieces), share)
		if err != nil {
			return nil, err
		}
		pieces, held = those(pieces, train), those(pieces, rest)
	}
	return &Federation{
		Features: d.Features, Train: d.clients(pieces), Validation: test.clients(held), Sensitive: test.sensitive(held), Report: &d.Report,
	}, nil
}

// tableKind is a data set of rows with sensitive attributes, dealt out to clients.
// Load reads one of its parts; without a part of its own to validate on, a share of
// the rows serves.
func tableKind(name, words, get string, s schema, ownTest bool, load func(folder, part string, o TabularOptions) (*Tabular, error)) Kind {
	keys := []string{"samples", "partition", "sensitive_features"}
	if !ownTest {
		keys = append(keys, "train_share")
	}
	return Kind{
		DataKind: config.DataKind{Name: name, Keys: keys}, Get: get,
		Check: func(c *config.Checker, d config.Data) {
			c.Require(slices.Contains([]string{"", "random", "sex", "race"}, d.Partition), "data.partition", "is %s, which is for populations; allowed for tables: random, sex, race", d.Partition)
		},
		Shape: func(d config.Data) (Shape, bool) {
			return Shape{Features: s.width(TabularOptions{SensitiveFeatures: d.SensitiveFeatures})}, true
		},
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			return f.tabular(d, seed, ownTest, load)
		},
		Words: func(d config.Data) string {
			dealt, rows := "dealt out at random", "rows"
			if d.Partition != "" && d.Partition != "random" {
				dealt = "all of the same " + d.Partition
			}
			if d.Samples == 1 {
				rows = "row"
			}
			return fmt.Sprintf("%s: clients of up to %d %s, %s", words, d.Samples, rows, dealt)
		},
	}
}

// tabular reads a table's parts, each once, and deals their rows out.
func (f *Folder) tabular(d config.Data, seed uint64, ownTest bool, load func(folder, part string, o TabularOptions) (*Tabular, error)) (*Federation, error) {
	p := Partition{Seed: seed, Size: d.Samples, By: d.Partition}
	if d.Partition == "random" {
		p.By = ""
	}
	o := TabularOptions{SensitiveFeatures: d.SensitiveFeatures}
	read := func(part string) (*Tabular, error) {
		return once(f, fmt.Sprint(d.Kind, part, o), []string{d.Kind}, func(folder string) (*Tabular, error) { return load(folder, part, o) })
	}
	train, err := read("train")
	if err != nil {
		return nil, err
	}
	if !ownTest {
		return train.Federation(train, p, d.TrainShare)
	}
	test, err := read("test")
	if err != nil {
		return nil, err
	}
	return train.Federation(test, p, 1)
}

// width is how many features a table has.
func (s schema) width(o TabularOptions) int {
	var d Tabular
	for _, f := range s.features {
		d.describe(f, o)
	}
	return len(d.Names)
}
