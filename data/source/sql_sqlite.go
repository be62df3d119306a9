package source

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/config"
)

// askSQLite asks an SQLite file, which is opened for reading only.
func askSQLite(ctx context.Context, s config.Source, a *answer) error {
	file := strings.TrimPrefix(s.Database, "sqlite:")
	if _, err := os.Stat(file); err != nil {
		return err
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(file), RawQuery: "mode=ro&_pragma=query_only(1)&_time_format=sqlite"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, s.Query)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	wanted, err := a.header(names)
	values, into, cells := make([]any, len(names)), make([]any, len(names)), make([][]byte, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for err == nil && wanted && rows.Next() {
		if err = rows.Scan(into...); err != nil {
			break
		}
		for i, v := range values {
			cells[i] = appendValue(cells[i][:0], v)
		}
		err = a.take(cells)
	}
	if err == nil && rows.Err() != nil {
		err = fmt.Errorf("query, after row %d: %w", a.row, rows.Err())
	}
	return err
}

// appendValue writes a value as text; nothing for NULL.
func appendValue(text []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return text
	case int64:
		return strconv.AppendInt(text, v, 10)
	case float64:
		return appendFloat(text, v, 64)
	case bool:
		return strconv.AppendBool(text, v)
	case string:
		return append(text, v...)
	case []byte:
		return append(text, v...)
	case time.Time:
		if h, m, s := v.Clock(); h == 0 && m == 0 && s == 0 && v.Nanosecond() == 0 {
			return v.AppendFormat(text, time.DateOnly)
		}
		return v.AppendFormat(text, "2006-01-02 15:04:05.999999999")
	}
	return fmt.Append(text, v)
}
