package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/tier"
)

const wardTable = `CREATE TABLE ward (id INTEGER, site TEXT, ill BOOLEAN, age INTEGER, ward TEXT, bmi DOUBLE PRECISION, smoker BOOLEAN, sex TEXT, born DATE)`

// wardRows are the same in both databases; the second has no target, the third no BMI.
var wardRows = []string{
	"(1, 'N', true, 50, 'A', 22.5, false, 'f', '1980-02-29')",
	"(2, ' S ', NULL, 50, 'A', 22.5, false, 'f', '1980-02-29')",
	"(3, 'S', false, 150, 'C', NULL, true, 'x', NULL)",
}

func checkWardRows(t *testing.T, d config.Data) {
	t.Helper()
	d.TargetMissing = "leave-out"
	d.Source.Query = "SELECT * FROM ward ORDER BY id"
	r := reading(t, d)
	r.Keep = []string{"born", "id"}
	b, tally, err := all(r)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(b.X, b.Y, b.Clients, b.Groups, b.Missing, b.Kept, tally.Rows, tally.LeftOut)
	if want := "[0 1 0 0 -0.5 0 1 0 0 0 0 1] [1 0] [N S] [[0 -1]] [0 1] [[1980-02-29 1] [ 3]] 3 1"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	d.TargetMissing = ""
	d.Source.Query = "SELECT id, site, ill, 'old' AS age, ward, bmi, smoker, sex FROM ward ORDER BY id DESC"
	_, _, err = all(reading(t, d))
	var faults *Faults
	if !errors.As(err, &faults) || faults.Count != 4 || !strings.Contains(err.Error(), "the query, row 2, column ill: the target is missing") || !strings.Contains(err.Error(), "row 3, column age: \"old\" is not a number") {
		t.Errorf("%v", err)
	}
	d.Source.Query = "SELECT site FROM ward"
	if _, _, err = all(reading(t, d)); err == nil || !strings.Contains(err.Error(), "the query, column age: is not in the header, which has site") {
		t.Error(err)
	}
	d.Source.Query = "SELECT nothing FROM ward"
	if _, _, err = all(reading(t, d)); err == nil || !strings.Contains(err.Error(), "nothing") || errors.Is(err, ErrTable) {
		t.Error(err)
	}
	d.Source.Query, d.Source.Client = "SELECT * FROM ward", ""
	if _, _, err = all(reading(t, d)); err == nil || !strings.Contains(err.Error(), "set data.source.client") {
		t.Error(err)
	}
	// Many rows come in order, in batches; a stop is a stop.
	d.Source.Query = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 20000) SELECT 'c' AS site, 1 AS ill, i % 100 AS age, 'A' AS ward, 20 AS bmi, 0 AS smoker, 'f' AS sex FROM n ORDER BY i"
	d.Source.Client = "site"
	if b, _, err = all(reading(t, d)); err != nil || b.Rows != 20001 {
		t.Fatalf("%v, %d rows", err, b.Rows)
	}
	for i := range b.Rows {
		if want := (float64(i%100) - 50) / 50; b.X[i*6] != want {
			t.Fatalf("row %d: %v, want %v", i, b.X[i*6], want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.Source.Query = strings.ReplaceAll(d.Source.Query, "20000", "2000000000")
	d.Source.Query = strings.ReplaceAll(d.Source.Query, "ORDER BY i", "")
	if _, err := reading(t, d).Each(ctx, func(*Batch) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
}

func TestSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ward?.db")
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{wardTable, "INSERT INTO ward VALUES " + strings.Join(wardRows, ",")} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d := ward("")
	d.Source = config.Source{Database: "sqlite:" + path, Client: "site"}
	checkWardRows(t, d)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"DELETE FROM ward RETURNING *", "INSERT INTO ward SELECT * FROM ward RETURNING *", "PRAGMA query_only=0; DELETE FROM ward", "COMMIT; PRAGMA query_only=0; DELETE FROM ward; SELECT * FROM ward", "CREATE TABLE x (a)"} {
		d.Source.Query = q
		if _, _, err := all(reading(t, d)); err == nil {
			t.Errorf("%s was done", q)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file is another: %v", err)
	}
	d.Source.Database = "sqlite:" + path + "x"
	if _, _, err := all(reading(t, d)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(path + "x"); err == nil {
		t.Error("a file was made")
	}
}

// TestPostgres asks a real PostgreSQL, which wants a password.
func TestPostgres(t *testing.T) {
	const secret = "hunter2 &/?%"
	dir := tier.Postgres(t, secret)
	ctx := t.Context()
	admin, err := pgx.ParseConfig("host=" + dir + " user=coterie database=postgres")
	if err != nil {
		t.Fatal(err)
	}
	admin.Password = secret
	conn, err := pgx.ConnectConfig(ctx, admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, q := range []string{wardTable, "INSERT INTO ward VALUES " + strings.Join(wardRows, ",")} {
		if _, err := conn.Exec(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	d := ward("")
	address := url.URL{Scheme: "postgres", User: url.User("coterie"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}
	t.Setenv("COTERIE_TEST_PASSWORD", secret)
	d.Source = config.Source{Database: address.String(), Client: "site", PasswordEnv: "COTERIE_TEST_PASSWORD"}
	checkWardRows(t, d)
	d.Source.PasswordEnv, d.Source.PasswordFile = "", write(t, "password", secret+"\n")
	checkWardRows(t, d)
	for _, q := range []string{
		"DELETE FROM ward RETURNING *", "SELECT 1; DELETE FROM ward", "COMMIT; DELETE FROM ward", "SELECT setval(pg_get_serial_sequence('ward', 'id'), 1) FROM nextval('s')",
		"WITH gone AS (DELETE FROM ward RETURNING *) SELECT * FROM gone", "SELECT set_config('transaction_read_only', 'off', false), * FROM ward",
	} {
		d.Source.Query = q
		if _, _, err := all(reading(t, d)); err == nil || errors.Is(err, ErrTable) {
			t.Errorf("%s was done: %v", q, err)
		}
	}
	var rows int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM ward").Scan(&rows); err != nil || rows != len(wardRows) {
		t.Errorf("%d rows are left: %v", rows, err)
	}
	// A wrong password, or none, is refused, whatever the environment says; it is not told.
	d.Source.Query, d.Source.PasswordFile = "SELECT 1", ""
	t.Setenv("PGPASSWORD", secret)
	if _, _, err := all(reading(t, d)); err == nil || errors.Is(err, ErrTable) || strings.Contains(err.Error(), secret) {
		t.Errorf("without a password: %v", err)
	}
	d.Source.PasswordFile = write(t, "password", "wrong-secret")
	if _, _, err := all(reading(t, d)); err == nil || strings.Contains(err.Error(), "wrong-secret") || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("with a wrong password: %v", err)
	}
	d.Source.PasswordFile, d.Source.PasswordEnv = "", "COTERIE_NOT_SET"
	if _, _, err := all(reading(t, d)); err == nil || !strings.Contains(err.Error(), "COTERIE_NOT_SET") {
		t.Error(err)
	}
}

func TestDatabaseAddresses(t *testing.T) {
	for _, c := range []struct {
		s    config.Source
		want string
	}{
		{config.Source{Database: "postgres://reader:s3cret@host/ward"}, "give it in password_env or password_file"},
		{config.Source{Database: "postgres://reader@host/ward?password=s3cret"}, "give it in password_env or password_file"},
		{config.Source{Database: "postgresql://host/ward?user=a&PassWord=s3cret"}, "give it in password_env or password_file"},
		{config.Source{Database: "postgres://host/ward?passfile=s3cret"}, "give it in password_env or password_file"},
		{config.Source{Database: "host=a password=s3cret"}, "is not understood; allowed: postgres://user@host/name, or sqlite:FILE"},
		{config.Source{Database: "postgres:s3cret"}, "is not understood"},
		{config.Source{Database: "postgres://reader:s3cret@ho st/%zz"}, "is not understood"},
		{config.Source{Database: "mysql://s3cret@host"}, "is not understood"},
		{config.Source{Database: "sqlite:"}, "names no file"},
		{config.Source{Database: "sqlite:a.db", PasswordEnv: "X"}, "has no password"},
		{config.Source{Database: "sqlite:a.db", Format: "csv"}, "data.source.format"},
		{config.Source{Database: "postgres://reader@host/ward", PasswordEnv: "X"}, ""},
		{config.Source{Database: "sqlite:a.db"}, ""},
	} {
		c.s.Query = "SELECT 1"
		var k config.Checker
		checkSource(&k, c.s)
		got := ""
		if faults := k.Faults(); len(faults) > 0 {
			got = faults.Error()
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q; want %q, and nothing of the address", c.s.Database, got, c.want)
		}
		if c.want != "" && strings.Contains(c.s.Database, "s3cret") {
			d := ward("")
			d.Source = c.s
			if _, _, err := all(reading(t, d)); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("read from %s: %v", c.s.Database, err)
			}
		}
	}
}
