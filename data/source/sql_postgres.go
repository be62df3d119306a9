package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coterie-fl/coterie/config"
)

// connectTimeout bounds how long a database may take to answer at all.
const connectTimeout = 30 * time.Second

// askPostgres asks PostgreSQL. All values come as text, and by the protocol that takes one
// statement only: another one could end the read-only transaction.
func askPostgres(ctx context.Context, s config.Source, a *answer) error {
	var faults config.Checker
	checkDatabase(&faults, s)
	if err := faults.Faults(); len(err) > 0 {
		return err
	}
	c, err := pgx.ParseConfig(s.Database)
	if err != nil {
		return errors.New("the address is not understood; allowed: postgres://user@host/name") // the reason may repeat it
	}
	// Nobody's environment and no other file: the run file says where the password is.
	if c.Password, err = password(s); err != nil {
		return err
	}
	c.ConnectTimeout = connectTimeout
	c.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	c.RuntimeParams["application_name"] = "coterie"
	c.RuntimeParams["datestyle"] = "ISO"
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return fmt.Errorf("begin a read-only transaction: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	rows, err := tx.Query(ctx, s.Query, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	more := rows.Next() // only now it is known whether the query can be answered
	if err := rows.Err(); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	var names []string
	var booleans []int
	for i, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
		if f.DataTypeOID == pgtype.BoolOID {
			booleans = append(booleans, i)
		}
	}
	wanted, err := a.header(names)
	for ; err == nil && wanted && more; more = rows.Next() {
		cells := rows.RawValues()
		for _, i := range booleans { // written out, as other sources do
			switch string(cells[i]) {
			case "t":
				cells[i] = []byte("true")
			case "f":
				cells[i] = []byte("false")
			}
		}
		err = a.take(cells)
	}
	rows.Close()
	if err == nil && rows.Err() != nil {
		err = fmt.Errorf("query, after row %d: %w", a.row, rows.Err())
	}
	return err
}
