package source

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// sqlRows is how many rows of a query make a batch.
const sqlRows = 4096

// readDatabase asks the database in a read-only transaction and encodes its rows in the
// order in which they come.
func (r *Reading) readDatabase(ctx context.Context, c *collector) error {
	ask := askPostgres
	if strings.HasPrefix(r.Source.Database, "sqlite:") {
		ask = askSQLite
	}
	a := &answer{reading: r, collector: c}
	if err := ask(ctx, r.Source, a); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("data.source.database: %w", err)
	}
	return a.flush()
}

// answer takes what a database says, row by row.
type answer struct {
	reading   *Reading
	collector *collector
	rows      rowReader
	piece     *piece
	row       int // number of the last one
}

// header takes the names of the columns. It says whether rows are wanted.
func (a *answer) header(names []string) (bool, error) {
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	head := &piece{}
	l := a.reading.layout("the query", 0, names, &head.faults)
	if l != nil {
		l.byRow = true
		if a.reading.Client == "" && a.reading.Source.Client == "" {
			head.faults.add(Fault{File: l.file, What: "no column names the client, and there is no file that is named after it: set data.source.client"})
			l = nil
		}
	}
	a.rows.layout = l
	return l != nil, a.collector.take(head)
}

// take encodes one row. Cells are text, empty where there is none.
func (a *answer) take(cells [][]byte) error {
	a.row++
	if a.piece == nil {
		a.piece = a.rows.piece(a.collector, a.row, sqlRows)
	}
	a.rows.row(a.piece, a.row, cells)
	if a.piece.rows < sqlRows {
		return nil
	}
	return a.flush()
}

func (a *answer) flush() error {
	if a.piece == nil {
		return nil
	}
	p := a.piece
	a.piece = nil
	return a.collector.take(p)
}

// password is that of the source's variable or file; empty: none is named.
func password(s config.Source) (string, error) {
	switch {
	case s.PasswordEnv != "":
		p, ok := os.LookupEnv(s.PasswordEnv)
		if !ok {
			return "", fmt.Errorf("the environment variable %s, which data.source.password_env names, is not set", s.PasswordEnv)
		}
		return p, nil
	case s.PasswordFile != "":
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("data.source.password_file: %w", err)
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	}
	return "", nil
}

// checkDatabase lists what is wrong with a database's address. Its messages never repeat
// it: it may hold what must not be seen.
func checkDatabase(c *config.Checker, s config.Source) {
	const path = "data.source.database"
	if file, ok := strings.CutPrefix(s.Database, "sqlite:"); ok {
		c.Require(file != "", path, "names no file; write sqlite:FILE")
		c.Require(s.PasswordEnv == "" && s.PasswordFile == "", path, "is an SQLite file, which has no password; remove password_env and password_file")
		return
	}
	u, err := url.Parse(s.Database)
	if err != nil || !slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) || u.Opaque != "" {
		c.Require(false, path, "is not understood; allowed: postgres://user@host/name, or sqlite:FILE")
		return
	}
	_, inside := u.User.Password()
	for key := range u.Query() {
		inside = inside || strings.Contains(strings.ToLower(key), "pass")
	}
	c.Require(!inside, path, "has a password in it; give it in password_env or password_file")
}
